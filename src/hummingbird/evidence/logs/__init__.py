"""Find what stands out in a log, which is text without structure: read, score, choose within a budget.

Pure code: no I/O, no model, no clock.
"""
