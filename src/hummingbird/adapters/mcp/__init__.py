"""MCP servers: other people's tools, as tools of ours.

Owns: sessions with MCP servers, the programs that are started for them, what they may offer and how it is bounded.
May touch: ports, domain, clients.
Never: tools that no allow-list names, our environment beyond PATH, HOME and LANG, answers to what a server asks of us.
"""
