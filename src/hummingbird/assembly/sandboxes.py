"""Sandboxes as the configuration and the command line want them: which one, the image they run, what was left of
others."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from hummingbird.adapters.sandboxes.check import Checked, self_check
from hummingbird.adapters.sandboxes.engine import Podman
from hummingbird.adapters.sandboxes.image import build_image
from hummingbird.adapters.sandboxes.leftovers import reap_leftovers
from hummingbird.adapters.sandboxes.registry import DEFAULT_IMAGE, KUBERNETES, POOL, Sandboxes, Wanted
from hummingbird.assembly.clock import SystemClock
from hummingbird.config.settings import Settings
from hummingbird.domain.errors import SandboxBroken, SandboxUnavailable, UsageFault


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the command line says of the sandbox; empty leaves it to the configuration. A context means Kubernetes."""

    backend: str = ""
    context: str = ""
    namespace: str = ""


def check_chosen(settings: Settings, chosen: Chosen) -> None:
    """Raises UsageFault for a namespace where no pods are: it would be ignored."""
    backend = wanted_sandbox(settings, chosen).backend
    if chosen.namespace and backend not in (KUBERNETES, POOL):
        raise UsageFault(
            f"--namespace is for Kubernetes, and commands run in {backend}: add --sandbox k8s or k8spool, or leave "
            "--namespace out."
        )


def wanted_sandbox(settings: Settings, chosen: Chosen) -> Wanted:
    sandbox = settings.sandbox
    return Wanted(
        backend=chosen.backend or (KUBERNETES if chosen.context else sandbox.backend),
        image=sandbox.image or DEFAULT_IMAGE,
        context=chosen.context,
        namespace=chosen.namespace,
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


async def check(
    backend: str,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
    *,
    image: str = "",
    context: str = "",
    namespace: str = "",
) -> AsyncGenerator[Checked, None]:
    """Starts a sandbox of that kind and tries what it promises. Raises UsageFault."""
    wanted = Wanted(backend, image or DEFAULT_IMAGE, context=context, namespace=namespace)
    sandboxes = Sandboxes(wanted, environment, SystemClock(), warn)
    try:
        await sandboxes.open()
        async with aclosing(self_check(sandboxes.make())) as lines:
            async for line in lines:
                yield line
    except (SandboxUnavailable, SandboxBroken) as error:  # before there was one that could check itself
        yield Checked("can be had", 0, str(error))
    finally:
        await sandboxes.close()


async def build(
    image: str, environment: Mapping[str, str], told: Callable[[str], None], *, from_packages: bool = False
) -> str:
    """The name of the image that was made. Raises SandboxUnavailable."""
    await build_image(image or DEFAULT_IMAGE, environment=environment, told=told, from_packages=from_packages)
    return image or DEFAULT_IMAGE


async def reap(environment: Mapping[str, str]) -> list[str]:
    """The containers of killed processes that were removed. Raises SandboxUnavailable, SandboxBroken."""
    return await reap_leftovers(Podman(environment))
