"""The engine that reads logs: what stands out in text that nobody structured.

Owns: cleaning, cues, scores, blocks, the choice within a budget.
May touch: domain, and its sister modules in evidence.
Never: I/O, a model, or a clock.
"""
