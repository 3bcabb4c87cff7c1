"""Chat Completions, as OpenAI defined it and as everybody else speaks it (M5).

Owns: the chat body, tolerant reading of answers and streams.
May touch: ports, domain, the models room's wire types.
Never: HTTP, prices, keys that a compatible server may not know.
"""
