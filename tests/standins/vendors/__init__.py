"""Strict stand-ins for the model vendors: they refuse what the vendors refuse.

Owns: validation, scripted answers, faults, simulated prompt caches.
May touch: the lab's serving, and the playing of its planned faults.
Never: adapters.
"""
