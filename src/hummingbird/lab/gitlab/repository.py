"""The repository of a case: its files at the merge request's head and before it, and archives of them.

The case holds the files at the head alone; what they were at the base is worked out by undoing the diff. Commits in
between are taken for the head: no case needs them apart. Archives are as facts 2.7 says. Knows
nothing of HTTP.
"""

import bz2
import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from hummingbird.lab.gitlab.diffs import undone
from hummingbird.lab.gitlab.records import FileDiff

_PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda tape: gzip.compress(tape, mtime=0),
    "bz2": bz2.compress,
    "": lambda tape: tape,
}
KINDS = {
    "tar.gz": "gz",
    "tgz": "gz",
    "gz": "gz",
    "tar.bz2": "bz2",
    "tbz": "bz2",
    "tbz2": "bz2",
    "tb2": "bz2",
    "bz2": "bz2",
    "tar": "",
    "zip": "zip",
}
_EPOCH = 1_577_836_800


@dataclass(slots=True)
class Tree:
    """`head` maps paths to the files of the case; `before` holds what the diff changed (None: was not there)."""

    head: Mapping[str, Path] = field(default_factory=dict)
    before: Mapping[str, bytes | None] = field(default_factory=dict)

    def read(self, path: str, *, at_head: bool) -> bytes | None:
        if not at_head and path in self.before:
            return self.before[path]
        file = self.head.get(path)
        return file.read_bytes() if file else None

    def paths(self, *, at_head: bool) -> list[str]:
        if at_head:
            return sorted(self.head)
        gone = {path for path, content in self.before.items() if content is None}
        return sorted(({*self.head} - gone) | ({*self.before} - gone))

    def executable(self, path: str) -> bool:
        file = self.head.get(path)
        return bool(file and file.stat().st_mode & 0o100)


def tree_of(root: Path, files: Iterable[Path], changed: Iterable[FileDiff]) -> Tree:
    head = {file.relative_to(root).as_posix(): file for file in files}
    return Tree(head, dict(_before(head, changed)))


def _before(head: Mapping[str, Path], changed: Iterable[FileDiff]) -> Iterator[tuple[str, bytes | None]]:
    for file in changed:
        if file.new_file:
            yield file.new_path, None
        elif file.deleted_file:
            yield file.old_path, (undone(file, "") or "").encode()
        elif file.new_path in head:
            now = head[file.new_path].read_bytes()
            was = undone(file, now.decode("utf-8", "surrogateescape"))
            if file.renamed_file:
                yield file.new_path, None
            yield file.old_path, now if was is None else was.encode("utf-8", "surrogateescape")


def archived(kind: str, prefix: str, members: Iterable[tuple[str, bytes, bool]]) -> bytes:
    """All files below `prefix`, as git archive makes it; the same files make the same bytes."""
    return _bag(prefix, members) if kind == "zip" else _PACKED[KINDS[kind]](_tape(prefix, members))


def _bag(prefix: str, members: Iterable[tuple[str, bytes, bool]]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as bag:
        for path, content, _executable in members:
            bag.writestr(zipfile.ZipInfo(f"{prefix}/{path}", (2020, 1, 1, 0, 0, 0)), content)
    return held.getvalue()


def _tape(prefix: str, members: Iterable[tuple[str, bytes, bool]]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tape:
        tape.addfile(_entry(f"{prefix}/", tarfile.DIRTYPE, 0o775))
        for path, content, executable in members:
            entry = _entry(f"{prefix}/{path}", tarfile.REGTYPE, 0o775 if executable else 0o664)
            entry.size = len(content)
            tape.addfile(entry, io.BytesIO(content))
    return held.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime, entry.uname, entry.gname = kind, mode, _EPOCH, "root", "root"
    return entry


def wanted(paths: Iterable[str], below: str, without: Iterable[str]) -> list[str]:
    """Those below a folder (or the file itself), but for those that a pattern leaves out."""
    below, without = below.strip("/"), list(without)
    return [
        path
        for path in paths
        if (not below or path == below or path.startswith(below + "/"))
        and not any(fnmatchcase(path, pattern) or path.startswith(pattern.rstrip("/") + "/") for pattern in without)
    ]


def blob_id(content: bytes) -> str:
    """As git names it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
