"""Says which values of the environment are secret, and which variables no run may see."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hummingbird.config.configuration import Configuration
from hummingbird.config.field_types import FORBIDDEN_PREFIX
from hummingbird.core.masking import Secrets

_HELD_BACK = re.compile(
    rf"{FORBIDDEN_PREFIX}|HUMMINGBIRD_(?:WEBHOOK|DASHBOARD)_|SENTRY_DSN$|OTEL_EXPORTER_OTLP_(?:TRACES_)?HEADERS$",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_DSN$|PAT$|_HEADERS$", re.IGNORECASE)

_PATH_STARTS = ("/", "./", "~")


def environment_secrets(environment: Mapping[str, str], others: Iterable[str] = ()) -> Secrets:
    """Return the secrets: `others`, and the values of all variables whose names say that they hold a secret.

    A path to a file that holds a secret is no secret. Values that are withheld from runs always are, even if they look
    like a path: Base64 may begin with a slash.
    """
    named = ((name, value) for name, value in environment.items() if _SECRET_NAME.search(name))
    values = (value for name, value in named if _HELD_BACK.match(name) or not _is_path(value))
    return Secrets([*values, *others])


def _is_path(value: str) -> bool:
    try:
        return value.startswith(_PATH_STARTS) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):  # too long for one, no such user, a NUL
        return False


def split_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the environment that a run may see, and the values that are withheld: write tokens and our own webhook
    secrets.

    A run cannot leak what it does not have. That these values are also masked is a second line of defence.
    """
    held_back = {name: value for name, value in environment.items() if _HELD_BACK.match(name)}
    given = {name: value for name, value in environment.items() if name not in held_back}
    return given, [value.strip() for value in held_back.values() if value.strip()]


def tool_secret_values(configuration: Configuration, environment: Mapping[str, str]) -> list[str]:
    """Return the values of all variables that workflows read with and that MCP servers get, whatever their names."""
    names: set[str] = set()
    for workflow in configuration.workflows.values():
        sources = workflow.data_sources
        declared = (sources.gitlab, sources.testing_farm)
        names.update(one.token_env for one in declared if one is not None)
        for entry in workflow.projects.values():
            names.update((entry.tokens.gitlab, entry.tokens.testing_farm))
    for server in configuration.chat.mcp_servers.values():
        names.update((*server.env, *server.headers_env.values()))
    return [value for name in sorted(names) if (value := environment.get(name, "").strip())]


def all_secrets(configuration: Configuration, environment: Mapping[str, str]) -> Secrets:
    """Return everything that no conversation, page or index may show."""
    given, held_back = split_environment(environment)
    return environment_secrets(given, [*held_back, *tool_secret_values(configuration, environment)])
