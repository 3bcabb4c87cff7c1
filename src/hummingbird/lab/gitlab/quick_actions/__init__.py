"""Quick actions in notes: which lines GitLab would execute, and what they do. The judge of the note firewall.

Owns: its own reading of Markdown, more eager than GitLab's.
May touch: the world.
Never: anything that the firewall uses.
"""
