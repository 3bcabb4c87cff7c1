"""A model's answer as HTML, and which of the lines that it quotes were really there (O4).

What a model wrote is untrusted: no HTML of its own, no image, no link but to the web. Each quoted line that stands in a
result of a tool leads to that line; others are marked, for a reader should not take them for evidence.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from hummingbird.domain.journal import Delegated, Entry, ToolFinished
from hummingbird.domain.web_limits import ENTRY_CHARS, QUOTES_LOOKED_FOR
from hummingbird.evidence.visible import visible
from hummingbird.web.shown import shown

_NUMBER = re.compile(r"^\s*\d+: ")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_LEAST_CHARS = 4  # of a line that is worth being looked for: braces are everywhere


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a result: the entry's number and the line's, both from 1."""

    entry: int
    line: int


def quoted(text: str) -> tuple[str, ...]:
    """The lines in code blocks of an answer, without the numbers that we put before lines."""
    blocks = (token for token in _parser().parse(shown(text)) if token.type in {"fence", "code_block"})
    lines = dict.fromkeys(_bare(line) for block in blocks for line in block.content.splitlines())
    return tuple(line for line in lines if len(line) >= _LEAST_CHARS)[:QUOTES_LOOKED_FOR]


def found(lines: Sequence[str], entries: Iterable[Entry]) -> dict[str, Place]:
    """Where each of them stands first."""
    wanted, places = set(lines), dict[str, Place]()
    for number, entry in enumerate(entries, 1):
        own = entry.entry if isinstance(entry, Delegated) else entry
        if not wanted:
            break
        if isinstance(own, ToolFinished) and len(own.text) <= ENTRY_CHARS:  # longer ones are cut where they are shown
            for at, line in enumerate(own.text.split("\n"), 1):
                for bare in wanted.intersection(_bare(visible(part)) for part in (line, *line.split("\r"))):
                    places[bare] = Place(number, at)
                    wanted.discard(bare)
    return places


def as_html(text: str, places: Mapping[str, Place], session_id: str) -> Markup:
    """`places`: of the lines that were found; none at all where nobody looked."""
    return Markup(_parser().render(shown(text), {"places": places, "session_id": session_id}))  # noqa: S704 - it escapes


def _bare(line: str) -> str:
    return _NUMBER.sub("", line).strip()


class _Renderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        lines = "".join(self._line(line, env) for line in tokens[idx].content.splitlines())
        return f'<pre class="quote">{lines}</pre>\n'

    code_block = fence

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return str(escape(tokens[idx].content))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        if not _WEB.match(address):
            return "<a>"
        return f'<a href="{escape(address)}" rel="noreferrer noopener nofollow" target="_blank">'

    def _line(self, line: str, env: Any) -> str:
        bare, places = _bare(line), env["places"]
        if len(bare) < _LEAST_CHARS:
            return f"{escape(line)}\n"
        if (place := places.get(bare)) is None:
            return f'<span class="unseen" title="not among what tools showed">{escape(line)}</span>\n'
        where = f"/sessions/{escape(env['session_id'])}/entries/{place.entry}#l{place.line}"
        return f'<a class="proof" href="{where}">{escape(line)}</a>\n'


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    return made.enable("strikethrough").enable("table")
