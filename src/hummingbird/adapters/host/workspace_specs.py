"""What a model is told of the tools for files."""

from typing import Any

from hummingbird.domain.host_limits import (
    COMMAND_SLACK_S,
    READ_LINES,
    SEARCH_MATCHES,
    SEARCH_PATTERN_CHARS,
    SEARCH_S,
)
from hummingbird.domain.tools import Effect, ToolSpec

_PATH = {"type": "string", "minLength": 1, "description": "Relative to the workspace, or absolute in it."}


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


READ = ToolSpec(
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
SEARCH = ToolSpec(
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
EDIT = ToolSpec(
    name="file_edit",
    description=(
        "Changes a file of the workspace and returns the diff. With `old`, that text, which must be in the file "
        "exactly once, becomes `new`. Without it `new` is the whole file, with its folders if need be. A file that "
        "changed since you read it must be read again. The user can take each change back."
    ),
    schema=_schema(
        ["path", "new"],
        path=_PATH,
        old={"type": "string", "minLength": 1, "description": "Exact text, without line numbers."},
        new={"type": "string"},
    ),
    toolset="workspace",
    effects=frozenset({Effect.WRITE}),
)
