"""What documents hold, read as CommonMark with tables: blocks of code, code in sentences, links, headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_OUT_OF_SLUG = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Block:
    """`language` is empty for indented ones. `line` is where it begins, from 1."""

    line: int
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    target: str
    line: int


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


@cache
def tokens(document: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt("commonmark").enable("table").parse(document.read_text(encoding="utf-8")))


def blocks(document: Path) -> Iterator[Block]:
    for token in tokens(document):
        if token.type in {"fence", "code_block"}:
            words = token.info.split()
            yield Block((token.map or [0])[0] + 1, words[0] if words else "", token.content)


def inline(document: Path) -> Iterator[tuple[int, Token]]:
    for token in tokens(document):
        for child in token.children or ():
            yield (token.map or [0])[0] + 1, child


def code_in_sentences(document: Path) -> Iterator[tuple[int, str]]:
    return ((line, child.content) for line, child in inline(document) if child.type == "code_inline")


def links(document: Path) -> Iterator[Link]:
    """Those to pages, and pictures."""
    for line, child in inline(document):
        target = child.attrGet("href") or child.attrGet("src")
        if target:
            yield Link(str(target), line)


@cache
def anchors(document: Path) -> frozenset[str]:
    """Of its headings, as GitLab and MkDocs make them where they agree."""
    found = tokens(document)
    headings = [found[at + 1].content for at, token in enumerate(found) if token.type == "heading_open"]
    return frozenset(_slug(text) for text in headings)


def _slug(heading: str) -> str:
    return _OUT_OF_SLUG.sub("", heading.lower()).strip().replace(" ", "-")
