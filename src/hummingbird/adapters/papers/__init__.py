"""What people write for the agent, and it for itself, in files that they can edit.

Owns: MEMORY.md and USER.md, context files such as AGENTS.md, folders of skills.
May touch: ports, domain.
Never: what becomes of their words in a prompt.
"""
