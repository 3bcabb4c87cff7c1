"""Keep memory in two Markdown files: MEMORY.md holds facts, USER.md what is known of the user.

    - 2026-11-16: The staging cluster is called otter.
    - 2026-11-17: Releases:
      tagged on Mondays, from main

A file is a list with one entry per item; a person's headings stay where they are. Memory is part of every later prompt,
so an entry that could be an order or a credential is rejected.

Several chats may write at once: each reads the file again under a lock and replaces it as a whole. A person may edit it
at any time and loses nothing: a file that could not be read fully is copied before it is rewritten.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from hummingbird.agent.context_files.injection_scan import find_suspicion
from hummingbird.agent.context_files.instruction_files import PAPER_BYTES, TextFile, read_text_file
from hummingbird.clients.sqlite_files import sync_directory, wait_for_lock
from hummingbird.core.errors import ArgumentsInvalid, InputUnreadable, JournalUnwritable, UsageError
from hummingbird.core.limits import MEMORY_CHARS, USER_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.text import shorten_line

MEMORY_ENTRY_CHARS = 1_000
MEMORY_QUOTED_CHARS = 80  # of an entry that an error names
MEMORY_QUOTED = 5  # entries that an error names
MEMORY_COPIES = 100  # copies of a file that could not be read fully, before a person has to tidy up
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
    """Return both pages for a prompt: what fits, without rejected entries, whoever wrote them into the file."""
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


LOCK_FILE_NAME = ".memory.lock"
PROJECTS_FOLDER = "projects"


@dataclass(frozen=True, slots=True)
class _MemoryFileState:
    """What a memory file holds; `needs_backup` means that rewriting it would change something that a person wrote."""

    page: MemoryPage
    content: bytes = b""
    faults: tuple[str, ...] = ()
    needs_backup: bool = False


class FileMemory:
    """The memory in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> MemoryPages:
        found = {paper: self._read_tolerant(paper) for paper in MemoryKind}
        faults = tuple(fault for one in found.values() for fault in one.faults)
        return MemoryPages(found[MemoryKind.MEMORY].page, found[MemoryKind.USER].page, faults)

    async def edit(self, paper: MemoryKind, change: Callable[[MemoryPage], MemoryPage]) -> MemoryPage:
        return await asyncio.to_thread(self._change_locked, paper, change)

    def for_project(self, project: str) -> "FileMemory":
        """Return the memory in a folder named after the project; a digest distinguishes names that would look alike."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip("-.")[:60]
        return FileMemory(self._folder / PROJECTS_FOLDER / f"{readable}-{sha256(project.encode()).hexdigest()[:12]}")

    def _read_tolerant(self, paper: MemoryKind) -> _MemoryFileState:
        try:
            return self._read_file(paper)
        except InputUnreadable as error:
            return _MemoryFileState(MemoryPage(), faults=(str(error),))

    def _read_file(self, paper: MemoryKind) -> _MemoryFileState:
        """Read one page.

        Raises InputUnreadable if it is not a file.
        """
        path = self._folder / paper.file_name
        if (there := read_text_file(path, PAPER_BYTES)) is None:
            return _MemoryFileState(MemoryPage())
        made = parse_memory_page(there.text)
        faults = tuple(_find_faults(path, there, made.stray))
        return _MemoryFileState(made.page, there.content, faults, needs_backup=bool(faults))

    def _change_locked(self, paper: MemoryKind, change: Callable[[MemoryPage], MemoryPage]) -> MemoryPage:
        path = self._folder / paper.file_name
        try:
            with self._hold_lock():
                found = self._read_file(paper)
                if len(found.content) > PAPER_BYTES:
                    raise UsageError(found.faults[0])
                page = change(found.page)
                if page != found.page:
                    if found.needs_backup:
                        self._back_up(path, found.content)
                    _replace_file(path, (page.text + "\n" if page.blocks else "").encode())
                return page
        except InputUnreadable as error:
            raise UsageError(str(error)) from error
        except OSError as error:
            raise JournalUnwritable(
                f"{path} cannot be written ({error.strerror}); nothing was changed. Free space or fix it."
            ) from error

    def _back_up(self, path: Path, content: bytes) -> None:
        """Copy the file beside itself, never over another copy, and the same content only once."""
        for number in range(1, MEMORY_COPIES + 1):
            copy = path.with_name(f"{path.name}.bak" if number == 1 else f"{path.name}.{number}.bak")
            if not copy.exists():
                return _replace_file(copy, content)
            if copy.is_file() and copy.read_bytes() == content:
                return None
        raise UsageError(f"There are {MEMORY_COPIES} copies of {path}; remove those that are not needed.")

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._folder / LOCK_FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            wait_for_lock(fd, f"Another process holds the memory in {self._folder}; nothing was changed. End it.")
            yield
        finally:
            os.close(fd)


def _find_faults(path: Path, there: TextFile, stray: int) -> Iterator[str]:
    if there.is_truncated:
        yield f"{path} has more than {PAPER_BYTES} bytes: only its beginning is read, and nothing is added. Shorten it."
    if there.has_invalid_utf8:
        yield f"{path} is not all UTF-8: what is not is shown as question marks. Save it as UTF-8."
    if stray:
        yield f"Line {stray} of {path} belongs to no list entry; it is read as one. Begin it with a dash."


def _replace_file(path: Path, content: bytes) -> None:
    """Replace the file atomically and durably; a link stays one, because people keep such files elsewhere."""
    target = Path(os.path.realpath(path))
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)
