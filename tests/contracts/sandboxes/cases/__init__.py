"""The cases, by topic: each a public async function that takes a stage, and whose name is what it proves.

Owns: what a command, a file and a caller may do to a sandbox.
May touch: the port, through a stage.
Never: a backend.
"""
