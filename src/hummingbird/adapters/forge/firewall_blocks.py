"""Which lines of a note are code, HTML, rows of a table or text (N5).

A Markdown parser says so. Code is believed only if a second, simpler look at the fences agrees. What the parser gives
no answer for (link definitions, what is nested too deeply) is text without code. Changes nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from markdown_it import MarkdownIt

from hummingbird.adapters.forge.firewall_signs import LEAD

FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,}).*$")
_LEAD = re.compile(LEAD)
_NAMES = """
actdiag blockdiag bpmn bytefield c4plantuml d2 dbml diagramsnet ditaa dot erd excalidraw glql graphviz mermaid
nomnoml nwdiag packetdiag pikchr plantuml rackdiag seqdiag structurizr svgbob symbolator tikz umlet vega vegalite
wavedrom wireviz
"""
_DRAWN = frozenset(_NAMES.split())
DRAWING = re.compile(
    rf"(?:(?<!`)`{{3,}}|(?<!~)~{{3,}})[^\S\n]*(?=(?:{'|'.join(sorted(_DRAWN, reverse=True))}|json[:\s]+table)\b)",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"({LEAD}(?:`{{3,}}|~{{3,}}))([^\S\n]*)([^\n]*)")
# Others may hold an entity, an escape or a parameter: GitLab draws `mermaid:x` too, and `json table`.
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]*")
# Indented lines are no code in GitLab's footnotes and description lists.
_INDENTED = re.compile(r"\[\^|^[^\S\n]*[:~][^\S\n]", re.MULTILINE)


class Kind(Enum):
    """`DOUBT`: code for one, something else for another. `LOOSE`: text without code."""

    FENCE = "fence"
    INDENTED = "indented"
    DOUBT = "doubt"
    HTML = "html"
    ROW = "row"
    TEXT = "text"
    LOOSE = "loose"


@dataclass(frozen=True, slots=True)
class Block:
    kind: Kind
    lines: list[str]


def blocks(text: str) -> Iterator[Block]:
    """In order, and together the whole text."""
    lines = text.split("\n")
    kinds = _parsed(text, len(lines))
    fenced = set(_fenced(lines))
    indented = Kind.DOUBT if _INDENTED.search(text) else Kind.INDENTED
    for number, (kind, block) in enumerate(kinds):
        if kind is Kind.FENCE and number not in fenced:
            kinds[number] = (Kind.DOUBT, block)
        elif kind is Kind.INDENTED:
            kinds[number] = (indented, block)
    for (kind, _), group in groupby(range(len(lines)), key=lambda number: kinds[number]):
        yield Block(kind, [lines[number] for number in group])


def _parsed(text: str, count: int) -> list[tuple[Kind, int]]:
    """The kind of each line, and the number of the block in which it stands."""
    kinds = [(Kind.LOOSE, -number) for number in range(count)]
    for number, token in enumerate(_parser().parse(text), 1):
        kind = _KINDS.get(token.type)
        if kind is not None and token.map is not None:
            for line in range(token.map[0], min(token.map[1], count)):
                if kinds[line][0] is Kind.LOOSE:
                    kinds[line] = (kind, number)
    return kinds


_KINDS = {
    "fence": Kind.FENCE,
    "code_block": Kind.INDENTED,
    "html_block": Kind.HTML,
    "tr_open": Kind.ROW,
    "inline": Kind.TEXT,
}


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _fenced(lines: list[str]) -> Iterator[int]:
    """By fences alone, wherever they stand."""
    mark, quotes = "", 0
    for number, line in enumerate(lines):
        rest = _after_lead(line)
        if mark:
            yield number
            if closes(line, mark, quotes):
                mark = ""
        elif (fence := FENCE.match(rest)) is not None:
            mark, quotes = fence[1] or fence[2], line[: len(line) - len(rest)].count(">")
            yield number


def _after_lead(line: str) -> str:
    lead = _LEAD.match(line)
    return line[lead.end() if lead else 0 :]


def closes(line: str, mark: str, quotes: int) -> bool:
    """Whether the line, with so many `>` before it, ends what `mark` began."""
    rest = line.lstrip(" \t>")
    text = rest.rstrip(" \t")
    return len(text) >= len(mark) and set(text) == {mark[0]} and line[: len(line) - len(rest)].count(">") == quotes


def ends(text: str) -> bool:
    """Whether what is put behind it stands for itself."""
    *_, last = blocks(f"{text}\n\nx")
    return last == Block(Kind.TEXT, ["x"])


def closed(lines: list[str]) -> list[str]:
    """A fence that the end of the text would close, with an end of its own; and drawn by nobody but the reader."""
    lead = _LEAD.match(lines[0])
    fence = FENCE.match(_after_lead(lines[0]))
    if lead is None or fence is None:
        return lines
    mark = fence[1] or fence[2]
    opening = _OPENING.match(lines[0])
    if opening is not None and _acts(opening[3]):
        lines = [f"{opening[1]}{opening[2]}text", *lines[1:]]
    if len(lines) > 1 and closes(lines[-1], mark, lead[0].count(">")):
        return lines
    return [*lines, re.sub(r"[^\s>]", " ", lead[0]) + mark]


def _acts(words: str) -> bool:
    """Whether GitLab may make more of it than code, by what stands behind its fence. A change that somebody applies
    with one click is not the text's to propose (W2)."""
    language, *more = words.lower().split() or [""]
    drawn = language in _DRAWN or language.startswith("suggestion") or (language == "json" and bool(more))
    return drawn or not _LANGUAGE.fullmatch(language)


def top_fences(text: str) -> Iterator[Block]:
    """Without the parser: code is what stands between fences at the very left, which nothing can hold."""
    part: list[str] = []
    mark = ""
    for line in text.split("\n"):
        fence = None if mark else FENCE.match(line)
        if fence is not None:
            if part:
                yield Block(Kind.DOUBT, part)
            part, mark = [], fence[1] or fence[2]
            part.append(line)
            continue
        part.append(line)
        if mark and not line[:4].isspace() and "\t" not in line and closes(line, mark, 0):
            yield Block(Kind.FENCE, part)
            part, mark = [], ""
    if part:
        yield Block(Kind.FENCE if mark else Kind.DOUBT, part)
