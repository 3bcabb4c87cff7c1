"""What others watch the service with (O1): always metrics; traces and reports of bugs if the environment asks for them.

telemetry = telemetry_of(os.environ, __version__, secrets_of(os.environ))
serving = Serving(..., watchers=telemetry.watchers)
...
await telemetry.close()
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from hummingbird.adapters.telemetry.endpoint import header_secrets
from hummingbird.adapters.telemetry.metrics import Metrics
from hummingbird.adapters.telemetry.registry import sentry, traces
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.observer import RunWatcher


@dataclass(frozen=True, slots=True)
class Telemetry:
    """`watchers` are for every run. Belongs to one event loop."""

    metrics: Metrics
    watchers: tuple[RunWatcher, ...]
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()

    async def close(self) -> None:
        """Delivers what is left, within TELEMETRY_CLOSE_S."""
        await asyncio.gather(*(close() for close in self.closing))


def telemetry_of(environment: Mapping[str, str], version: str, secrets: Secrets, *, ca_bundle: str = "") -> Telemetry:
    """Raises MissingSetting: for an address or a DSN that is none, and for an extra that is not installed. Nothing has
    begun then."""
    known = Secrets([*secrets.values, *header_secrets(environment)])
    metrics = Metrics(version)
    reporting = sentry(environment, version, known, ca_bundle)
    tracing = traces(environment, version, known, ca_bundle)
    watchers: list[RunWatcher] = [metrics]
    closing: list[Callable[[], Awaitable[None]]] = []
    if tracing is not None:
        watchers.append(tracing)
        closing.append(tracing.close)
    if reporting is not None:
        reporting.begin()
        closing.append(reporting.aclose)
    return Telemetry(metrics, tuple(watchers), tuple(closing))
