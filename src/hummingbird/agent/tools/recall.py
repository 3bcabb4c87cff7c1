"""`recall` (C7): what was said before, here and in other sessions. Also what a compaction took out of the view: the
journal keeps everything (L20).

Other sessions are found by the index (S4), this one in its own journal, so it is found also when the index is broken.
Masked before it is cut, fenced: whatever was said may have been an outsider's words.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from hummingbird.agent.interruptible import within
from hummingbird.agent.tools.past import Place, Said, found_here, said_around
from hummingbird.agent.tools.results import Ready, bounded, framed
from hummingbird.domain.errors import ArgumentsInvalid, HummingbirdError, NothingThere
from hummingbird.domain.journal import Entry
from hummingbird.domain.limits import RESULT_FRAME_BYTES
from hummingbird.domain.mind_limits import (
    RECALL_AROUND,
    RECALL_AROUND_CAP,
    RECALL_BESIDE_CHARS,
    RECALL_BYTES,
    RECALL_HERE,
    RECALL_INDEX_S,
    RECALL_PER_SESSION,
    RECALL_SESSIONS,
    RECALL_SNIPPET_CHARS,
    RECALL_TEXT_CHARS,
)
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.session_limits import SEARCH_HITS
from hummingbird.domain.sessions import Summary
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.session_index import MATCH_BEGINS, MATCH_ENDS, Hit, Spoken
from hummingbird.ports.tool import Output, ToolContext

T = TypeVar("T")
NAME = "recall"
CURRENT = "current"
SPEC = ToolSpec(
    name=NAME,
    description=(
        "Finds what was said before: in this session, also what a summary has replaced since, and in earlier ones. "
        "search: words or an exact name, path, id; gives sessions with numbered messages. read: the message of that "
        "number with those around it; go further with another number."
    ),
    schema={
        "type": "object",
        "properties": {
            "action": {"enum": ["search", "read"]},
            "query": {"type": "string", "description": "search"},
            "session": {"type": "string", "description": f"read: an id, or {CURRENT}, which is the default"},
            "number": {"type": "integer", "minimum": 1, "description": "read: of the message"},
            "part": {"type": "integer", "minimum": 0, "description": "read: of #number.part"},
            "before": {"type": "integer", "minimum": 0, "maximum": RECALL_AROUND_CAP},
            "after": {"type": "integer", "minimum": 0, "maximum": RECALL_AROUND_CAP},
            "offset": {"type": "integer", "minimum": 0, "description": "read: where in a long message to begin"},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    toolset=NAME,
)


class Past(Protocol):
    """What recall asks of an index over sessions (`ports.session_index`)."""

    async def search(self, query: str, limit: int = ..., project: str = ...) -> Sequence[Hit]: ...

    async def around(
        self, session_id: str, number: int, before: int, after: int, part: int = ...
    ) -> Sequence[Spoken]: ...


class Recall:
    """`past` None: there is no index, and only this session is searched. `project`: if given, only sessions of it."""

    def __init__(
        self,
        past: Past | None,
        entries: Callable[[], Sequence[Entry]],
        secrets: Secrets | None = None,
        project: str = "",
    ) -> None:
        self._past = past
        self._entries = entries
        self._secrets = secrets or Secrets()
        self._project = project

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def available(self) -> bool:
        return True

    def of(self, entries: Callable[[], Sequence[Entry]]) -> "Recall":
        """The same for another session: what a compaction takes from a sub-agent's view is in its own journal."""
        return Recall(self._past, entries, self._secrets, self._project)

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        if arguments["action"] == "search":
            return await self._search(plain(arguments.get("query", "")), context)
        if "number" not in arguments:
            raise ArgumentsInvalid("read needs the number of a message; search gives some.")
        return await self._read(arguments, context)

    async def _search(self, query: str, context: ToolContext) -> Output:
        if not query.strip():
            raise ArgumentsInvalid("search needs a query: words, or an exact name, path or id.")
        here = found_here(self._entries(), query, RECALL_HERE, NAME)
        hits, trouble = await self._elsewhere(query, context.session_id)
        lines = [*self._told_here(here), *self._told_elsewhere(hits)]
        context.progress(f"{len(here)} places in this session, {len({hit.summary.session_id for hit in hits})} others")
        if not lines:
            return Ready(f"Nothing was found.{trouble} Try fewer or other words.")
        return self._ready("\n".join(lines), f"Read on with action read, its session and number.{trouble}")

    async def _elsewhere(self, query: str, session_id: str) -> tuple[Sequence[Hit], str]:
        """Of the best sessions but this one, and what went wrong, in a sentence."""
        if self._past is None:
            return (), " Other sessions are not searched: there is no index of them."
        try:
            hits = await _in_time(self._past.search(query, SEARCH_HITS, self._project))
        except _INDEX_TROUBLE as error:
            return (), f" Other sessions could not be searched: {_why(error)}"
        return [hit for hit in hits if hit.summary.session_id != session_id], ""

    def _told_here(self, places: Sequence[Place]) -> Iterator[str]:
        if places:
            yield f"session {CURRENT}:"
        for place in places:
            yield f"  {_who(place.said)} {place.snippet(self._secrets.mask, RECALL_SNIPPET_CHARS)}"

    def _told_elsewhere(self, hits: Sequence[Hit]) -> Iterator[str]:
        sessions: dict[str, list[Hit]] = {}
        for hit in hits:
            sessions.setdefault(hit.summary.session_id, []).append(hit)
        for found in list(sessions.values())[:RECALL_SESSIONS]:
            yield f"session {found[0].summary.session_id}{self._about(found[0].summary)}:"
            for hit in found[:RECALL_PER_SESSION]:
                said = Said(hit.number, hit.part, hit.who, hit.snippet, hit.at)
                snippet = hit.snippet.replace(MATCH_BEGINS, "").replace(MATCH_ENDS, "")
                yield f"  {_who(said)} {shortened(self._secrets.mask(snippet), 2 * RECALL_SNIPPET_CHARS)}"

    def _about(self, summary: Summary) -> str:
        about = [summary.about.project, f"!{summary.about.mr_iid}" if summary.about.mr_iid else "", summary.title]
        said = shortened(self._secrets.mask(" ".join(filter(None, about))), 160)
        return f" ({said})" if said else ""

    async def _read(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        session, number, part = arguments.get("session") or CURRENT, arguments["number"], arguments.get("part", 0)
        before, after = arguments.get("before", RECALL_AROUND), arguments.get("after", RECALL_AROUND)
        if session in {CURRENT, context.session_id}:
            around = said_around(self._entries(), number, part, before, after)
        else:
            around = await self._around(session, number, part, before, after)
        if not around:
            raise NothingThere(f"There is no message {number} in session {shortened(session, 80)}.")
        wanted = next((n for n, said in enumerate(around) if said[:2] >= (number, part)), len(around) - 1)
        return self._ready(self._window(around, wanted, arguments.get("offset", 0)), _further(session, around))

    async def _around(self, session: str, number: int, part: int, before: int, after: int) -> list[Said]:
        if self._past is None:
            raise NothingThere("Other sessions cannot be read here: there is no index of them.")
        try:
            spoken = await _in_time(self._past.around(session, number, before, after, part))
        except _INDEX_TROUBLE as error:
            raise NothingThere(f"That session could not be read: {_why(error)}") from error
        return [Said(one.number, one.part, one.who, one.text, one.at) for one in spoken]

    def _window(self, around: Sequence[Said], wanted: int, offset: int) -> str:
        """The message that was asked for with most of the room, those around it in short; what does not fit is left out
        from the far ends."""
        kept: dict[int, str] = {}
        room = RECALL_BYTES - RESULT_FRAME_BYTES
        for place in sorted(range(len(around)), key=lambda place: abs(place - wanted)):
            line = self._whole(around[place], offset) if place == wanted else self._short(around[place])
            room -= len(line.encode()) + 1
            if room < 0 and kept:
                break
            kept[place] = line
        return "\n".join(kept[place] for place in sorted(kept))

    def _short(self, said: Said) -> str:
        return f"{_who(said)} {shortened(self._secrets.mask(plain(said.text)), RECALL_BESIDE_CHARS)}"

    def _whole(self, said: Said, offset: int) -> str:
        """As much as there is room for, from `offset` on."""
        text = self._secrets.mask(plain(said.text))
        part = text[offset : offset + RECALL_TEXT_CHARS]
        end = offset + len(part)
        left = f"\n[characters {offset} to {end} of {len(text)}; go on with offset {end}]" if end < len(text) else ""
        return f"{_who(said)}\n{part}{left}"

    def _ready(self, text: str, said: str) -> Ready:
        return Ready(framed(SPEC, bounded(text, RECALL_BYTES), f"[{said.strip()}]"))


_INDEX_TROUBLE = (HummingbirdError, OSError, TimeoutError)


async def _in_time(work: Coroutine[Any, Any, T]) -> T:
    return await within(RECALL_INDEX_S, work)


def _why(error: BaseException) -> str:
    if isinstance(error, HummingbirdError):
        return shortened(str(error), 300)
    return (
        f"the index did not answer within {RECALL_INDEX_S:g} s." if isinstance(error, TimeoutError) else "it is broken."
    )


def _who(said: Said) -> str:
    when = datetime.fromtimestamp(said.at, UTC).strftime(" %Y-%m-%d %H:%M") if said.at else ""
    part = f".{said.part}" if said.part else ""
    return f"#{said.number}{part} {said.who}{when}:"


def _further(session: str, around: Sequence[Said]) -> str:
    return f"Session {shortened(session, 80)}, messages {around[0].number} to {around[-1].number}."
