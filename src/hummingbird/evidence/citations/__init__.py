"""Check that what an answer cites was really fetched: its quotations, places, jobs and links.

Pure code: no I/O, no model, no clock.
"""
