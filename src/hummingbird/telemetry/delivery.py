"""Create traces and error reports when their environment variables are set, and close exporters within a time limit.

OpenTelemetry and Sentry are optional extras, so they are imported only when needed. If one is missing, the error names
it.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from hummingbird.core.errors import MissingSetting
from hummingbird.core.masking import Secrets

if TYPE_CHECKING:
    from hummingbird.telemetry.sentry import SentryReporter
    from hummingbird.telemetry.traces import Traces

_GENERAL, _TRACES = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
_PATH = "v1/traces"
_PROTOCOL = "http/protobuf"
_PORTS = "give the collector's address for that, whose port is usually 4318"


@dataclass(frozen=True, slots=True)
class OtlpEndpoint:
    """The address of a trace collector, and the variable that named it.

    `certificates` is a file with trusted certificates; empty where the system's or OpenTelemetry's own variable decide.
    """

    url: str = field(repr=False)
    variable: str
    certificates: str = ""

    @property
    def host(self) -> str:
        """The address for messages, without user, password and query."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def otlp_endpoint_from_env(environment: Mapping[str, str], ca_bundle: str = "") -> OtlpEndpoint | None:
    """Return the collector's endpoint; None if no variable names one. Raises MissingSetting for unusable values."""
    variable, name = _first_variable(environment, "ENDPOINT")
    if not variable:
        return None
    protocol_variable, protocol = _first_variable(environment, "PROTOCOL")
    if protocol and protocol.lower() != _PROTOCOL:
        raise MissingSetting(
            f"{protocol_variable} asks for another protocol than {_PROTOCOL}, which traces are sent with: set it to "
            f"{_PROTOCOL}, and {_PORTS}."
        )
    url = name if variable == f"{_TRACES}ENDPOINT" else f"{name.removesuffix('/')}/{_PATH}"
    if not _is_http_url(url):
        raise MissingSetting(
            f"{variable} is not an address: write it like http://collector.example:4318, or unset it to send no traces."
        )
    own_certificates, _ = _first_variable(environment, "CERTIFICATE")
    return OtlpEndpoint(url, variable, "" if own_certificates else ca_bundle)


def header_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the collector's credentials, as written in the variables and as sent.

    This includes values without a header name: they are a mistake, but still secret.
    """
    return list(
        dict.fromkeys(_header_values(environment.get(f"{prefix}HEADERS", "") for prefix in (_GENERAL, _TRACES)))
    )


def _header_values(headers: Iterable[str]) -> Iterator[str]:
    for pair in (pair for header in headers for pair in header.split(",")):
        value = pair.partition("=")[2].strip() or pair.strip()
        for spelt in (value, unquote(value)):
            yield from (one for one in (spelt, spelt.rpartition(" ")[2]) if one)


def _first_variable(environment: Mapping[str, str], what: str) -> tuple[str, str]:
    """Return the variable that decides and its value, or empty texts. The variable for traces alone comes first."""
    for variable in (f"{_TRACES}{what}", f"{_GENERAL}{what}"):
        if value := environment.get(variable, "").strip():
            return variable, value
    return "", ""


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # for example a port that is not a number, or an incomplete IPv6 address
        return False


async def close_within(seconds: float, close: Callable[[], None]) -> bool:
    """Run `close` in a thread and return whether it ended in time.

    An unreachable collector must not delay the end of the process. That is why the thread is a daemon: Python waits
    for the threads of an event loop's executor at exit.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            close()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=run, name="telemetry-closing", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        return False
    return True


DSN_VARIABLE = "SENTRY_DSN"


def create_traces(
    environment: Mapping[str, str], version: str, secrets: Secrets, ca_bundle: str = ""
) -> "Traces | None":
    """Create the OpenTelemetry traces; return None if no endpoint is set. Raises MissingSetting."""
    endpoint = otlp_endpoint_from_env(environment, ca_bundle)
    if endpoint is None:
        return None
    with _require_extra(endpoint.variable, "otel"):
        from hummingbird.telemetry.traces import Traces
    return Traces(endpoint, version, secrets.mask)


def create_sentry(
    environment: Mapping[str, str], version: str, secrets: Secrets, ca_bundle: str = ""
) -> "SentryReporter | None":
    """Create the Sentry reporter; return None if SENTRY_DSN is not set. Raises MissingSetting."""
    dsn = environment.get(DSN_VARIABLE, "").strip()
    if not dsn:
        return None
    with _require_extra(DSN_VARIABLE, "sentry"):
        from hummingbird.telemetry.sentry import SentryReporter
    return SentryReporter(dsn, version, secrets.mask, ca_bundle=ca_bundle)


def trace_export_error(endpoint: OtlpEndpoint, secrets: Secrets) -> str:
    """Return why the collector accepts nothing; empty if it does. Blocks until it answers. Raises MissingSetting."""
    with _require_extra(endpoint.variable, "otel"):
        from hummingbird.telemetry.traces import export_error
    return export_error(endpoint, secrets.mask)


def check_sentry(dsn: str) -> None:
    """Check the DSN without sending anything. Raises MissingSetting."""
    with _require_extra(DSN_VARIABLE, "sentry"):
        from hummingbird.telemetry.sentry import check_dsn
    check_dsn(dsn)


@contextmanager
def _require_extra(variable: str, extra: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingSetting(
            f"{variable} is set, and what it needs is not installed: pip install 'hummingbird-agent[{extra}]', or "
            "unset it."
        ) from error
    except ValueError as error:  # OpenTelemetry reads some of its variables when it is imported
        raise MissingSetting(
            f"{variable} is set, and what it needs cannot be loaded: correct its variables ({error})."
        ) from error
