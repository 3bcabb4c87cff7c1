"""Parse, edit and render the two Markdown pages of memory.

MEMORY.md holds facts, USER.md what is known of the user:

    - 2026-11-16: The staging cluster is called otter.
    - 2026-11-17: Releases:
      tagged on Mondays, from main

A page is a list with one entry per item; a person's headings stay where they are. Memory is part of every later prompt,
so an entry that could be an order or a credential is rejected.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from hummingbird.agent.context_files.injection_scan import find_suspicion
from hummingbird.core.errors import ArgumentsInvalid
from hummingbird.core.limits import MEMORY_CHARS, USER_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.text import shorten_line

MEMORY_ENTRY_CHARS = 1_000
MEMORY_QUOTED_CHARS = 80  # of an entry that an error names
MEMORY_QUOTED = 5  # entries that an error names

_BULLET = re.compile(r"[-*+](?:[ \t]+|$)")
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}: ")


class MemoryKind(StrEnum):
    """The two pages."""

    MEMORY = "memory"
    USER = "user"

    @property
    def file_name(self) -> str:
        return f"{self.value.upper()}.md"


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Characters that each page may have."""

    memory: int = MEMORY_CHARS
    user: int = USER_CHARS

    def chars_for(self, paper: MemoryKind) -> int:
        return self.memory if paper is MemoryKind.MEMORY else self.user


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """An entry, without its bullet and with its date if it has one; or a heading."""

    text: str
    heading: bool = False

    def __str__(self) -> str:
        return self.text if self.heading else "- " + self.text.replace("\n", "\n  ")


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """One page, which edits return anew."""

    blocks: tuple[MemoryBlock, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(block.text for block in self.blocks if not block.heading)

    @property
    def text(self) -> str:
        """Return the page as the file has it, without the final line break."""
        return "\n".join(map(str, self.blocks))

    @property
    def size(self) -> int:
        return len(self.text)

    def add(self, text: str, day: str) -> "MemoryPage":
        """Return the page with a new entry.

        Raises ArgumentsInvalid if the entry exists.
        """
        entry = _format_entry(text, day)
        self._reject_duplicate(entry, self.entries)
        return MemoryPage((*self.blocks, MemoryBlock(entry)))

    def replace(self, old: str, text: str, day: str) -> "MemoryPage":
        place = self._find_entry(old)
        entry = _format_entry(text, day)
        others = (*self.blocks[:place], *self.blocks[place + 1 :])
        self._reject_duplicate(entry, (block.text for block in others if not block.heading))
        return MemoryPage((*self.blocks[:place], MemoryBlock(entry), *self.blocks[place + 1 :]))

    def remove(self, old: str) -> "MemoryPage":
        place = self._find_entry(old)
        return MemoryPage((*self.blocks[:place], *self.blocks[place + 1 :]))

    def _find_entry(self, part: str) -> int:
        """Return the index of the one entry that contains these words.

        Raises ArgumentsInvalid when there is none, or several.
        """
        wanted = _fold_text(part)
        places = [n for n, b in enumerate(self.blocks) if not b.heading and wanted and wanted in _fold_text(b.text)]
        if len(places) == 1:
            return places[0]
        quoted = shorten_line(part, MEMORY_QUOTED_CHARS)
        if not places:
            raise ArgumentsInvalid(f"No entry holds {quoted!r}. There are:\n{self.entry_sizes}")
        held = "\n".join(shorten_line(str(self.blocks[n]), MEMORY_QUOTED_CHARS) for n in places[:MEMORY_QUOTED])
        raise ArgumentsInvalid(f"{len(places)} entries hold {quoted!r}; use words that only one of them has:\n{held}")

    def _reject_duplicate(self, entry: str, others: Iterable[str]) -> None:
        if any(_fold_text(_strip_date(other)) == _fold_text(_strip_date(entry)) for other in others):
            raise ArgumentsInvalid("That is remembered already; nothing was changed.")

    @property
    def entry_sizes(self) -> str:
        """Return all entries with their sizes in characters, for whoever has to make room."""
        return "\n".join(f"({len(str(b)) + 1}) {b}" for b in self.blocks if not b.heading) or "(nothing)"


@dataclass(frozen=True, slots=True)
class MemoryPages:
    """Both pages; `faults` are sentences about broken files, of which the readable part is there."""

    memory: MemoryPage = MemoryPage()
    user: MemoryPage = MemoryPage()
    faults: tuple[str, ...] = ()

    def page_of(self, paper: MemoryKind) -> MemoryPage:
        return self.memory if paper is MemoryKind.MEMORY else self.user


@dataclass(frozen=True, slots=True)
class ParsedMemory:
    """A page; `stray` is the line of text that is neither entry nor heading, 0 if there is none.

    Such text is read as an entry of its own.
    """

    page: MemoryPage
    stray: int = 0


def parse_memory_page(text: str) -> ParsedMemory:
    """Parse any text as a page; parsing `MemoryPage.text` gives the same page again."""
    blocks: list[MemoryBlock] = []
    stray, loose = 0, False  # loose: the last entry is a stray one, and its next line belongs to it
    for number, line in enumerate(_split_lines(text), 1):
        if not line.strip():
            loose = False
        elif bullet := _BULLET.match(line):
            blocks.append(MemoryBlock(line[bullet.end() :].strip()))
            loose = False
        elif line.startswith("#"):
            blocks.append(MemoryBlock(line.strip(), heading=True))
            loose = False
        elif line[0] in " \t" and blocks and not blocks[-1].heading:
            blocks[-1] = _append_line(blocks[-1], line.removeprefix("  ").rstrip())
        else:
            stray = stray or number
            if loose:
                blocks[-1] = _append_line(blocks[-1], line.strip())
            else:
                blocks.append(MemoryBlock(line.strip()))
            loose = True
    return ParsedMemory(MemoryPage(tuple(block for block in blocks if block.text)), stray)


def edit_page(page: MemoryPage, action: str, old: str, text: str, day: str) -> MemoryPage:
    """Return the page after one call.

    Raises ArgumentsInvalid.
    """
    match action:
        case "add":
            return page.add(text, day)
        case "replace":
            return page.replace(old, text, day)
        case "remove":
            return page.remove(old)
        case _:
            raise ArgumentsInvalid("memory can add, replace and remove.")


def check_fits(paper: MemoryKind, before: MemoryPage, after: MemoryPage, room: MemoryBudget) -> None:
    """Raise ArgumentsInvalid when the page does not fit.

    A smaller page is accepted even if it is still too long, because a person may have written more than fits.
    """
    most = room.chars_for(paper)
    if after.size > most and after.size >= before.size:
        raise ArgumentsInvalid(
            f"{paper.file_name} would have {after.size} characters; {most} fit. Nothing was changed. Shorten or remove "
            f"entries first. It holds {before.size} characters:\n{before.entry_sizes}"
        )


def rejection_reason(text: str, secrets: Secrets) -> str:
    """Return why the text must not be remembered, as a sentence; empty if it may be."""
    if not text.strip():
        return "There is no text to remember."
    if len(text) > MEMORY_ENTRY_CHARS:
        return f"An entry has at most {MEMORY_ENTRY_CHARS} characters, this one {len(text)}: keep what matters of it."
    if secrets.mask(text) != text:
        return "This holds a credential, which is never remembered: say where it is kept instead."
    if found := find_suspicion(text):
        return f"This is not remembered: its line {found.line} {found.why}. Memory holds facts, in plain words."
    return ""


@dataclass(frozen=True, slots=True)
class MemoryPrompt:
    """The memory part of a prompt; `faults` are sentences for the person about what was left out."""

    text: str = ""
    faults: tuple[str, ...] = ()


def render_memory_prompt(
    remembered: MemoryPages, room: MemoryBudget | None = None, secrets: Secrets | None = None
) -> MemoryPrompt:
    """Render both pages for a prompt as far as they fit, without rejected entries, even those that a person wrote."""
    room, secrets = room or MemoryBudget(), secrets or Secrets()
    parts = [_render_page(paper, remembered.page_of(paper), room.chars_for(paper), secrets) for paper in MemoryKind]
    texts = [f"{paper.file_name}:\n{part.text}" for paper, part in zip(MemoryKind, parts, strict=True) if part.text]
    faults = (*remembered.faults, *(fault for part in parts for fault in part.faults))
    return MemoryPrompt("\n\n".join(texts), faults)


def _render_page(paper: MemoryKind, page: MemoryPage, most: int, secrets: Secrets) -> MemoryPrompt:
    faults: list[str] = []
    kept: list[MemoryBlock] = []
    for block in page.blocks:
        found = None if secrets.mask(block.text) == block.text else "holds a credential"
        if (doubt := find_suspicion(block.text)) is not None:
            found = doubt.why
        if found:
            quoted = shorten_line(block.text.encode("ascii", "replace").decode(), MEMORY_QUOTED_CHARS)
            hidden = "" if found == "holds a credential" else f" ({quoted})"
            faults.append(
                f"An entry of {paper.file_name}{hidden} {found}, so the agent is not shown it; remove or fix it."
            )
        elif replace(page, blocks=(*kept, block)).size > most:
            faults.append(
                f"{paper.file_name} has {page.size} characters, {most} fit: the agent is shown "
                f"{len(MemoryPage(tuple(kept)).entries)} of {len(page.entries)} entries. Shorten it."
            )
            break
        else:
            kept.append(block)
    return MemoryPrompt(MemoryPage(tuple(kept)).text, tuple(faults))


def _format_entry(text: str, day: str) -> str:
    lines = [line.rstrip() for line in _split_lines(text) if line.strip()]
    body = "\n".join([lines[0].strip(), *lines[1:]])
    return f"{day}: {_strip_date(_BULLET.sub('', body, count=1) if _BULLET.match(body) else body)}"


def _strip_date(entry: str) -> str:
    return _DATED.sub("", entry, count=1) if _DATED.match(entry) else entry


def _append_line(block: MemoryBlock, line: str) -> MemoryBlock:
    return replace(block, text=f"{block.text}\n{line}" if block.text else line.strip())


def _split_lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())
