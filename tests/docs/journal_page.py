"""docs/reference/journal.md, made of the types in core/journal.py: every kind of entry, and what is inside them."""

import dataclasses
import enum
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from hummingbird.core.journal import EndReason, JournalEntry, RunEnded, SessionOpened, UserSaid, dump_entry
from hummingbird.core.limits import JOURNAL_FORMAT

HEAD = f"""\
# The journal

Made of the types in `core/journal.py` by `make docs`. A session is a list of entries, `journal.jsonl`: one JSON
object a line, appended and never edited ([where it is](../sessions.md)). An entry that announces an effect is written
before it, the one that settles it after. `hummingbird sessions show ID --json` prints them.

This is format {JOURNAL_FORMAT}; format 1 is read as well, and a newer one is refused with a sentence.

- `kind` says which kind of entry it is. A line with a kind or a value that nobody knows is damage, and is told as such.
- `at` is the time, in seconds since 1970.
- A field that has its default is not written.
- Money is text, so that no digit is lost.
"""
_CODES = re.compile(r"\s*\((?:[A-Z]\d+(?:, )?)+\)")  # requirements, for those who change the code
_MEANINGS = {
    "RunStarted": "Work on an order, a message or a reply begins. `resumed`: somebody spoke in this session before.",
    "UserSaid": "A message from outside the program; `source` says whose.",
    "ModelCalled": "A request is about to be sent, with so many `messages`. `final`: the answer is to be the last one.",
    "ToolStarted": "A tool is about to run. `arguments` is the JSON text that the model wrote; what a hook made of it "
    "stands in the `tool_decided` before.",
    "ToolOutcome": "How a call was settled.",
}
_PLAIN = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Decimal: "text: a decimal number",
    Any: "any",
}


def page() -> str:
    kinds = get_args(JournalEntry)
    values = _inside(kinds)
    parts = [
        HEAD,
        "As lines:\n",
        *(f"    {dump_entry(entry).decode().strip()}" for entry in _examples()),
        "\n## Kinds of entries\n",
        *(part for kind in kinds for part in _entry(kind)),
        "## Values within entries\n",
        *(part for value in values for part in _value(value)),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _examples() -> tuple[JournalEntry, ...]:
    return (
        SessionOpened(session_id="3f2a8c", system="You are Hummingbird …", format=JOURNAL_FORMAT, at=1_790_000_000.0),
        UserSaid(text="Since when?", at=1_790_000_000.1),
        RunEnded(run_id="94e2de", reason=EndReason.COMPLETED, text="Since !11.", answered=True, at=1_790_000_004.5),
    )


def _entry(kind: type[Any]) -> Iterator[str]:
    tag = kind.__struct_config__.tag
    yield f"### {tag}\n"
    if said := _said(kind):
        yield f"{said}\n"
    fields = [each for each in msgspec.structs.fields(kind) if each.name != "at"]
    yield from _table([(each.name, each.type, _default(each.default, each.default_factory)) for each in fields])


def _value(value: type[Any]) -> Iterator[str]:
    yield f"### {value.__name__}\n"
    if said := _said(value):
        yield f"{said}\n"
    if issubclass(value, enum.Enum):
        yield "One of " + ", ".join(f"`{each.value}`" for each in value) + ".\n"
        return
    hints = get_type_hints(value)
    fields = msgspec.structs.fields(value) if issubclass(value, msgspec.Struct) else dataclasses.fields(value)
    yield from _table([(each.name, hints[each.name], _default(each.default, each.default_factory)) for each in fields])


def _table(rows: list[tuple[str, Any, str]]) -> Iterator[str]:
    if not rows:
        return
    shown = [f"| `{name}` | {_words(of)} | {default} |" for name, of, default in rows]
    yield "\n".join(["| field | type | default |", "|---|---|---|", *shown, ""])


def _said(of: type[Any]) -> str:
    """Its docstring, which dataclasses and structs without one may have been given by Python."""
    text = of.__doc__ or ""
    written = text if text and not text.startswith((f"{of.__name__}(", "str(object=")) else ""
    if not written:
        return _MEANINGS[of.__name__]
    return _CODES.sub("", " ".join(written.split()))


def _default(default: Any, factory: Any) -> str:
    missing = (msgspec.NODEFAULT, dataclasses.MISSING)
    if default in missing and factory in missing:
        return "required"
    value = default if default not in missing else factory()
    if dataclasses.is_dataclass(value):
        return "all its defaults"
    return f"`{msgspec.json.encode(value).decode()}`"


def _words(of: Any) -> str:
    if of in _PLAIN:
        return _PLAIN[of]
    origin, inner = get_origin(of), get_args(of)
    if origin in (Union, UnionType):
        named = [_words(each) for each in inner if each is not NoneType]
        return " or ".join([*named, *(["null"] if NoneType in inner else [])])
    if origin is tuple:
        return f"list of {_words(inner[0])}"
    if origin in (dict, Mapping):
        return "object"
    if tag := getattr(getattr(of, "__struct_config__", None), "tag", None):
        return f"[`{tag}`](#{tag})"
    return f"[{of.__name__}](#{of.__name__.lower()})"


def _inside(kinds: tuple[type[Any], ...]) -> list[type[Any]]:
    """Types that entries are made of and that are none themselves, in the order in which they are met."""
    found: list[type[Any]] = []
    waiting: list[Any] = [each.type for kind in kinds for each in msgspec.structs.fields(kind)]
    while waiting:
        of = waiting.pop(0)
        waiting += get_args(of)
        if not isinstance(of, type) or of in found or of in kinds:
            continue
        composed = dataclasses.is_dataclass(of) or issubclass(of, msgspec.Struct)
        if composed:
            waiting += get_type_hints(of).values()
        if composed or issubclass(of, enum.Enum):
            found.append(of)
    return found
