"""From event to note.

Owns: intake, routing, runs, publication, worker, ingress.
May touch: agent, config, ports, domain.
Never: adapters, terminals.
"""
