"""The agent in an editor, by the Agent Client Protocol (C10).

Owns: the protocol's frames, what an editor is shown and asked, which conversation is whose.
May touch: chat, agent, config, evidence, ports, domain; the only room that imports `acp`.
Never: adapters, ports.forge.
"""
