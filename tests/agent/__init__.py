"""Tests of the agent floor: the loop, its budgets, recovery and tools, with scripted models."""
