"""Names, descriptions and schemas of the host tools, as a model sees them."""

from typing import Any

from hummingbird.core.shell.values import (
    COMMAND_SLACK_S,
    COMMAND_TIMEOUT_CAP_S,
    COMMAND_TIMEOUT_S,
    PROCESS_READ_BYTES,
    READ_LINES,
    SEARCH_MATCHES,
    SEARCH_PATTERN_CHARS,
    SEARCH_S,
)
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

_PATH = {"type": "string", "minLength": 1, "description": "Relative to the workspace, or absolute in it."}


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


READ_SPEC = ToolSpec(
    name="file_read",
    description="Reads a text file of the workspace, each line with its number, or lists a folder.",
    schema=_schema(
        ["path"],
        path=_PATH,
        offset={"type": "integer", "minimum": 1, "description": "First line; 1 unless given."},
        limit={"type": "integer", "minimum": 1, "description": f"Lines, at most {READ_LINES}."},
    ),
    toolset="workspace",
)
SEARCH_SPEC = ToolSpec(
    name="file_search",
    description=(
        "Searches the files of the workspace line by line, without those that git ignores. Returns path:line: text, "
        f"at most {SEARCH_MATCHES}. Without a pattern it lists the files that fit the glob."
    ),
    schema=_schema(
        [],
        pattern={
            "type": "string",
            "maxLength": SEARCH_PATTERN_CHARS,
            "description": "Regular expression of Python; (?i) at its beginning ignores case.",
        },
        literal={"type": "boolean", "description": "The pattern is plain text."},
        path={**_PATH, "description": "Folder or file; the whole workspace unless given."},
        glob={"type": "string", "minLength": 1, "description": "Such as *.py or src/**/test_*.py."},
    ),
    toolset="workspace",
    timeout_s=SEARCH_S + COMMAND_SLACK_S,
)
EDIT_SPEC = ToolSpec(
    name="file_edit",
    description=(
        "Changes a file of the workspace and returns the diff. With `old`, that text, which must be in the file "
        "exactly once, becomes `new`. Without it `new` is the whole file, with its folders if need be. A file that "
        "changed since you read it must be read again. The user can take each change back."
    ),
    schema=_schema(
        ["path", "new"],
        path=_PATH,
        old={"type": "string", "description": "Exact text, without line numbers."},
        new={"type": "string"},
    ),
    toolset="workspace",
    effects=frozenset({ToolEffect.WRITE}),
)

TERMINAL_SPEC = ToolSpec(
    name="terminal",
    description=(
        "Runs a shell command (bash -c) on the user's own machine, in the workspace, once it is approved. Returns its "
        "output and exit code. No input, no terminal; each command starts afresh, so cd belongs in the same command. "
        "What need not touch this machine belongs in the sandbox."
    ),
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1},
            "timeout_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": f"{COMMAND_TIMEOUT_S:g} unless given, at most {COMMAND_TIMEOUT_CAP_S:g}.",
            },
            "background": {
                "type": "boolean",
                "description": "Do not wait: returns a number for `process`. For servers and long work.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    toolset="terminal",
    effects=frozenset({ToolEffect.EXEC, ToolEffect.WRITE, ToolEffect.SEND}),
    timeout_s=COMMAND_TIMEOUT_CAP_S + COMMAND_SLACK_S,
)
PROCESS_SPEC = ToolSpec(
    name="process",
    description="Background processes of `terminal`: list them, read the output of one, or end it with all it started.",
    schema={
        "type": "object",
        "properties": {
            "action": {"enum": ["list", "read", "kill"]},
            "number": {"type": "integer", "minimum": 1},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": f"Byte to read from, up to {PROCESS_READ_BYTES}; what is new unless given.",
            },
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    toolset="terminal",
    effects=frozenset({ToolEffect.EXEC}),
)
