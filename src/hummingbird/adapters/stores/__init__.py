"""Where things are kept: sessions, and what outlives them.

Owns: sessions in directories and buckets, their index, large things, known failures, grants, spending.
May touch: ports, domain, tables.
Never: what an entry means.
"""
