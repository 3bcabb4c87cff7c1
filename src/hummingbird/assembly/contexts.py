"""Whether a context of the kubeconfig says where sandboxes may be. Reads the kubeconfig, and asks no cluster."""

from collections.abc import Mapping

from hummingbird.adapters.sandboxes.kubeconfig import Site, find
from hummingbird.adapters.sandboxes.registry import KUBERNETES, POOL, Wanted


def check_context(context: str, environment: Mapping[str, str]) -> None:
    """Raises SandboxUnavailable if there is no such context, or if it names no namespace (G6)."""
    find(Site(context=context), environment)


def check_cluster(wanted: Wanted, environment: Mapping[str, str]) -> None:
    """For who runs for long: that no sandbox can be had is known before the first one is needed. Raises
    SandboxUnavailable if pods are wanted and nothing says in which cluster or namespace."""
    if wanted.backend in (KUBERNETES, POOL):
        find(
            Site(
                context=wanted.context,
                namespace=wanted.namespace,
                configured_namespace=wanted.configured_namespace,
                ca_bundle=wanted.ca_bundle,
            ),
            environment,
        )
