"""Recognise that this process runs in a pod of a Kubernetes cluster."""

from collections.abc import Mapping

IN_POD_VARIABLE = "KUBERNETES_SERVICE_HOST"


def runs_in_pod(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in a pod of a cluster."""
    return bool(environment.get(IN_POD_VARIABLE, "").strip())
