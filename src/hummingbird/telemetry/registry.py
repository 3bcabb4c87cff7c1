"""Create traces and error reports when their environment variables are set.

Their libraries are optional extras, so they are imported only when needed. If one is missing, the error names it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hummingbird.core.errors import MissingSetting
from hummingbird.core.masking import Secrets
from hummingbird.telemetry.delivery import OtlpEndpoint, otlp_endpoint_from_env

if TYPE_CHECKING:
    from hummingbird.telemetry.sentry import SentryReporter
    from hummingbird.telemetry.traces import Traces

DSN_VARIABLE = "SENTRY_DSN"


def create_traces(
    environment: Mapping[str, str], version: str, secrets: Secrets, ca_bundle: str = ""
) -> "Traces | None":
    """Create the OpenTelemetry traces; return None if no endpoint is set. Raises MissingSetting."""
    endpoint = otlp_endpoint_from_env(environment, ca_bundle)
    if endpoint is None:
        return None
    with _require_extra(endpoint.variable, "otel"):
        from hummingbird.telemetry.traces import Traces  # noqa: PLC0415 - an extra
    return Traces(endpoint, version, secrets.mask)


def create_sentry(
    environment: Mapping[str, str], version: str, secrets: Secrets, ca_bundle: str = ""
) -> "SentryReporter | None":
    """Create the Sentry reporter; return None if SENTRY_DSN is not set. Raises MissingSetting."""
    dsn = environment.get(DSN_VARIABLE, "").strip()
    if not dsn:
        return None
    with _require_extra(DSN_VARIABLE, "sentry"):
        from hummingbird.telemetry.sentry import SentryReporter  # noqa: PLC0415 - an extra
    return SentryReporter(dsn, version, secrets.mask, ca_bundle=ca_bundle)


def trace_export_error(endpoint: OtlpEndpoint, secrets: Secrets) -> str:
    """Return why the collector accepts nothing; empty if it does. Blocks until it answers. Raises MissingSetting."""
    with _require_extra(endpoint.variable, "otel"):
        from hummingbird.telemetry.traces import export_error  # noqa: PLC0415 - an extra
    return export_error(endpoint, secrets.mask)


def check_sentry(dsn: str) -> None:
    """Check the DSN without sending anything. Raises MissingSetting."""
    with _require_extra(DSN_VARIABLE, "sentry"):
        from hummingbird.telemetry.sentry import check_dsn  # noqa: PLC0415 - an extra
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
