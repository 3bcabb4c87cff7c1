"""Files that people and the agent edit: MEMORY.md and USER.md, context files such as AGENTS.md, and skills."""
