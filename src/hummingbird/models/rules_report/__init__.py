"""The model `digest`: rules, without an LLM, that plan a failure analysis and write a plain report.

Like any model it sees only the request and calls tools. It uses no network and no key, and keeps no state between
requests. `rules_model.py` is the entry point.
"""
