"""Whether what an answer cites was really fetched: its quotations, places, jobs and links (N6).

Owns: finding them in Markdown, the record of what tools brought, what becomes of those that it does not hold.
May touch: domain, and its sister modules in evidence.
Never: I/O, a model, or a clock.
"""
