"""What we ask of the world: one Protocol a verb, with what it raises.

Owns: Model, Journal, Spending, Clock, Observer, Tool and Hook.
May touch: domain.
Never: an implementation.
"""
