"""Skills as folders with a SKILL.md (C9): front matter in YAML with a name and a description, then what to do.

    release/
      SKILL.md       ---\\nname: release\\ndescription: How we release.\\n---\\n1. …
      checklist.md   named to the model, which reads it with its own tools

Folders are looked at in their order: the user's own come first, and a name that is taken stays taken.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from hummingbird.adapters.papers.reading import read
from hummingbird.domain.errors import InputUnreadable, NothingThere
from hummingbird.domain.mind_limits import (
    SKILL_BYTES,
    SKILL_FILES,
    SKILL_FRONT_CHARS,
    SKILL_FRONT_LISTS,
    SKILL_LOOKED_AT,
    SKILL_NAME_CHARS,
    SKILLS,
)
from hummingbird.domain.papers import LoadedSkill, Skill, SkillIndex
from hummingbird.domain.smuggled import suspicion, uncommented
from hummingbird.domain.text import shortened

PAGE = "SKILL.md"
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{SKILL_NAME_CHARS - 1}}}")
_FRONT = re.compile(r"---[ \t]*\n(.*?)(?:^|\n)---[ \t]*(?:\n|$)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Page:
    name: str
    description: str
    body: str


@dataclass(slots=True)
class _Looked:
    found: dict[str, tuple[Skill, Path]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class SkillFolders:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def listed(self) -> SkillIndex:
        looked = self._look()
        return SkillIndex(tuple(skill for skill, _ in looked.found.values()), tuple(looked.faults))

    def load(self, name: str) -> LoadedSkill:
        looked = self._look()
        if name not in looked.found:
            there = ", ".join(looked.found) or "none"
            raise NothingThere(f"There is no skill {shortened(name, 80)!r}. There are: {there}.")
        folder = looked.found[name][1]
        return LoadedSkill(name, _page(folder).body, str(folder), tuple(_beside(folder)))

    def _look(self) -> _Looked:
        looked = _Looked()
        for root in self._folders:
            for folder in _inside(root, looked.faults):
                self._take(root, folder, looked)
        return looked

    def _take(self, root: Path, folder: Path, looked: _Looked) -> None:
        if not os.path.lexists(folder / PAGE):
            return
        try:
            if not Path(os.path.realpath(folder / PAGE)).is_relative_to(os.path.realpath(root)):
                raise InputUnreadable("it is a link that leads out of the folder of skills")
            page = _page(folder)
            if page.name in looked.found:
                raise InputUnreadable(f"there is another skill {page.name} in {looked.found[page.name][1]}")
            if len(looked.found) == SKILLS:
                raise InputUnreadable(f"there are {SKILLS} others already")
        except InputUnreadable as error:
            looked.faults.append(f"The skill in {folder} was left out: {str(error).rstrip('.')}.")
            return
        looked.found[page.name] = (Skill(page.name, page.description), folder)


def _inside(root: Path, faults: list[str]) -> list[Path]:
    """By name, so that the prompt is the same each time (L5)."""
    try:
        with os.scandir(root) as entries:
            names = [entry.name for _, entry in zip(range(SKILL_LOOKED_AT), entries, strict=False) if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        faults.append(f"The skills in {root} cannot be read ({error.strerror}).")
        return []
    return [root / name for name in sorted(names)]


def _page(folder: Path) -> _Page:
    """Raises InputUnreadable, in words that go on after "it was left out:"."""
    there = read(folder / PAGE, SKILL_BYTES)
    if there is None:
        raise InputUnreadable(f"its {PAGE} is a link that leads nowhere")
    if there.cut:
        raise InputUnreadable(f"its {PAGE} has more than {SKILL_BYTES} bytes; move a part of it to another file")
    if there.broken:
        raise InputUnreadable(f"its {PAGE} is not UTF-8")
    text = there.text.removeprefix("\ufeff").replace("\r\n", "\n")
    if doubt := suspicion(text):
        raise InputUnreadable(f"line {doubt.line} of its {PAGE} {doubt.why}")
    front = _FRONT.match(text)
    if front is None:
        raise InputUnreadable(f"its {PAGE} does not begin with front matter between two lines ---")
    return _made(folder, _front_matter(front[1]), uncommented(front[2])[0].strip())


def _made(folder: Path, front: dict[object, object], body: str) -> _Page:
    name, description = front.get("name", folder.name), front.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputUnreadable(f"its name is not usable: letters, digits, - and _, at most {SKILL_NAME_CHARS}")
    if not isinstance(description, str) or not description.strip():
        raise InputUnreadable(f"its {PAGE} has no description, which says when to use it")
    if not body:
        raise InputUnreadable(f"its {PAGE} says nothing below its front matter")
    return _Page(name, " ".join(description.split()), body)


def _front_matter(text: str) -> dict[object, object]:
    if len(text) > SKILL_FRONT_CHARS or sum(map(text.count, ("[", "{", "- "))) > SKILL_FRONT_LISTS:
        raise InputUnreadable(f"the front matter of its {PAGE} is too long: a name and a description are enough")
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise InputUnreadable(f"the front matter of its {PAGE} is not YAML") from error
    if not isinstance(found, dict):
        raise InputUnreadable(f"the front matter of its {PAGE} is no mapping")
    return found


def _beside(folder: Path) -> Iterator[str]:
    """Files in it, however deep, without links."""
    looked_at = named = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            looked_at += 1
            path = Path(place, name)
            if named == SKILL_FILES or looked_at > SKILL_LOOKED_AT:
                return
            if not path.is_symlink() and path.is_file() and path != folder / PAGE:
                named += 1
                yield str(path)
