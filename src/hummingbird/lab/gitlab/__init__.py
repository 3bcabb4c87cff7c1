"""A GitLab that serves one case, awkward parts included.

Owns: its REST answers, refusals, faults, quick actions and webhooks.
May touch: the lab's case, planned faults and serving; domain.
Never: adapters, so that it cannot share their mistakes.
"""
