"""Read side: GitLab, Konflux, Testing Farm.

Owns: read tools, trust filter, scope check.
May touch: ports, evidence, domain, tool tokens.
Never: forge, orchestrator tokens.
"""
