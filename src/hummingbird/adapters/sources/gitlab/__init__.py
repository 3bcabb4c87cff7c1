"""The GitLab data source: merge requests, pipelines, logs and files, for reading.

Owns: GitLabSource, its session, the trust filter, the project scope.
May touch: ports, evidence, domain, its ToolToken, python-gitlab.
Never: anything but GET, another host than its own.
"""
