"""Write side: notes, threads, access.

Owns: posting, markers, the note firewall.
May touch: ports, domain, orchestrator tokens.
Never: sources, tool tokens.
"""
