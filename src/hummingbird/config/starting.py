"""A configuration to begin with: the embedded workflows, and every other key as a comment with its default (G10).

Made of the table of defaults and the embedded configuration, so that it cannot say anything else than they do.
"""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from hummingbird.config.configuration import Configuration
from hummingbird.config.defaults import NOTHING, REQUIRED, TABLE
from hummingbird.config.load import load
from hummingbird.config.workflows import Workflow

PROMPTS_FOLDER = "workflows"
_HEAD = """\
# Hummingbird's configuration. Every key that there is stands in it: a line that begins with # shows the default, and
# what the key means. To change one, take the # away, and those of the lines that it stands below.
# Secrets are never in here: where one is needed, the name of an environment variable is.
#
#   hummingbird config check      finds mistakes; hummingbird config schema helps your editor to
#   hummingbird doctor            tries everything for real
"""
# Where a default cannot stand in a file: the key must be written, or makes sense only with a value.
_EXAMPLES: Mapping[str, Any] = MappingProxyType(
    {
        "settings.prices.*.input": 3,
        "settings.prices.*.output": 15,
        "workflows.*.data_sources.konflux.cluster_url": "https://api.cluster.example:6443/ns/tenant",
        "chat.permissions[].action": "ask",
        "chat.mcp_servers.*.command": "program",
    }
)
_SOURCES = "workflows.*.data_sources"
_NAMES: Mapping[str, str] = MappingProxyType(
    {"settings.prices": "MODEL", "chat.auxiliary": "summary", "chat.mcp_servers": "NAME", "projects": '"group/project"'}
)


def embedded() -> Configuration:
    """The workflows that one begins with, and their prompts."""
    return load(None, None)


def starting() -> str:
    """The text of hummingbird.yaml; prompts are expected in PROMPTS_FOLDER."""
    return "\n".join([_HEAD, *_settings(), "", *_workflows(embedded()), "", *_chat(), ""])


def _settings() -> Iterator[str]:
    yield "settings:"
    yield from _commented("settings", "  ")
    yield from _commented("budgets", "  ", section="budgets")


def _workflows(configuration: Configuration) -> Iterator[str]:
    yield "workflows:"
    for number, (name, workflow) in enumerate(configuration.workflows.items()):
        yield from ([""] if number else [])
        yield f"  {name}:"
        yield from _active(name, workflow, whole=not number)
        yield from ["    # All keys of the workflow above may stand here, too."] if number else _rest()
        yield from _projects(whole=not number)


def _active(name: str, workflow: Workflow, *, whole: bool) -> Iterator[str]:
    for key in ("trigger", "description", "inline_findings"):
        if key in workflow.model_fields_set:
            yield f"    {key}: {_written(getattr(workflow, key))}"
    if workflow.trigger is None:
        yield _comment("    ", "trigger", "merge_request", "Without it, it runs when somebody asks for it.")
    yield f"    prompt: {PROMPTS_FOLDER}/{name}.md"
    yield "    data_sources:"
    for source in workflow.data_sources.names:
        yield f"      {source}:"
        yield from _commented(f"{_SOURCES}.{source}", "        ") if whole else ()
    if whole:
        yield from _commented(
            _SOURCES, "      ", but=tuple(f"{_SOURCES}.{name}." for name in workflow.data_sources.names)
        )


def _rest() -> Iterator[str]:
    """The other keys of a workflow."""
    there = tuple(f"workflows.*.{key}" for key in ("trigger", "description", "prompt", "data_sources", "projects"))
    yield from _commented("workflows.*", "    ", but=there)
    yield from _commented("budgets", "    ", section="budgets")


def _projects(*, whole: bool) -> Iterator[str]:
    yield "    projects:"
    yield '      "*": {}  # every project that sends its webhooks here; name yours instead to leave out others'
    if whole:
        yield "      # A project may have some values of its own:"
        yield f"      # {_NAMES['projects']}:"
        yield from _commented("workflows.*.projects.*", "      ", depth=1)


def _chat() -> Iterator[str]:
    yield "chat:"
    yield from _commented("chat", "  ")


def _commented(
    prefix: str, indent: str, *, section: str = "", but: tuple[str, ...] = (), depth: int = 0
) -> Iterator[str]:
    """The keys below a prefix, with the sections around them; `section` has a name of its own for the prefix."""
    above: tuple[str, ...] = ()
    for key, row in TABLE.items():
        if not key.startswith(f"{prefix}.") or (but and key.startswith(but)):
            continue
        *around, name = _steps(key.removeprefix(f"{prefix}."), prefix)
        around = [section, *around] if section else around
        yield from _opened(tuple(around), above, indent, depth)
        first, above = tuple(around) != above, tuple(around)
        shown = _deep(above[:-1], f"- {name}", depth) if first and above[-1:] == ("-",) else _deep(above, name, depth)
        yield _comment(indent, shown, _EXAMPLES.get(key, row.default), row.meaning)


def _opened(around: tuple[str, ...], above: tuple[str, ...], indent: str, depth: int) -> Iterator[str]:
    """The sections that begin here."""
    for at, name in enumerate(around):
        if around[: at + 1] != above[: at + 1] and name != "-":
            yield f"{indent}# {_deep(around[:at], name, depth)}:"


def _deep(around: tuple[str, ...], name: str, depth: int) -> str:
    return f"{'  ' * (len(around) + depth)}{name}"


def _steps(key: str, prefix: str) -> Iterator[str]:
    """The parts of a key as the file has them: a name for *, and an item of a list for []."""
    whole = prefix
    for part in key.split("."):
        if part.endswith("[]"):
            yield part.removesuffix("[]")
            yield "-"
        else:
            yield _NAMES.get(whole, part) if part == "*" else part
        whole = f"{whole}.{part}"


def _comment(indent: str, key: str, value: Any, meaning: str) -> str:
    return f"{indent}# {key}: {_written(value)}".rstrip() + f"  # {meaning}"


def _written(value: Any) -> str:
    """As YAML has it, on one line. None: nothing is written."""
    if value is None or value is REQUIRED:
        return ""
    if value is NOTHING:
        return "{}"
    if isinstance(value, str) and value[:1].isalpha():
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
