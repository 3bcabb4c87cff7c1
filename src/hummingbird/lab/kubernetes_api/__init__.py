"""Parts of a Kubernetes API server for the Konflux stand-in: requests, access, discovery, selectors, errors.

The full Kubernetes stand-in in tests/standins uses them, too.
"""
