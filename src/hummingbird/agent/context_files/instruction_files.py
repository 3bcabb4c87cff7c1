"""Find and read a project's context files and the folders of skills.

A context file speaks to agents. In each directory from the root of the repository down to the start, the first of
CONTEXT_FILE_NAMES is read; outside a repository, only the start itself is searched.

A skill is a folder with a SKILL.md: YAML front matter with a name and a description, then what to do:

    release/
      SKILL.md       ---\\nname: release\\ndescription: How we release.\\n---\\n1. …
      checklist.md   named to the model, which reads it with its own tools

Folders of skills are searched in order: the user's own come first, and the first skill with a name wins. Anybody who
can get a change into the repository can write such files, so they are scanned, and what is left out is reported.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from hummingbird.agent.context_files import ContextFile, ContextFiles, LoadedSkill, Skill, SkillIndex
from hummingbird.agent.context_files.injection_scan import find_suspicion, strip_comments
from hummingbird.core.errors import InputUnreadable, SourceNotFound
from hummingbird.core.text import shorten_line

PAPER_BYTES = 64 * 1024  # of a memory or instruction file that is read; a longer memory is not written either
SKILLS = 64
SKILL_BYTES = 16 * 1024
SKILL_NAME_CHARS = 64
SKILL_FRONT_CHARS = 2_000
SKILL_FRONT_LISTS = 64  # lists in the front matter; a thousand nested ones keep a YAML parser busy for a second
SKILL_FILES = 32  # beside SKILL.md that are named
SKILL_LOOKED_AT = 512  # entries of a folder that are examined
CONTEXT_FILE_BYTES = 8 * 1024
CONTEXT_FILES_BYTES = 16 * 1024  # together
CONTEXT_DEPTH = 32  # directories above the start


@dataclass(frozen=True, slots=True)
class TextFile:
    """The content of a small file.

    `is_truncated` means that there is more than was read. `has_invalid_utf8` means that some bytes were not UTF-8 and
    are shown as question marks.
    """

    content: bytes
    text: str
    is_truncated: bool = False
    has_invalid_utf8: bool = False


def read_text_file(path: Path, most_bytes: int) -> TextFile | None:
    """Return the file, or None if there is none; the path may also be a directory, a pipe, endless or not text.

    Raises InputUnreadable.
    """
    try:
        content = _read_bytes(path, most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputUnreadable(f"{path} cannot be read ({error.strerror}): fix it or move it away.") from error
    shown = content[:most_bytes]
    cut = len(content) > most_bytes
    whole = shown[: shown.rfind(b"\n") + 1] or shown if cut else shown  # a character cut in two is not invalid UTF-8
    text = whole.decode("utf-8", "replace")
    return TextFile(content, text, cut, has_invalid_utf8=not _is_utf8(whole))


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_bytes(path: Path, most_bytes: int) -> bytes:
    """Read without blocking: opening a pipe would wait for a writer."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InputUnreadable(f"{path} is not a file: move away what is in its place.")
        return file.read(most_bytes)


CONTEXT_FILE_NAMES = ("HUMMINGBIRD.md", "AGENTS.md", "CLAUDE.md")


def find_context_files(start: Path) -> ContextFiles:
    """Return the context files; never raises. Room is given to the nearest ones first."""
    directories = _directories_up_to_root(Path(os.path.realpath(start)))
    found = _ContextFileCollector(root=directories[-1])
    for directory in directories:
        found.collect(directory)
    return ContextFiles(tuple(reversed(found.files)), tuple(found.faults))


def _directories_up_to_root(start: Path) -> list[Path]:
    """Return the directories from the start up to the root of the repository."""
    above = [start, *start.parents][: CONTEXT_DEPTH + 1]
    root = next((number for number, directory in enumerate(above) if os.path.lexists(directory / ".git")), 0)
    return above[: root + 1]


@dataclass(slots=True)
class _ContextFileCollector:
    root: Path
    files: list[ContextFile] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    remaining_bytes: int = CONTEXT_FILES_BYTES

    def collect(self, directory: Path) -> None:
        path = next((directory / name for name in CONTEXT_FILE_NAMES if os.path.lexists(directory / name)), None)
        if path is None:
            return
        name = os.path.relpath(path, self.root)
        text = self._read_text(path, name)
        if text.strip():
            text = self._truncate_text(text.strip("\n"), name)
            self.remaining_bytes -= len(text.encode())
            self.files.append(ContextFile(name, text))

    def _read_text(self, path: Path, name: str) -> str:
        """Return the text, empty if the file is left out."""
        if not Path(os.path.realpath(path)).is_relative_to(self.root):
            return self._leave_out(name, "it is a link that leads out of the repository")
        try:
            there = read_text_file(path, PAPER_BYTES)
        except InputUnreadable as error:
            return self._leave_out(name, str(error).rstrip("."))
        if there is None:
            return self._leave_out(name, "it is a link that leads nowhere")
        return self._scan_text(there, name)

    def _scan_text(self, there: TextFile, name: str) -> str:
        text = there.text.removeprefix("\ufeff").replace("\r\n", "\n")
        if doubt := find_suspicion(text):
            return self._leave_out(name, f"its line {doubt.line} {doubt.why}")
        seen, lines = strip_comments(text)
        if lines:
            self.faults.append(
                f"{name}: comments, which readers do not see, were taken out ({_format_line_numbers(lines)})."
            )
        if there.has_invalid_utf8:
            self.faults.append(f"{name} is not all UTF-8: what is not is shown as question marks. Save it as UTF-8.")
        return seen

    def _truncate_text(self, text: str, name: str) -> str:
        content, most = text.encode(), max(0, min(CONTEXT_FILE_BYTES, self.remaining_bytes))
        if len(content) <= most:
            return text
        self.faults.append(
            f"{name} has {len(content)} bytes, {most} fit: the agent is shown its beginning. Shorten it."
        )
        head = content[:most].decode("utf-8", "ignore")
        return (head[: head.rfind("\n") + 1] or head) + f"[… cut here; all of it is in {name}]"

    def _leave_out(self, name: str, why: str) -> str:
        self.faults.append(f"{name} was left out: {why}.")
        return ""


def _format_line_numbers(lines: Sequence[int]) -> str:
    return "line " + ", ".join(map(str, lines[:5])) + (" …" if len(lines) > 5 else "")


SKILL_FILE_NAME = "SKILL.md"
_SKILL_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{SKILL_NAME_CHARS - 1}}}")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)(?:^|\n)---[ \t]*(?:\n|$)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _SkillPage:
    name: str
    description: str
    body: str


@dataclass(slots=True)
class _SkillScan:
    found: dict[str, tuple[Skill, Path]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class SkillFolders:
    """The skills in several folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def list_skills(self) -> SkillIndex:
        scan = self._scan_folders()
        return SkillIndex(tuple(skill for skill, _ in scan.found.values()), tuple(scan.faults))

    def load(self, name: str) -> LoadedSkill:
        scan = self._scan_folders()
        if name not in scan.found:
            there = ", ".join(scan.found) or "none"
            raise SourceNotFound(f"There is no skill {shorten_line(name, 80)!r}. There are: {there}.")
        folder = scan.found[name][1]
        return LoadedSkill(name, _read_skill(folder).body, str(folder), tuple(_list_other_files(folder)))

    def _scan_folders(self) -> _SkillScan:
        scan = _SkillScan()
        for root in self._folders:
            for folder in _list_folders(root, scan.faults):
                self._add_skill(root, folder, scan)
        return scan

    def _add_skill(self, root: Path, folder: Path, scan: _SkillScan) -> None:
        if not os.path.lexists(folder / SKILL_FILE_NAME):
            return
        try:
            if not Path(os.path.realpath(folder / SKILL_FILE_NAME)).is_relative_to(os.path.realpath(root)):
                raise InputUnreadable("it is a link that leads out of the skills folder")
            page = _read_skill(folder)
            if page.name in scan.found:
                raise InputUnreadable(f"there is another skill {page.name} in {scan.found[page.name][1]}")
            if len(scan.found) == SKILLS:
                raise InputUnreadable(f"there are {SKILLS} others already")
        except InputUnreadable as error:
            scan.faults.append(f"The skill in {folder} was left out: {str(error).rstrip('.')}.")
            return
        scan.found[page.name] = (Skill(page.name, page.description), folder)


def _list_folders(root: Path, faults: list[str]) -> list[Path]:
    """Return the folders by name, so that the prompt is the same each time."""
    try:
        with os.scandir(root) as entries:
            names = [entry.name for _, entry in zip(range(SKILL_LOOKED_AT), entries, strict=False) if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        faults.append(f"The skills in {root} cannot be read ({error.strerror}).")
        return []
    return [root / name for name in sorted(names)]


def _read_skill(folder: Path) -> _SkillPage:
    """Read a skill.

    Raises InputUnreadable, in words that continue a sentence after "it was left out:".
    """
    there = read_text_file(folder / SKILL_FILE_NAME, SKILL_BYTES)
    if there is None:
        raise InputUnreadable(f"its {SKILL_FILE_NAME} is a link that leads nowhere")
    if there.is_truncated:
        raise InputUnreadable(
            f"its {SKILL_FILE_NAME} has more than {SKILL_BYTES} bytes; move a part of it to another file"
        )
    if there.has_invalid_utf8:
        raise InputUnreadable(f"its {SKILL_FILE_NAME} is not UTF-8")
    text = there.text.removeprefix("\ufeff").replace("\r\n", "\n")
    if doubt := find_suspicion(text):
        raise InputUnreadable(f"line {doubt.line} of its {SKILL_FILE_NAME} {doubt.why}")
    front = _FRONT_MATTER.match(text)
    if front is None:
        raise InputUnreadable(f"its {SKILL_FILE_NAME} does not begin with front matter between two lines ---")
    return _build_skill_page(folder, _parse_front_matter(front[1]), strip_comments(front[2])[0].strip())


def _build_skill_page(folder: Path, front: dict[object, object], body: str) -> _SkillPage:
    name, description = front.get("name", folder.name), front.get("description")
    if not isinstance(name, str) or not _SKILL_NAME.fullmatch(name):
        raise InputUnreadable(f"its name is not usable: letters, digits, - and _, at most {SKILL_NAME_CHARS}")
    if not isinstance(description, str) or not description.strip():
        raise InputUnreadable(f"its {SKILL_FILE_NAME} has no description, which says when to use it")
    if not body:
        raise InputUnreadable(f"its {SKILL_FILE_NAME} says nothing below its front matter")
    return _SkillPage(name, " ".join(description.split()), body)


def _parse_front_matter(text: str) -> dict[object, object]:
    if len(text) > SKILL_FRONT_CHARS or sum(map(text.count, ("[", "{", "- "))) > SKILL_FRONT_LISTS:
        raise InputUnreadable(
            f"the front matter of its {SKILL_FILE_NAME} is too long: a name and a description are enough"
        )
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise InputUnreadable(f"the front matter of its {SKILL_FILE_NAME} is not YAML") from error
    if not isinstance(found, dict):
        raise InputUnreadable(f"the front matter of its {SKILL_FILE_NAME} is not a mapping")
    return found


def _list_other_files(folder: Path) -> Iterator[str]:
    """Yield the other files of the skill, however deep, without links."""
    looked_at = named = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            looked_at += 1
            path = Path(place, name)
            if named == SKILL_FILES or looked_at > SKILL_LOOKED_AT:
                return
            if not path.is_symlink() and path.is_file() and path != folder / SKILL_FILE_NAME:
                named += 1
                yield str(path)
