"""Where traces go: OpenTelemetry's own variables, read once, with a sentence for those that cannot be used (O1).

Imports nothing of OpenTelemetry, so that it can be asked whether or not that is installed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from hummingbird.domain.errors import MissingSetting

_GENERAL, _TRACES = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
_PATH = "v1/traces"
_PROTOCOL = "http/protobuf"
_PORTS = "give the collector's address for that, whose port is usually 4318"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`variable` is where it was found. `certificates`: a file with those that are trusted; empty where the usual ones
    or OpenTelemetry's own variable decide."""

    url: str = field(repr=False)
    variable: str
    certificates: str = ""

    @property
    def host(self) -> str:
        """For sentences: without user, password and query."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def endpoint_of(environment: Mapping[str, str], ca_bundle: str = "") -> Endpoint | None:
    """None if no traces are wanted. Raises MissingSetting."""
    variable, name = _set(environment, "ENDPOINT")
    if not variable:
        return None
    protocol_variable, protocol = _set(environment, "PROTOCOL")
    if protocol and protocol.lower() != _PROTOCOL:
        raise MissingSetting(
            f"{protocol_variable} asks for another protocol than {_PROTOCOL}, which traces are sent with: set it to "
            f"{_PROTOCOL}, and {_PORTS}."
        )
    url = name if variable == f"{_TRACES}ENDPOINT" else f"{name.removesuffix('/')}/{_PATH}"
    if not _is_address(url):
        raise MissingSetting(
            f"{variable} is no address: write it like http://collector.example:4318, or unset it to send no traces."
        )
    own_certificates, _ = _set(environment, "CERTIFICATE")
    return Endpoint(url, variable, "" if own_certificates else ca_bundle)


def header_secrets(environment: Mapping[str, str]) -> list[str]:
    """Credentials for the collector, as they stand in the variables and as they are sent. Also those that have no name
    in front: they are there by mistake, and secret all the same."""
    return list(dict.fromkeys(_secrets(environment.get(f"{prefix}HEADERS", "") for prefix in (_GENERAL, _TRACES))))


def _secrets(headers: Iterable[str]) -> Iterator[str]:
    for pair in (pair for header in headers for pair in header.split(",")):
        value = pair.partition("=")[2].strip() or pair.strip()
        for spelt in (value, unquote(value)):
            yield from (one for one in (spelt, spelt.rpartition(" ")[2]) if one)


def _set(environment: Mapping[str, str], what: str) -> tuple[str, str]:
    """The variable that decides and its value, empty if there is none; one for traces alone comes first."""
    for variable in (f"{_TRACES}{what}", f"{_GENERAL}{what}"):
        if value := environment.get(variable, "").strip():
            return variable, value
    return "", ""


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no number for a port, half an IPv6 address
        return False
