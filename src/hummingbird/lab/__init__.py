"""Stand-ins for what cannot be had on a laptop: GitLab, Konflux, Testing Farm, model vendors.

Owns: their HTTP behaviour, awkward parts included.
May touch: ports, domain.
Never: adapters or service, so that it cannot share their mistakes.
"""
