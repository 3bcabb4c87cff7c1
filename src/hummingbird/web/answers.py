"""A model's answer as HTML, and which of the lines that it quotes were really there (O4).

What a model wrote is untrusted: no HTML of its own, no image, no link but to the web. Each quoted line that stands in a
result of a tool leads to that line; others are marked, for a reader should not take them for evidence.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from hummingbird.domain.journal import Delegated, Entry, ToolFinished
from hummingbird.domain.web_limits import ENTRY_CHARS, QUOTES_LOOKED_FOR
from hummingbird.evidence.citations.judging import asked
from hummingbird.evidence.citations.lines import bare
from hummingbird.evidence.citations.quotations import is_proposal, quotations
from hummingbird.evidence.citations.record import Place, Wanted, recorded
from hummingbird.web.shown import shown

_WEB = re.compile(r"https?://", re.IGNORECASE)


def quoted(text: str) -> tuple[str, ...]:
    """The lines that an answer quotes, each once."""
    found = (line.text for one in quotations(shown(text).split("\n")) if not one.proposal for line in one.lines)
    return tuple(dict.fromkeys(line for line in found if asked(line) is not None))[:QUOTES_LOOKED_FOR]


def found(lines: Sequence[str], entries: Sequence[Entry]) -> dict[str, Place]:
    """Where each of them stands first, by its text as it is compared."""
    wanted = {bare(line): one for line in lines if (one := asked(line)) is not None}
    record = recorded(entries, Wanted(frozenset(key for one in wanted.values() for key in one.keys)))
    places: dict[str, Place] = {}
    for key, one in wanted.items():
        seen = (record.lines.get(each) for each in one.keys)
        place = next((each.place for each in seen if each is not None and each.place is not None), None)
        if place is not None and _is_shown(entries[place.entry - 1]):
            places[key] = place
    return places


def _is_shown(entry: Entry) -> bool:
    """Longer ones are cut where they are shown."""
    own = entry.entry if isinstance(entry, Delegated) else entry
    return isinstance(own, ToolFinished) and len(own.text) <= ENTRY_CHARS


def as_html(text: str, places: Mapping[str, Place], session_id: str) -> Markup:
    """`places`: of the lines that were found; none at all where nobody looked."""
    return Markup(_parser().render(shown(text), {"places": places, "session_id": session_id}))  # noqa: S704 - it escapes


class _Renderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        token = tokens[idx]
        lines = token.content.split("\n")[:-1] if token.content.endswith("\n") else token.content.split("\n")
        proposal = is_proposal(token.info, lines)
        made = "".join(self._line(line, env, proposal=proposal) for line in lines)
        return f'<pre class="quote">{made}</pre>\n'

    code_block = fence

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return str(escape(tokens[idx].content))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        if not _WEB.match(address):
            return "<a>"
        return f'<a href="{escape(address)}" rel="noreferrer noopener nofollow" target="_blank">'

    def _line(self, line: str, env: Any, *, proposal: bool) -> str:
        wanted, place = asked(line), env["places"].get(bare(line))
        if place is not None:
            where = f"/sessions/{escape(env['session_id'])}/entries/{place.entry}#l{place.line}"
            return f'<a class="proof" href="{where}">{escape(line)}</a>\n'
        if proposal or wanted is None or wanted.short:
            return f"{escape(line)}\n"
        return f'<span class="unseen" title="not among what tools showed">{escape(line)}</span>\n'


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    return made.enable("strikethrough").enable("table")
