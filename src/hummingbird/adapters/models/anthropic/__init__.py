"""Anthropic's Messages API, on its own host and on Vertex.

Owns: blocks, thinking replay, cache breakpoints, system entries, Anthropic's errors.
May touch: ports, domain, the shared parts of adapters.models.
Never: URLs, credentials, HTTP.
"""
