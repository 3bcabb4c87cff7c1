"""Puts the parts together: the service, `run`, chat, the Python library, `doctor`, `eval` and `demo`.

This is the only package that knows both the settings and the implementations. Decisions belong to the packages below.
"""
