"""Values, rules and protocols that every other package shares.

This package performs no I/O and imports no other package of Hummingbird: messages, journal entries, orders, findings,
masking rules, shell analysis, permissions, limits, errors and the protocols that adapters implement.
"""
