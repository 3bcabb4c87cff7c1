"""How a source reads over HTTP.

Owns: requests, retries, redirects, size limits, allow-lists, which addresses may be connected to.
May touch: domain.
Never: what an answer means.
"""
