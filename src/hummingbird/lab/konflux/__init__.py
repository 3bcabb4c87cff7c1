"""Konflux on loopback: a cluster's Kubernetes API with Tekton's objects, and a KubeArchive beside it, from a case.

Owns: what both say about PipelineRuns, TaskRuns, Pods and their logs, awkward parts included.
May touch: a case's folder, loopback, the pure parts of lab.kubernetes.
Never: anything that runs a pod, nor adapters or service.
"""
