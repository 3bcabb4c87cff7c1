"""What is remembered from session to session (C7): two pages of Markdown that a person can edit. MEMORY.md has facts,
USER.md what is known of the user.

    - 2026-11-16: The staging cluster is called otter.
    - 2026-11-17: Releases:
      tagged on Mondays, from main

A page is a list, one entry an item; headings of a person's stay where they are. Pure: whoever keeps the files hands in
their text. Memory stands in every prompt to come, so an entry that could be somebody's order, or a credential, is none.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from hummingbird.domain.errors import ArgumentsInvalid
from hummingbird.domain.limits import MEMORY_CHARS, USER_CHARS
from hummingbird.domain.mind_limits import MEMORY_ENTRY_CHARS, MEMORY_QUOTED, MEMORY_QUOTED_CHARS
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.smuggled import suspicion
from hummingbird.domain.text import shortened

_BULLET = re.compile(r"[-*+](?:[ \t]+|$)")
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}: ")


class Paper(StrEnum):
    MEMORY = "memory"
    USER = "user"

    @property
    def file(self) -> str:
        return f"{self.value.upper()}.md"


@dataclass(frozen=True, slots=True)
class Room:
    """Characters that each page may have."""

    memory: int = MEMORY_CHARS
    user: int = USER_CHARS

    def of(self, paper: Paper) -> int:
        return self.memory if paper is Paper.MEMORY else self.user


@dataclass(frozen=True, slots=True)
class Block:
    """An entry, without its bullet and with its date if it has one; or a heading."""

    text: str
    heading: bool = False

    def __str__(self) -> str:
        return self.text if self.heading else "- " + self.text.replace("\n", "\n  ")


@dataclass(frozen=True, slots=True)
class Page:
    blocks: tuple[Block, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(block.text for block in self.blocks if not block.heading)

    @property
    def text(self) -> str:
        """As it stands in the file, without the end of its last line."""
        return "\n".join(map(str, self.blocks))

    @property
    def size(self) -> int:
        return len(self.text)

    def add(self, text: str, day: str) -> "Page":
        """Raises ArgumentsInvalid for what is there already."""
        entry = _entry(text, day)
        self._refuse_twin(entry, self.entries)
        return Page((*self.blocks, Block(entry)))

    def replace(self, old: str, text: str, day: str) -> "Page":
        place = self._place(old)
        entry = _entry(text, day)
        others = (*self.blocks[:place], *self.blocks[place + 1 :])
        self._refuse_twin(entry, (block.text for block in others if not block.heading))
        return Page((*self.blocks[:place], Block(entry), *self.blocks[place + 1 :]))

    def remove(self, old: str) -> "Page":
        place = self._place(old)
        return Page((*self.blocks[:place], *self.blocks[place + 1 :]))

    def _place(self, part: str) -> int:
        """Of the one entry that holds these words. Raises ArgumentsInvalid when there is none, or several."""
        wanted = _folded(part)
        places = [n for n, b in enumerate(self.blocks) if not b.heading and wanted and wanted in _folded(b.text)]
        if len(places) == 1:
            return places[0]
        quoted = shortened(part, MEMORY_QUOTED_CHARS)
        if not places:
            raise ArgumentsInvalid(f"No entry holds {quoted!r}. There are:\n{self.measured}")
        held = "\n".join(shortened(str(self.blocks[n]), MEMORY_QUOTED_CHARS) for n in places[:MEMORY_QUOTED])
        raise ArgumentsInvalid(f"{len(places)} entries hold {quoted!r}; use words that only one of them has:\n{held}")

    def _refuse_twin(self, entry: str, others: Iterable[str]) -> None:
        if any(_folded(_undated(other)) == _folded(_undated(entry)) for other in others):
            raise ArgumentsInvalid("That is remembered already; nothing was changed.")

    @property
    def measured(self) -> str:
        """All entries, each with its characters, for whoever has to make room."""
        return "\n".join(f"({len(str(b)) + 1}) {b}" for b in self.blocks if not b.heading) or "(nothing)"


@dataclass(frozen=True, slots=True)
class Remembered:
    """Both pages. `faults`: sentences about files that are broken; what could be read of them is there."""

    memory: Page = Page()
    user: Page = Page()
    faults: tuple[str, ...] = ()

    def of(self, paper: Paper) -> Page:
        return self.memory if paper is Paper.MEMORY else self.user


@dataclass(frozen=True, slots=True)
class Parsed:
    """`stray`: the line on which something stands that is neither an entry nor a heading, 0 if there is none. It is
    read as an entry of its own."""

    page: Page
    stray: int = 0


def parsed(text: str) -> Parsed:
    """Any text is a page. What it makes of `Page.text` is that page again."""
    blocks: list[Block] = []
    stray, loose = 0, False  # loose: the last entry is a stray one, and its next line belongs to it
    for number, line in enumerate(_lines(text), 1):
        if not line.strip():
            loose = False
        elif bullet := _BULLET.match(line):
            blocks.append(Block(line[bullet.end() :].strip()))
            loose = False
        elif line.startswith("#"):
            blocks.append(Block(line.strip(), heading=True))
            loose = False
        elif line[0] in " \t" and blocks and not blocks[-1].heading:
            blocks[-1] = _longer(blocks[-1], line.removeprefix("  ").rstrip())
        else:
            stray = stray or number
            if loose:
                blocks[-1] = _longer(blocks[-1], line.strip())
            else:
                blocks.append(Block(line.strip()))
            loose = True
    return Parsed(Page(tuple(block for block in blocks if block.text)), stray)


def changed(page: Page, action: str, old: str, text: str, day: str) -> Page:
    """The page after one call. Raises ArgumentsInvalid."""
    match action:
        case "add":
            return page.add(text, day)
        case "replace":
            return page.replace(old, text, day)
        case "remove":
            return page.remove(old)
        case _:
            raise ArgumentsInvalid("memory can add, replace and remove.")


def check_room(paper: Paper, before: Page, after: Page, room: Room) -> None:
    """Raises ArgumentsInvalid when it does not fit. What makes a page smaller is welcome, also if it is still too
    long: a person may have written more than fits."""
    most = room.of(paper)
    if after.size > most and after.size >= before.size:
        raise ArgumentsInvalid(
            f"{paper.file} would have {after.size} characters; {most} fit. Nothing was changed. Shorten or remove "
            f"entries first. It holds {before.size} characters:\n{before.measured}"
        )


def objection(text: str, secrets: Secrets) -> str:
    """Why this may not be remembered, as a sentence; empty if it may."""
    if not text.strip():
        return "There is no text to remember."
    if len(text) > MEMORY_ENTRY_CHARS:
        return f"An entry has at most {MEMORY_ENTRY_CHARS} characters, this one {len(text)}: keep what matters of it."
    if secrets.mask(text) != text:
        return "This holds a credential, which is never remembered: say where it is kept instead."
    if found := suspicion(text):
        return f"This is not remembered: its line {found.line} {found.why}. Memory holds facts, in plain words."
    return ""


@dataclass(frozen=True, slots=True)
class Part:
    """Of a prompt. `faults`: sentences about what was left out, for the person."""

    text: str = ""
    faults: tuple[str, ...] = ()


def prompt_part(remembered: Remembered, room: Room | None = None, secrets: Secrets | None = None) -> Part:
    """Both pages for a prompt: what fits, and nothing that is objected to, whoever wrote it into the file."""
    room, secrets = room or Room(), secrets or Secrets()
    parts = [_fit(paper, remembered.of(paper), room.of(paper), secrets) for paper in Paper]
    texts = [f"{paper.file}:\n{part.text}" for paper, part in zip(Paper, parts, strict=True) if part.text]
    faults = (*remembered.faults, *(fault for part in parts for fault in part.faults))
    return Part("\n\n".join(texts), faults)


def _fit(paper: Paper, page: Page, most: int, secrets: Secrets) -> Part:
    faults: list[str] = []
    kept: list[Block] = []
    for block in page.blocks:
        found = None if secrets.mask(block.text) == block.text else "holds a credential"
        if (doubt := suspicion(block.text)) is not None:
            found = doubt.why
        if found:
            quoted = shortened(block.text.encode("ascii", "replace").decode(), MEMORY_QUOTED_CHARS)
            hidden = "" if found == "holds a credential" else f" ({quoted})"
            faults.append(f"An entry of {paper.file}{hidden} {found}, so the agent is not shown it; remove or mend it.")
        elif replace(page, blocks=(*kept, block)).size > most:
            faults.append(
                f"{paper.file} has {page.size} characters, {most} fit: the agent is shown "
                f"{len(Page(tuple(kept)).entries)} of {len(page.entries)} entries. Shorten it."
            )
            break
        else:
            kept.append(block)
    return Part(Page(tuple(kept)).text, tuple(faults))


def _entry(text: str, day: str) -> str:
    lines = [line.rstrip() for line in _lines(text) if line.strip()]
    body = "\n".join([lines[0].strip(), *lines[1:]])
    return f"{day}: {_undated(_BULLET.sub('', body, count=1) if _BULLET.match(body) else body)}"


def _undated(entry: str) -> str:
    return _DATED.sub("", entry, count=1) if _DATED.match(entry) else entry


def _longer(block: Block, line: str) -> Block:
    return replace(block, text=f"{block.text}\n{line}" if block.text else line.strip())


def _lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
