"""Give the agent read-only tools for GitLab's merge requests, pipelines, logs and files.

It sends only GET requests, only to the configured host, and with a token that can only read.
"""
