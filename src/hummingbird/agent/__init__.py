"""One loop for everything: models and tools through ports.

Owns: the loop, its budgets, notices, recovery and tools.
May touch: config, ports, evidence, domain.
Never: adapters, GitLab, queues, terminals.
"""
