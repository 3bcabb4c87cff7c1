"""What things are: frozen values, no I/O.

Owns: messages, journal entries, usage, tools, limits, errors.
May touch: the standard library.
Never: a file, a socket, a clock or another room.
"""
