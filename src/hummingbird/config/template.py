"""Generate the hummingbird.yaml that a new user starts with.

It contains the embedded workflows, and every other key as a comment with its default. The text is generated from the
table of defaults and the embedded configuration, so it cannot differ from them.
"""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from hummingbird.config.configuration import Configuration
from hummingbird.config.defaults import CONFIG_KEYS, EMPTY_MAPPING, REQUIRED
from hummingbird.config.loader import load_config
from hummingbird.config.settings import WorkflowSettings

PROMPTS_FOLDER = "workflows"
_HEADER = """\
# Hummingbird's configuration. It contains every key: a line that begins with # shows the default and the meaning of a
# key. To change a value, remove the # from its line and from the lines of the sections above it.
# This file never contains secrets: where one is needed, write the name of an environment variable.
#
#   hummingbird config check      finds mistakes; with hummingbird config schema your editor finds them too
#   hummingbird doctor            tests everything against the real services
"""
# Example values for keys whose default cannot be written: required keys, and keys that need a value to make sense.
_EXAMPLES: Mapping[str, Any] = MappingProxyType(
    {
        "settings.models.*.context_tokens": 32_768,
        "settings.prices.*.input": 3,
        "settings.prices.*.output": 15,
        "workflows.*.data_sources.konflux.cluster_url": "https://api.cluster.example:6443/ns/tenant",
        "chat.permissions[].action": "ask",
        "chat.mcp_servers.*.command": "program",
    }
)
_SOURCES = "workflows.*.data_sources"
_PLACEHOLDERS: Mapping[str, str] = MappingProxyType(
    {
        "settings.prices": "MODEL",
        "settings.models": "MODEL",
        "chat.auxiliary": "summary",
        "chat.mcp_servers": "NAME",
        "projects": '"group/project"',
    }
)


def load_embedded() -> Configuration:
    """Load the embedded configuration: the default workflows and their prompts."""
    return load_config(None, None)


def render_template() -> str:
    """Return the text of hummingbird.yaml. It expects the prompts in PROMPTS_FOLDER."""
    return "\n".join([_HEADER, *_settings_lines(), "", *_workflow_lines(load_embedded()), "", *_chat_lines(), ""])


def _settings_lines() -> Iterator[str]:
    yield "settings:"
    yield from _key_comments("settings", "  ")
    yield from _key_comments("budgets", "  ", section="budgets")


def _workflow_lines(configuration: Configuration) -> Iterator[str]:
    yield "workflows:"
    for number, (name, workflow) in enumerate(configuration.workflows.items()):
        yield from ([""] if number else [])
        yield f"  {name}:"
        yield from _active_key_lines(name, workflow, whole=not number)
        yield from ["    # All keys of the workflow above are possible here, too."] if number else _other_key_lines()
        yield from _project_lines(whole=not number)


def _active_key_lines(name: str, workflow: WorkflowSettings, *, whole: bool) -> Iterator[str]:
    for key in ("trigger", "description", "inline_findings", "max_inline_size", "citations"):
        if key in workflow.model_fields_set:
            meaning = f"  # {CONFIG_KEYS[f'workflows.*.{key}'].meaning}" if key == "citations" else ""
            yield f"    {key}: {_to_yaml(getattr(workflow, key))}{meaning}"
    if workflow.trigger is None:
        yield _comment_line("    ", "trigger", "merge_request", "Without a trigger it runs only on command.")
    yield f"    prompt: {PROMPTS_FOLDER}/{name}.md"
    yield "    data_sources:"
    for source in workflow.data_sources.declared_names:
        yield f"      {source}:"
        yield from _key_comments(f"{_SOURCES}.{source}", "        ") if whole else ()
    if whole:
        yield from _key_comments(
            _SOURCES, "      ", but=tuple(f"{_SOURCES}.{name}." for name in workflow.data_sources.declared_names)
        )


def _other_key_lines() -> Iterator[str]:
    there = tuple(
        f"workflows.*.{key}" for key in ("trigger", "description", "citations", "prompt", "data_sources", "projects")
    )
    yield from _key_comments("workflows.*", "    ", but=there)
    yield from _key_comments("budgets", "    ", section="budgets")


def _project_lines(*, whole: bool) -> Iterator[str]:
    yield "    projects:"
    yield '      "*": {}  # every project that sends its webhooks here; name your projects instead to exclude others'
    if whole:
        yield "      # A project can have its own values:"
        yield f"      # {_PLACEHOLDERS['projects']}:"
        yield from _key_comments("workflows.*.projects.*", "      ", depth=1)


def _chat_lines() -> Iterator[str]:
    yield "chat:"
    yield from _key_comments("chat", "  ")


def _key_comments(
    prefix: str, indent: str, *, section: str = "", but: tuple[str, ...] = (), depth: int = 0
) -> Iterator[str]:
    """Yield the keys below a prefix as comments, with the sections around them.

    `section` is the section's name when the prefix does not contain it.
    """
    above: tuple[str, ...] = ()
    for key, row in CONFIG_KEYS.items():
        if not key.startswith(f"{prefix}.") or (but and key.startswith(but)):
            continue
        *around, name = _key_parts(key.removeprefix(f"{prefix}."), prefix)
        around = [section, *around] if section else around
        yield from _section_headers(tuple(around), above, indent, depth)
        first, above = tuple(around) != above, tuple(around)
        shown = (
            _indent_key(above[:-1], f"- {name}", depth)
            if first and above[-1:] == ("-",)
            else _indent_key(above, name, depth)
        )
        yield _comment_line(indent, shown, _EXAMPLES.get(key, row.default), row.meaning)


def _section_headers(around: tuple[str, ...], above: tuple[str, ...], indent: str, depth: int) -> Iterator[str]:
    """Yield a header for each section of `around` that the previous key was not in."""
    for at, name in enumerate(around):
        if around[: at + 1] != above[: at + 1] and name != "-":
            yield f"{indent}# {_indent_key(around[:at], name, depth)}:"


def _indent_key(around: tuple[str, ...], name: str, depth: int) -> str:
    return f"{'  ' * (len(around) + depth)}{name}"


def _key_parts(key: str, prefix: str) -> Iterator[str]:
    """Split a key into the parts that the file shows: a placeholder name for *, and a list item for []."""
    whole = prefix
    for part in key.split("."):
        if part.endswith("[]"):
            yield part.removesuffix("[]")
            yield "-"
        else:
            yield _PLACEHOLDERS.get(whole, part) if part == "*" else part
        whole = f"{whole}.{part}"


def _comment_line(indent: str, key: str, value: Any, meaning: str) -> str:
    return f"{indent}# {key}: {_to_yaml(value)}".rstrip() + f"  # {meaning}"


def _to_yaml(value: Any) -> str:
    """Format a value as YAML on one line; return an empty text for None and for required values."""
    if value is None or value is REQUIRED:
        return ""
    if value is EMPTY_MAPPING:
        return "{}"
    if isinstance(value, str) and value[:1].isalpha():
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
