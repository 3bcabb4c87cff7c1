"""Settings to objects wired together; the only room that may enter the adapters' wing.

Owns: the wiring, the library's front door, what `serve`, `run`, `doctor` and `demo` are.
May touch: everything below, lab for `demo`.
Never: a decision that belongs to a room below.
"""
