"""The cases, by topic: async functions that take a stage.

Owns: what a bucket must do.
May touch: the port, domain, the stage.
Never: a backend.
"""
