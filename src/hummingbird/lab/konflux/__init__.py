"""Stand-in for Konflux: a cluster's Kubernetes API with Tekton's objects, and a KubeArchive, from a case.

Both serve PipelineRuns, TaskRuns, Pods and their logs on loopback, including the awkward details of the real servers.
Nothing runs a pod.
"""
