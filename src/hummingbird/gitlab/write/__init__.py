"""Use the write token for the service: read merge requests and threads, check access, post notes.

Every text that is posted is sanitized here. The agent and its tools must not import this package, so that the write
token stays out of their reach.
"""
