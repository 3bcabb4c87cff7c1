"""What the GitLab stand-in answers to GET, room by room of its API.

Owns: the routes that read.
May touch: the world, shapes, paging, access, refusals.
Never: changes of the world.
"""
