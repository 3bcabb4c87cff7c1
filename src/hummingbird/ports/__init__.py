"""What we ask of the world: one Protocol a verb, with what it raises.

Owns: models, journals, tools, sources, sandboxes, queues, the forge, stores, clocks, as seen from inside.
May touch: domain.
Never: an implementation.
"""
