"""Our own sandboxes, attacked: each attempt must fail in them and succeed in one that was weakened on purpose.

Owns: the attempts, what of this machine they reach for, and the weakened sandboxes.
May touch: the sandboxes' own modules. Network attempts go to listeners that the tests open on this machine alone.
Never: a weakened sandbox outside the tests.
"""
