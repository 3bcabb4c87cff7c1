"""Whether a context of the kubeconfig says where sandboxes may be. Reads the kubeconfig, and asks no cluster."""

from collections.abc import Mapping

from hummingbird.adapters.sandboxes.kubeconfig import Site, find


def check_context(context: str, environment: Mapping[str, str]) -> None:
    """Raises SandboxUnavailable if there is no such context, or if it names no namespace (G6)."""
    find(Site(context=context), environment)
