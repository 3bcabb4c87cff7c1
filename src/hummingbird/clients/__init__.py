"""HTTP clients, address checks, Kubernetes credentials and SQLite files that several packages use.

Clients trust the configured certificates and explain proxies and certificates that cannot be used. This package imports
only `hummingbird.core`.
"""
