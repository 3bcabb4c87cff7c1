"""Files of ours that several processes use, SQLite's above all: shared by the rooms that keep something in one.

Owns: making such a file, telling it from others', bringing it up to date; locks.
May touch: domain.
Never: what is in it; any other room of the adapters.
"""
