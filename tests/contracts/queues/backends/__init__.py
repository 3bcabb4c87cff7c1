"""How each queue is had: a file, or a server that is started for it.

Owns: the means.
May touch: the adapters, processes of its own, loopback.
Never: a case.
"""
