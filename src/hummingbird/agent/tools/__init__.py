"""Tools the model may call, and how a batch of calls is run.

Owns: registry, batches, hooks, permissions.
May touch: ports, domain.
Never: adapters.
"""
