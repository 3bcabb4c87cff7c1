"""A stand-in for GitLab that serves one case: REST API, errors, faults, quick actions and webhooks.

It never imports the GitLab client code, so that it cannot share its mistakes.
"""
