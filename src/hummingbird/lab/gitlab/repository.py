"""The repository of a case: its files at the merge request's head and before it, diffs and archives.

A case has only the files at the head; those at the base are computed by undoing the diff. Commits in between count as
the head, because no case needs them apart.
"""

import bz2
import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from hummingbird.lab.gitlab.records import DiffFile

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_MODE = "0"


def parse_diff(text: str) -> list[DiffFile]:
    """Split a `git diff` into its files, in order."""
    return [_parse_file(part) for part in re.split(r"(?m)^(?=diff --git )", text) if part.startswith("diff --git ")]


def _parse_file(part: str) -> DiffFile:
    start = re.search(r"(?m)^@@ ", part)
    header, hunks = (part[: start.start()], part[start.start() :]) if start else (part, "")
    found = dict(_parse_header(header))
    old, new = found.get("old", ""), found.get("new", "")
    mode = found.get("mode", "100644")
    created, deleted = "new file mode" in found, "deleted file mode" in found
    return DiffFile(
        old_path=new if created else old,
        new_path=old if deleted else new,
        a_mode=_NO_MODE if created else found.get("deleted file mode", found.get("old mode", mode)),
        b_mode=_NO_MODE if deleted else found.get("new file mode", found.get("new mode", mode)),
        diff=hunks,
        header=header,
        new_file=created,
        renamed_file="rename from" in found,
        deleted_file=deleted,
    )


def _parse_header(header: str) -> Iterator[tuple[str, str]]:
    """Yield what the lines before the hunks say; later lines are more exact than the first."""
    first, *others = header.splitlines()
    paths = re.match(r"diff --git (\"?a/.*?) (\"?b/.*)$", first)
    if paths:
        yield "old", _unquote_path(paths[1])
        yield "new", _unquote_path(paths[2])
    for line in others:
        for word in ("new file mode", "deleted file mode", "old mode", "new mode", "rename from", "rename to"):
            if line.startswith(word + " "):
                yield word, line[len(word) + 1 :]
        if line.startswith("index ") and line.count(" ") == 2:
            yield "mode", line.rsplit(" ", 1)[1]
        if line.startswith("rename from "):
            yield "old", line[12:]
        if line.startswith("rename to "):
            yield "new", line[10:]
        if line.startswith("--- ") and line != "--- /dev/null":
            yield "old", _unquote_path(line[4:])
        if line.startswith("+++ ") and line != "+++ /dev/null":
            yield "new", _unquote_path(line[4:])


def _unquote_path(text: str) -> str:
    """Remove a/ or b/, and the quotes around names with unusual bytes."""
    text = text.rstrip("\t")
    if text.startswith('"'):
        text = text.strip('"').encode("latin-1").decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
    return text[2:]


def unidiff(file: DiffFile) -> str:
    """Return the hunks with the ---/+++ lines, which the API leaves out by default."""
    if not file.diff:
        return ""
    old = "/dev/null" if file.new_file else f"a/{file.old_path}"
    new = "/dev/null" if file.deleted_file else f"b/{file.new_path}"
    return f"--- {old}\n+++ {new}\n{file.diff}"


def undo_diff(file: DiffFile, after: str) -> str | None:
    """Return the file as it was before the diff, or None if the diff does not fit `after`."""
    lines, before, at = after.splitlines(keepends=True), list[str](), 0
    for line in file.diff.splitlines(keepends=True):
        hunk = HUNK.match(line)
        if hunk:
            start = int(hunk[3]) - (1 if hunk[4] != "0" else 0)
            before += lines[at:start]
            at = start
        elif line.startswith("-"):
            before.append(line[1:])
        elif line.startswith(("+", " ")) or not line.strip("\r\n"):
            if at >= len(lines) or lines[at].rstrip("\r\n") != line[1:].rstrip("\r\n"):
                return None
            if not line.startswith("+"):
                before.append(lines[at])
            at += 1
    return "".join(before + lines[at:])


_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda tape: gzip.compress(tape, mtime=0),
    "bz2": bz2.compress,
    "": lambda tape: tape,
}
ARCHIVE_KINDS = {
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
class RepositoryTree:
    """The files of a case: `head` maps paths to files, `before` holds what the diff changed (None: did not exist)."""

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

    def is_executable(self, path: str) -> bool:
        file = self.head.get(path)
        return bool(file and file.stat().st_mode & 0o100)


def build_tree(root: Path, files: Iterable[Path], changed: Iterable[DiffFile]) -> RepositoryTree:
    """Build the tree from the files at the head and the diff."""
    head = {file.relative_to(root).as_posix(): file for file in files}
    return RepositoryTree(head, dict(_files_before(head, changed)))


def _files_before(head: Mapping[str, Path], changed: Iterable[DiffFile]) -> Iterator[tuple[str, bytes | None]]:
    for file in changed:
        if file.new_file:
            yield file.new_path, None
        elif file.deleted_file:
            yield file.old_path, (undo_diff(file, "") or "").encode()
        elif file.new_path in head:
            now = head[file.new_path].read_bytes()
            was = undo_diff(file, now.decode("utf-8", "surrogateescape"))
            if file.renamed_file:
                yield file.new_path, None
            yield file.old_path, now if was is None else was.encode("utf-8", "surrogateescape")


def build_archive(kind: str, prefix: str, members: Iterable[tuple[str, bytes, bool]]) -> bytes:
    """Archive the files below `prefix`, as git archive does; the same files give the same bytes."""
    return (
        _build_zip(prefix, members) if kind == "zip" else _COMPRESSORS[ARCHIVE_KINDS[kind]](_build_tar(prefix, members))
    )


def _build_zip(prefix: str, members: Iterable[tuple[str, bytes, bool]]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as bag:
        for path, content, _executable in members:
            bag.writestr(zipfile.ZipInfo(f"{prefix}/{path}", (2020, 1, 1, 0, 0, 0)), content)
    return held.getvalue()


def _build_tar(prefix: str, members: Iterable[tuple[str, bytes, bool]]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tape:
        tape.addfile(_tar_entry(f"{prefix}/", tarfile.DIRTYPE, 0o775))
        for path, content, executable in members:
            entry = _tar_entry(f"{prefix}/{path}", tarfile.REGTYPE, 0o775 if executable else 0o664)
            entry.size = len(content)
            tape.addfile(entry, io.BytesIO(content))
    return held.getvalue()


def _tar_entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime, entry.uname, entry.gname = kind, mode, _EPOCH, "root", "root"
    return entry


def select_paths(paths: Iterable[str], below: str, without: Iterable[str]) -> list[str]:
    """Return the paths below a folder (or the file itself), without those that match an exclude pattern."""
    below, without = below.strip("/"), list(without)
    return [
        path
        for path in paths
        if (not below or path == below or path.startswith(below + "/"))
        and not any(fnmatchcase(path, pattern) or path.startswith(pattern.rstrip("/") + "/") for pattern in without)
    ]


def blob_id(content: bytes) -> str:
    """Return the id that git gives to this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
