"""What things are: frozen values, no I/O.

Owns: messages, journal entries, orders, notes, findings, secrets, limits, errors.
May touch: the standard library, msgspec.
Never: a file, a socket, a clock or another room.
"""
