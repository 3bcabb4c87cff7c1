"""One contract for every store of sessions (core/protocols/sessions.py): a directory, and buckets of each kind.

Owns: the cases, and how a place to play them is had.
May touch: the port, its adapters, domain.
Never: what is above the port.
"""
