"""Whose a failure is, by rules (N8); pure.

Owns: the facts that rules weigh, the rules, and which files a failure names.
May touch: domain and the rest of evidence.
Never: I/O, a model, or a guess: what cannot be known is UNKNOWN.
"""
