"""How well, how fast and in how little memory failures are found in real logs, beside simpler ways to cut them.

Owns: reading labelled logs, the scorer, the strategies that are compared, the tables.
May touch: hummingbird.evidence, a rival in its own environment.
Never: the logs themselves; they stay outside the project and are named on the command line.
"""
