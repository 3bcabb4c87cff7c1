"""Sandboxes: places without network and credentials in which the agent's commands run.

The backends are bubblewrap, podman, one Kubernetes pod per session (`k8s`) and a pool of pods (`k8spool`). No backend
gives a sandbox a token or a writable path of the host. `host` is for tools that work on this machine instead.
"""
