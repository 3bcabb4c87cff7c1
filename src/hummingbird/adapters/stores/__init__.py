"""Where things are kept: sessions, and what outlives them.

Owns: journals, archives, large things here and in buckets, known failures, grants, spending.
May touch: ports, domain, tables.
Never: what an entry means.
"""
