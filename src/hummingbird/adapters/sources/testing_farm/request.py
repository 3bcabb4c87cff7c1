"""A test request as Testing Farm's API tells it, made into what we use of it. Pure, and total: anything may be missing.

What the environments were given (variables, secrets) is not even looked at.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hummingbird.domain.errors import AnswerUnusable
from hummingbird.domain.limits import (
    FARM_ENVIRONMENTS,
    FARM_ENVIRONMENTS_BYTES,
    FARM_FIELD_CHARS,
    FARM_PART_BYTES,
    STATUS_CHARS,
    URL_CHARS,
)
from hummingbird.domain.text import plain, shortened

_WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
_ENDED = frozenset({"complete", "error", "canceled"})
_KINDS = ("fmf", "script", "sti")
_APART = ("result", "environments_requested")
_NULL = msgspec.Raw(b"null")
_USER = re.compile(r"(?<=://)[^/@\s]*@")


class _Answer(msgspec.Struct):
    state: msgspec.Raw = _NULL
    result: msgspec.Raw = _NULL
    run: msgspec.Raw = _NULL
    test: msgspec.Raw = _NULL
    environments_requested: msgspec.Raw = _NULL
    created: msgspec.Raw = _NULL
    updated: msgspec.Raw = _NULL
    queued_time: msgspec.Raw = _NULL
    run_time: msgspec.Raw = _NULL


class _Result(msgspec.Struct):
    overall: msgspec.Raw = _NULL
    summary: msgspec.Raw = _NULL
    xunit: msgspec.Raw = _NULL
    xunit_url: msgspec.Raw = _NULL


@dataclass(frozen=True, slots=True)
class FarmRequest:
    """`artifacts` is empty before the run begins; `xunit` is a report that old answers hold themselves. `told` is what
    the model hears of all this."""

    id: str
    state: str
    overall: str
    summary: str
    artifacts: str
    xunit: str
    xunit_url: str
    told: Mapping[str, Any]

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    @property
    def standing(self) -> str:
        """For a sentence of ours: words that Testing Farm uses, and no others."""
        overall = f", overall result {self.overall}" if _WORD.fullmatch(self.overall) else ""
        return f"its state is {self.state if _WORD.fullmatch(self.state) else 'unknown'}{overall}"


def read_request(request_id: str, content: bytes) -> FarmRequest:
    """Raises AnswerUnusable for what is no JSON object."""
    try:
        raw, result = _parts(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_ours() from error
    run = _within(raw, "run")
    return FarmRequest(
        id=request_id,
        state=_word(raw.get("state")),
        overall=_word(result.get("overall")),
        summary=_word(result.get("summary"), STATUS_CHARS),
        artifacts=_address(run.get("artifacts")),
        xunit=_report(result.get("xunit")),
        xunit_url=_address(result.get("xunit_url")),
        told=dict(_told(request_id, raw, result, run)),
    )


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What we use of an answer, and of its result. The rest is passed over: building all that somebody may have put
    into a request would stop everything else for seconds."""
    parts = msgspec.json.decode(content, type=_Answer)
    result = bytes(parts.result)
    within = msgspec.json.decode(result, type=_Result) if result.startswith(b"{") else _Result()
    raw = {name: _built(getattr(parts, name)) for name in _Answer.__struct_fields__ if name not in _APART}
    raw["environments"] = _objects(bytes(parts.environments_requested))
    return raw, {name: _built(getattr(within, name)) for name in _Result.__struct_fields__}


def _objects(part: bytes) -> list[msgspec.Raw]:
    sound = part.startswith(b"[") and len(part) <= FARM_ENVIRONMENTS_BYTES
    listed = msgspec.json.decode(part, type=list[msgspec.Raw]) if sound else []
    return [each for each in listed if bytes(each).startswith(b"{")]


def _built(part: msgspec.Raw) -> Any:
    """None for what is longer than it should be; a report is one long text."""
    text = bytes(part)
    return msgspec.json.decode(text) if len(text) <= FARM_PART_BYTES or text.startswith(b'"') else None


def _told(request_id: str, raw: Any, result: Any, run: Any) -> Iterator[tuple[str, Any]]:
    yield "request_id", request_id
    yield "state", _word(raw.get("state")) or None
    yield "overall", _word(result.get("overall")) or None
    yield "summary", _word(result.get("summary"), STATUS_CHARS) or None
    for name in ("queued_time", "run_time"):
        if isinstance(raw.get(name), int | float) and not isinstance(raw[name], bool):
            yield f"{name}_s", raw[name]
    for name in ("created", "updated"):
        if when := _word(raw.get(name)):
            yield name, when
    yield "artifacts", _address(run.get("artifacts")) or None
    if test := _test(_within(raw, "test")):
        yield "test", test
    yield from _environments(raw["environments"])


def _test(test: Any) -> dict[str, str]:
    for kind in _KINDS:
        if found := _within(test, kind):
            fields = {name: _word(found.get(name)) for name in ("url", "ref", "path", "name")}
            return {"kind": kind, **{name: _USER.sub("", value) for name, value in fields.items() if value}}
    return {}


def _environments(given: list[msgspec.Raw]) -> Iterator[tuple[str, Any]]:
    if given:
        yield "environments", [_environment(_built(each) or {}) for each in given[:FARM_ENVIRONMENTS]]
    if len(given) > FARM_ENVIRONMENTS:
        yield "environments_left_out", len(given) - FARM_ENVIRONMENTS


def _environment(given: Any) -> dict[str, str | None]:
    return {"arch": _word(given.get("arch")) or None, "compose": _word(_within(given, "os").get("compose")) or None}


def _within(given: Any, name: str) -> dict[str, Any]:
    found = given.get(name)
    return found if isinstance(found, dict) else {}


def _word(value: Any, chars: int = FARM_FIELD_CHARS) -> str:
    if not isinstance(value, str):
        return ""
    line = shortened(plain(value), chars)
    return line if line.isprintable() else "".join(letter if letter.isprintable() else "�" for letter in line)


def _address(value: Any) -> str:
    """As it is: what is wrong with it is said by the allow-list. A longer one is none."""
    return value.strip() if isinstance(value, str) and len(value) <= URL_CHARS else ""


def _report(value: Any) -> str:
    return value if isinstance(value, str) and value.lstrip().startswith("<") else ""


def _not_ours() -> AnswerUnusable:
    return AnswerUnusable(
        "Testing Farm's answer is no request: is api_url the address of its API, and nothing in between?"
    )
