"""What we ask of the world: one Protocol a verb, with what it raises.

Owns: Model, Journal, Clock, Observer and the tool protocols.
May touch: domain.
Never: an implementation.
"""
