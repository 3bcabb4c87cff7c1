"""Quick actions in notes: which lines GitLab would execute, and what they do. The judge of the sanitizer of notes.

Owns: its own reading of notes, with GitLab's Markdown parser and more eager than GitLab.
May touch: the world.
Never: anything that the sanitizer uses.
"""
