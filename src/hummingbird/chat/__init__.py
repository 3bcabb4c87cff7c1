"""The agent in a terminal.

Owns: prompt, commands, rendering.
May touch: agent, config, ports, domain.
Never: adapters, ports.forge.
"""
