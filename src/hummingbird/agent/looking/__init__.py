"""Looking at failed jobs before a model speaks (N8): facts for the rules, gathered with a run's own tools that read.

Owns: what is asked for, in which order, and how much of it.
May touch: ports, evidence, domain.
Never: a judgement, a write, or an error that ends a run.
"""
