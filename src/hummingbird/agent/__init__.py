"""The agent: one loop that calls models and tools through protocols, with its budgets, recovery rules and tools."""
