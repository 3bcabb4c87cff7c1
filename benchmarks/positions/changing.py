"""What happens to a branch between two reviews: edits, renames, moves, rebases and squashes, made of real lines with
real git. Follows no line: where one went is read off the texts afterwards (`cases.py`)."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

_SETTINGS = {
    "user.name": "a",
    "user.email": "a@example.org",
    "commit.gpgsign": "false",
    "core.autocrlf": "false",
    "core.fsync": "none",
    "gc.auto": "0",
}
_AS = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]


class Conflict(Exception):
    """The change cannot be made here."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A repository with `main` and `feature`, which is checked out. `path` and `text`: the file and the line of the
    finding. `donor`: real lines of a file that is not in the tree."""

    folder: Path
    dice: Random
    path: str
    text: str
    donor: list[str]

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *_AS, *words], cwd=self.folder, capture_output=True, check=False)
        if done.returncode:
            raise Conflict(done.stderr.decode(errors="replace"))
        return done.stdout.decode("utf-8", "surrogateescape")

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")

    def paths(self) -> list[str]:
        found = (Path(root, name) for root, _, names in os.walk(self.folder) for name in names)
        inside = (file.relative_to(self.folder) for file in found)
        return sorted(str(file) for file in inside if file.parts[0] != ".git")

    def lines(self, path: str) -> list[str]:
        return (self.folder / path).read_bytes().decode().split("\n")

    def write(self, path: str, lines: list[str]) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes("\n".join(lines).encode())

    def holder(self) -> tuple[str, int]:
        """Where the finding's line is, by its text. Raises Conflict if it is not in one place."""
        found = [(path, at) for path in self.paths() for at, line in enumerate(self.lines(path)) if _is(line, self)]
        if len(found) != 1:
            raise Conflict(f"the line stands {len(found)} times")
        return found[0]


def _is(line: str, branch: Branch) -> bool:
    return " ".join(line.split()) == branch.text


def edit(branch: Branch) -> None:
    """A few lines more, less or others: anywhere in the file, and right beside the line."""
    path, _ = branch.holder()
    for near in (True, False, False, branch.dice.random() < 0.5):
        _edit_once(branch, path, near=near)


def edit_before_and_elsewhere(branch: Branch) -> None:
    """In the other files, and far from the line."""
    path, _ = branch.holder()
    for name in branch.paths():
        if name != path or branch.dice.random() < 0.7:
            _edit_once(branch, name, near=False)


def _edit_once(branch: Branch, path: str, *, near: bool) -> None:
    dice, lines = branch.dice, branch.lines(path)
    at = dice.randrange(len(lines))
    if near:
        at = max(0, min(len(lines) - 1, branch.holder()[1] + dice.choice((-3, -2, -1, 1, 2, 3))))
    behind = at + dice.randint(0, 3)
    if any(_is(line, branch) for line in lines[at:behind]):
        behind = at
    first = dice.randrange(max(1, len(branch.donor) - 8))
    more = branch.donor[first : first + dice.randint(0 if behind > at else 1, 8)]
    branch.write(path, [*lines[:at], *more, *lines[behind:]])


def rename(branch: Branch) -> None:
    path, _ = branch.holder()
    name = branch.dice.choice((f"moved/{path}", path.replace(".py", "_renamed.py"), f"src/deep/er/{path}"))
    (branch.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (branch.folder / path).rename(branch.folder / name)


def _cut(branch: Branch) -> tuple[str, list[str]]:
    """Takes the lines around the finding's out of their file; at times they are indented otherwise."""
    path, at = branch.holder()
    lines, dice = branch.lines(path), branch.dice
    first, last = max(0, at - dice.randint(0, 20)), min(len(lines), at + 1 + dice.randint(0, 20))
    block = lines[first:last]
    branch.write(path, lines[:first] + lines[last:])
    if dice.random() < 0.3:
        block = [f"    {line}" if line.strip() else line for line in block]
    return path, block


def move_within(branch: Branch) -> None:
    path, block = _cut(branch)
    lines = branch.lines(path)
    at = branch.dice.randrange(len(lines) + 1)
    branch.write(path, [*lines[:at], *block, *lines[at:]])


def move_across(branch: Branch) -> None:
    path, block = _cut(branch)
    others = [name for name in branch.paths() if name != path]
    if branch.dice.random() < 0.4:
        branch.write("extracted.py", [*branch.donor[:3], *block, ""])
        return
    to = branch.dice.choice(others)
    lines = branch.lines(to)
    at = branch.dice.randrange(len(lines) + 1)
    branch.write(to, [*lines[:at], *block, *lines[at:]])


def fix(branch: Branch) -> None:
    """The line itself is changed, or goes."""
    path, at = branch.holder()
    lines = branch.lines(path)
    instead = (
        [] if branch.dice.random() < 0.4 else [lines[at].replace(branch.text.split()[0], "repaired", 1) + "  # now"]
    )
    branch.write(path, [*lines[:at], *instead, *lines[at + 1 :]])
    _edit_once(branch, path, near=False)


def rebase(branch: Branch) -> None:
    """Others have changed the target branch meanwhile."""
    branch.git("checkout", "-q", "main")
    for name in branch.paths():
        if branch.dice.random() < 0.8:
            _edit_once(branch, name, near=False)
    branch.commit()
    branch.git("checkout", "-q", "feature")
    branch.git("rebase", "-q", "main")


def squash(branch: Branch) -> None:
    branch.git("reset", "-q", "--soft", branch.git("merge-base", "main", "feature").strip())
    branch.git("commit", "-q", "-m", "all of it")


def _commits(*changes: Callable[[Branch], None]) -> Callable[[Branch], None]:
    """Each but those that make commits themselves is one."""

    def made(branch: Branch) -> None:
        for change in changes:
            change(branch)
            if change not in (rebase, squash):
                branch.commit()

    return made


KINDS: dict[str, Callable[[Branch], None]] = {
    "edits around": _commits(edit),
    "rename": _commits(rename),
    "rename, edits": _commits(rename, edit),
    "move within a file": _commits(move_within),
    "move to another file": _commits(move_across),
    "rebase": _commits(rebase),
    "rebase, edits": _commits(edit, rebase),
    "edits, squash": _commits(edit_before_and_elsewhere, edit, squash),
    "rename, move, edits, rebase": _commits(rename, move_within, edit, rebase),
    "line repaired": _commits(fix),
}
