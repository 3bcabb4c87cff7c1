"""What can be written to the GitLab stand-in, and what that changes.

Owns: the routes that write, and the changes themselves, which tests may make too.
May touch: the world, shapes, access, refusals, quick actions.
Never: how a webhook looks or travels.
"""
