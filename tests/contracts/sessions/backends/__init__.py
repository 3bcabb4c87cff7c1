"""How each store is had.

Owns: the means.
May touch: adapters.
Never: a case.
"""
