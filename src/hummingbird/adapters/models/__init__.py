"""Models: four wire formats, replay, and the registry that names them.

Owns: encoding, calling, decoding, prices.
May touch: ports, domain, HTTP.
Never: retries, budgets, the journal.
"""
