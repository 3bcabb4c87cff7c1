"""Where sessions live.

Owns: journals on disk, later object storage, archives, index.
May touch: ports, domain.
Never: what an entry means.
"""
