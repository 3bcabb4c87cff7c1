"""How a tool call looks in an editor: its kind, its title, the files it is about, the change it will make."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from acp.helpers import text_block
from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    ToolCallLocation,
    ToolKind,
)

from hummingbird.chat.acp.limits import OLD_FILE_BYTES, RESULT_CHARS, TITLE_CHARS
from hummingbird.domain.messages import ToolCall
from hummingbird.domain.text import plain, shortened

READ, SEARCH, EDIT = "file_read", "file_search", "file_edit"
Content = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
_BY_NAME: Mapping[str, ToolKind] = {
    READ: "read", SEARCH: "search", EDIT: "edit", "terminal": "execute", "process": "execute",
    "sandbox_exec": "execute", "recall": "search", "todo": "think", "clarify": "think", "delegate": "think",
    "memory": "other", "skill": "read",
}  # fmt: skip
_BY_TOOLSET: Mapping[str, ToolKind] = {
    "gitlab": "fetch", "konflux": "fetch", "testing_farm": "fetch", "sandbox": "execute", "terminal": "execute",
}  # fmt: skip


def kind_of(name: str, toolset: str = "") -> ToolKind:
    return _BY_NAME.get(name) or ("fetch" if "fetch" in name else _BY_TOOLSET.get(toolset, "other"))


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Empty for what is no JSON object: a model may write anything."""
    try:
        found = msgspec.json.decode(plain(call.arguments))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def title_of(call: ToolCall, arguments: Mapping[str, Any]) -> str:
    for name in ("command", "path", "pattern", "question"):
        if isinstance(said := arguments.get(name), str) and said.strip():
            return shortened(f"{call.name}: {said}", TITLE_CHARS)
    return shortened(plain(f"{call.name} {call.arguments}"), TITLE_CHARS)


def locations_of(name: str, arguments: Mapping[str, Any], workspace: Path) -> list[ToolCallLocation] | None:
    path, line = arguments.get("path"), arguments.get("offset")
    if name not in {READ, SEARCH, EDIT} or not isinstance(path, str) or not path or "\x00" in path:
        return None
    first = line if name == READ and type(line) is int and line > 0 else None
    return [ToolCallLocation(path=_absolute(workspace, path), line=first)]


def change_of(name: str, arguments: Mapping[str, Any], workspace: Path, *, look: bool) -> Content | None:
    """What an edit will make of a file. `look`: it is about to happen, so what stands there is what it changes."""
    path, old, new = arguments.get("path"), arguments.get("old"), arguments.get("new")
    if name != EDIT or not isinstance(path, str) or not isinstance(new, str) or "\x00" in path:
        return None
    if not isinstance(old, str):
        old = _content(workspace, path) if look else None
    return FileEditToolCallContent(type="diff", path=_absolute(workspace, path), old_text=old, new_text=new)


def words(text: str) -> ContentToolCallContent:
    """Bounded, and said to be."""
    if len(text) > RESULT_CHARS:
        text = f"{text[:RESULT_CHARS]}\n[… {len(text) - RESULT_CHARS:,} more characters, which the model has read]"
    return ContentToolCallContent(type="content", content=text_block(plain(text)))


def whole(text: str) -> ContentToolCallContent:
    return ContentToolCallContent(type="content", content=text_block(plain(text)))


def _absolute(workspace: Path, path: str) -> str:
    return os.path.normpath(workspace / path)


def _content(workspace: Path, path: str) -> str | None:
    """None for a file that is not there, not text, too long, or not of the workspace."""
    try:
        found = (workspace / path).resolve(strict=True)
        if not found.is_relative_to(workspace.resolve()):
            return None
        descriptor = os.open(found, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            content = file.read(OLD_FILE_BYTES + 1)
        return content.decode() if len(content) <= OLD_FILE_BYTES else None
    except (OSError, ValueError):  # ValueError: not UTF-8
        return None
