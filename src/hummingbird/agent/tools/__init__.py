"""Tools the model may call, and how a batch of calls is run.

Owns: registry, batches, hooks, permissions, results, the tools of our own.
May touch: agent, ports, evidence, domain.
Never: adapters.
"""
