"""Protocols that the core asks adapters to implement, each with the errors its methods raise.

Modules here define no implementation and import only `hummingbird.core`.
"""
