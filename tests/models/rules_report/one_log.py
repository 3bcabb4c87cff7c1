"""A log and two tools over it: a place to investigate that is as small as can be."""

import re
from pathlib import Path
from typing import Any

from hummingbird.core.errors import ArgumentsInvalid
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.lab.case import find_case
from tests.standins.function_tool import FunctionTool

CASE = find_case("registry-timeout").folder
ORDER = '{"project":"hashicorp/terraform","job":"e2e tests, windows","log":"job.log","session_id":"%s"}'
INSTRUCTIONS = (
    "A CI job failed. Find out why from its log and say whether the change under test caused it. "
    "Quote the lines that show it, with their numbers."
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def log_tools(path: Path) -> list[Tool]:
    """Two tools over one log: enough to investigate with."""
    lines = [_ANSI.sub("", line) for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]

    async def search_log(pattern: str, limit: int = 20) -> str:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ArgumentsInvalid(f"not a regular expression: {error}") from error
        found = [f"{number}: {line}" for number, line in enumerate(lines, 1) if wanted.search(line)]
        return "\n".join([*found[:limit], f"[{len(found)} of {len(lines)} lines match]"])

    async def read_log(first: int, last: int) -> str:
        return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1) if first <= number <= last)

    return [
        FunctionTool(
            ToolSpec(
                name="search_log",
                description="Lines of the job's log that match a regular expression, with their numbers. Start here.",
                schema=_object({"pattern": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}, "pattern"),
            ),
            search_log,
        ),
        FunctionTool(
            ToolSpec(
                name="read_log",
                description="A range of lines of the job's log, both ends included.",
                schema=_object({"first": {"type": "integer"}, "last": {"type": "integer"}}, "first", "last"),
            ),
            read_log,
        ),
    ]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
