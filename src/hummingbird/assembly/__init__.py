"""Settings to objects wired together; the only room that may enter the adapters' wing.

Owns: the wiring and the library's front door.
May touch: everything below.
Never: logic of its own.
"""
