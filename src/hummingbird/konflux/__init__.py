"""The Konflux source: five tools that read PipelineRuns, TaskRuns, Pods and logs from a cluster and from KubeArchive.

The tools only read; nothing here writes to a cluster.
"""
