"""Traces and reports of bugs, each loaded when its variable is set: their libraries are extras, and a missing one is a
sentence that names it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hummingbird.adapters.telemetry.endpoint import Endpoint, endpoint_of
from hummingbird.domain.errors import MissingSetting
from hummingbird.domain.secrets import Secrets

if TYPE_CHECKING:
    from hummingbird.adapters.telemetry.sentry import Sentry
    from hummingbird.adapters.telemetry.traces import Traces

DSN_VARIABLE = "SENTRY_DSN"


def traces(environment: Mapping[str, str], version: str, secrets: Secrets, ca_bundle: str = "") -> "Traces | None":
    """None if no endpoint is set. Raises MissingSetting."""
    endpoint = endpoint_of(environment, ca_bundle)
    if endpoint is None:
        return None
    with _installed(endpoint.variable, "otel"):
        from hummingbird.adapters.telemetry.traces import Traces  # noqa: PLC0415 - an extra
    return Traces(endpoint, version, secrets.mask)


def sentry(environment: Mapping[str, str], version: str, secrets: Secrets, ca_bundle: str = "") -> "Sentry | None":
    """None if there is no DSN. Raises MissingSetting."""
    dsn = environment.get(DSN_VARIABLE, "").strip()
    if not dsn:
        return None
    with _installed(DSN_VARIABLE, "sentry"):
        from hummingbird.adapters.telemetry.sentry import Sentry  # noqa: PLC0415 - an extra
    return Sentry(dsn, version, secrets.mask, ca_bundle=ca_bundle)


def trace_refusal(endpoint: Endpoint, secrets: Secrets) -> str:
    """Why a collector takes nothing; empty if it does. Waits for it. Raises MissingSetting."""
    with _installed(endpoint.variable, "otel"):
        from hummingbird.adapters.telemetry.delivering import refusal  # noqa: PLC0415 - an extra
    return refusal(endpoint, secrets.mask)


def check_sentry(dsn: str) -> None:
    """Raises MissingSetting. Sends nothing."""
    with _installed(DSN_VARIABLE, "sentry"):
        from hummingbird.adapters.telemetry.sentry import check_dsn  # noqa: PLC0415 - an extra
    check_dsn(dsn)


@contextmanager
def _installed(variable: str, extra: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingSetting(
            f"{variable} is set, and what it needs is not installed: pip install 'hummingbird-agent[{extra}]', or "
            "unset it."
        ) from error
    except ValueError as error:  # OpenTelemetry reads some of its variables when it is loaded
        raise MissingSetting(
            f"{variable} is set, and what it needs cannot be loaded: correct its variables ({error})."
        ) from error
