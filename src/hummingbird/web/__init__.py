"""The dashboard.

Owns: pages, live updates, access.
May touch: agent, config, ports, domain.
Never: adapters, ports.forge.
"""
