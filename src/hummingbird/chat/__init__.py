"""The agent in a terminal.

Owns: prompt, commands, rendering, questions; the same without a terminal.
May touch: agent, config, ports, evidence, domain.
Never: adapters, ports.forge.
"""
