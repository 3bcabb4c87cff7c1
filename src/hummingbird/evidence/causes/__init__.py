"""Which of many failed jobs failed first, and what they dragged along.

Owns: jobs, the graph over them, GitLab's words for them.
May touch: domain, and evidence's regions.
Never: a log.
"""
