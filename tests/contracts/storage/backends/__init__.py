"""How each bucket is had: a server that is started for it.

Owns: the means.
May touch: processes of its own, loopback.
Never: a case.
"""
