"""Owns: one deliberate fault for each wall behind an invariant, and the program that makes it and looks who notices.

May touch: a copy of the sources in a folder of its own. Never: the sources themselves.
"""
