"""From event to note.

Owns: the doors, routing, both stages, the worker, what notes say and that they are said once.
May touch: agent, config, ports, domain.
Never: adapters, terminals.
"""
