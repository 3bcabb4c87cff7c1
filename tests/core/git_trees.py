"""Two states of a folder, and what git says is between them, as a forge shows it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from hummingbird.core.diffs import CommitComparison, FileDiff
from hummingbird.lab.gitlab.repository import parse_diff

_AS = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "core.autocrlf=false")
Tree = Mapping[str, str]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *_AS, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def committed(folder: Path, tree: Tree) -> str:
    """The commit of exactly these files; begun anew in an empty folder."""
    if not (folder / ".git").is_dir():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "rm", "-rqf", "--ignore-unmatch", ".")
    for path, text in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode("utf-8", "surrogateescape"))
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "state")
    return git(folder, "rev-parse", "HEAD").strip()


def between(folder: Path, old: str, new: str) -> tuple[FileDiff, ...]:
    found = parse_diff(git(folder, "diff", "-M", old, new))
    return tuple(
        FileDiff(
            old_path=one.old_path,
            new_path=one.new_path,
            text=one.diff,
            is_new=one.new_file,
            hidden=not one.diff and not one.renamed_file and one.a_mode == one.b_mode,
        )
        for one in found
    )


def compared(folder: Path, before: Tree, after: Tree) -> CommitComparison:
    return CommitComparison(between(folder, committed(folder, before), committed(folder, after)))
