"""Konflux: the cluster's PipelineRuns, TaskRuns, Pods and logs, and what KubeArchive keeps of them.

Owns: the five konflux tools.
May touch: ports, domain, clusters, the sources' http.
Never: writing to a cluster; GitLab, Testing Farm.
"""
