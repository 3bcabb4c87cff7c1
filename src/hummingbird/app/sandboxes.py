"""Chooses sandboxes by configuration and command line, builds their image and removes leftovers."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from hummingbird.app.console import SystemClock
from hummingbird.clients.pod_environment import IN_POD_VARIABLE, runs_in_pod
from hummingbird.config.settings import Settings
from hummingbird.core.errors import SandboxBroken, SandboxUnavailable, UsageError, require_extra
from hummingbird.sandboxes.image_build import build_image
from hummingbird.sandboxes.podman_engine import PodmanEngine, remove_leftover_containers
from hummingbird.sandboxes.registry import BUBBLEWRAP, DEFAULT_IMAGE, KUBERNETES, POOL, SandboxOptions, SandboxRegistry
from hummingbird.sandboxes.self_check import SelfCheckResult, self_check

AUTOMATIC = "auto"


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """The sandbox that the command line asks for; empty leaves it to the configuration. A context means Kubernetes.

    `serves` and `in_pod` decide where neither says which sandbox to use: `serve` uses the pool in a cluster.
    """

    backend: str = ""
    context: str = ""
    namespace: str = ""
    serves: bool = False
    in_pod: bool = False


def choose_for_service(
    environment: Mapping[str, str], backend: str = "", context: str = "", namespace: str = ""
) -> SandboxChoice:
    """Return the choice for `serve`, and for commands that report what `serve` will do."""
    return SandboxChoice(backend, context, namespace, serves=True, in_pod=runs_in_pod(environment))


def choose_backend(settings: Settings, chosen: SandboxChoice) -> tuple[str, str]:
    """Return the kind of sandbox and why it is that one."""
    if chosen.backend:
        return chosen.backend, "--sandbox says so"
    if chosen.context:
        return KUBERNETES, "--context is given"
    if settings.sandbox.backend != AUTOMATIC:
        return settings.sandbox.backend, "settings.sandbox.backend says so"
    if chosen.serves and settings.sandbox.namespace:
        return POOL, "settings.sandbox.namespace is set"
    if chosen.serves and chosen.in_pod:
        return POOL, "this is a pod of a cluster"
    return BUBBLEWRAP, "nothing names another one"


def sandbox_sentence(settings: Settings, chosen: SandboxChoice) -> str:
    """Say which sandbox commands run in, where, and why."""
    backend, why = choose_backend(settings, chosen)
    wanted = resolve_sandbox(settings, chosen)
    namespace = wanted.namespace or wanted.configured_namespace
    where = f" in the namespace {namespace}" if namespace and backend in (KUBERNETES, POOL) else ""
    return f"Commands run in {backend}{where}: {why}."


def check_sandbox_choice(settings: Settings, chosen: SandboxChoice) -> None:
    """Raise UsageError for a namespace with a sandbox that runs no pods: it would be ignored."""
    backend = resolve_sandbox(settings, chosen).backend
    if chosen.namespace and backend not in (KUBERNETES, POOL):
        raise UsageError(
            f"--namespace is for Kubernetes, and commands run in {backend}: add --sandbox k8s or k8spool, or leave "
            "--namespace out."
        )


def resolve_sandbox(settings: Settings, chosen: SandboxChoice) -> SandboxOptions:
    sandbox = settings.sandbox
    # The configured namespace belongs to the configured context, and not to one from the command line.
    configured = sandbox.namespace if sandbox.context and not chosen.context else ""
    return SandboxOptions(
        backend=choose_backend(settings, chosen)[0],
        image=sandbox.image or DEFAULT_IMAGE,
        context=chosen.context or sandbox.context,
        namespace=chosen.namespace or configured,
        configured_namespace=sandbox.namespace,
        ca_bundle=settings.ca_bundle,
        deadline_s=sandbox.active_deadline_seconds,
        linger_s=sandbox.linger_seconds,
        max_lingering=sandbox.max_lingering_pods,
        requests=sandbox.resources.requests.model_dump(by_alias=True),
        limits=sandbox.resources.limits.model_dump(by_alias=True),
        labels=sandbox.metadata.labels,
        annotations=sandbox.metadata.annotations,
    )


def cluster_api(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Return where the API of this process's own cluster listens; None outside of a cluster."""
    host, port = environment.get(IN_POD_VARIABLE, "").strip(), environment.get("KUBERNETES_SERVICE_PORT", "443")
    return (host, int(port)) if host and port.isdigit() else None


async def check_sandbox(
    backend: str,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
    *,
    image: str = "",
    context: str = "",
    namespace: str = "",
) -> AsyncGenerator[SelfCheckResult, None]:
    """Start a sandbox of that kind and test what it promises.

    Raises UsageError.
    """
    wanted = SandboxOptions(backend, image or DEFAULT_IMAGE, context=context, namespace=namespace)
    sandboxes = SandboxRegistry(wanted, environment, SystemClock(), warn)
    try:
        await sandboxes.open()
        async with aclosing(self_check(sandboxes.make(), cluster_api(environment))) as lines:
            async for line in lines:
                yield line
    except (SandboxUnavailable, SandboxBroken) as error:  # before there was one that could check itself
        yield SelfCheckResult("can be had", 0, str(error))
    finally:
        await sandboxes.close()


async def build_sandbox_image(
    image: str, environment: Mapping[str, str], report_line: Callable[[str], None], *, from_packages: bool = False
) -> str:
    """Build the image and return its name.

    Raises SandboxUnavailable.
    """
    await build_image(
        image or DEFAULT_IMAGE, environment=environment, report_line=report_line, from_packages=from_packages
    )
    return image or DEFAULT_IMAGE


async def remove_leftovers(environment: Mapping[str, str]) -> list[str]:
    """Remove the containers of killed processes and return their names.

    Raises SandboxUnavailable and SandboxBroken.
    """
    return await remove_leftover_containers(PodmanEngine(environment))


# Checks of the kubeconfig; they contact no cluster.


def check_kube_context(context: str, environment: Mapping[str, str]) -> None:
    """Raise SandboxUnavailable if there is no such context, or if it names no namespace."""
    _find_cluster(environment, context=context)


def check_kube_cluster(wanted: SandboxOptions, environment: Mapping[str, str]) -> None:
    """Check before a long run that pods can be started.

    Raises SandboxUnavailable if pods are wanted and nothing says in which cluster or namespace.
    """
    if wanted.backend in (KUBERNETES, POOL):
        _find_cluster(
            environment,
            context=wanted.context,
            namespace=wanted.namespace,
            configured_namespace=wanted.configured_namespace,
            ca_bundle=wanted.ca_bundle,
        )


def _find_cluster(environment: Mapping[str, str], **options: str) -> None:
    require_extra("lightkube", "kubernetes", "A sandbox in Kubernetes")
    from hummingbird.sandboxes.kubernetes_api import ClusterOptions, find_cluster  # noqa: PLC0415 - an extra

    find_cluster(ClusterOptions(**options), environment)
