"""Google's Gemini, by API key and on Vertex.

Owns: contents and parts, thought signatures, Gemini's finish reasons and errors.
May touch: ports, domain, the shared parts of adapters.models.
Never: URLs, credentials, HTTP.
"""
