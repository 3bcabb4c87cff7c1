"""Taking a `git diff` apart into its files, and undoing it: what a file was before.

Works on text alone; knows nothing of limits or JSON.
"""

import re
from collections.abc import Iterator

from hummingbird.lab.gitlab.records import FileDiff

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NEVER = "0"


def files_of(text: str) -> list[FileDiff]:
    """In the order of the diff; none for an empty one."""
    return [_file(part) for part in re.split(r"(?m)^(?=diff --git )", text) if part.startswith("diff --git ")]


def _file(part: str) -> FileDiff:
    start = re.search(r"(?m)^@@ ", part)
    header, hunks = (part[: start.start()], part[start.start() :]) if start else (part, "")
    found = dict(_facts(header))
    old, new = found.get("old", ""), found.get("new", "")
    mode = found.get("mode", "100644")
    created, deleted = "new file mode" in found, "deleted file mode" in found
    return FileDiff(
        old_path=new if created else old,
        new_path=old if deleted else new,
        a_mode=_NEVER if created else found.get("deleted file mode", found.get("old mode", mode)),
        b_mode=_NEVER if deleted else found.get("new file mode", found.get("new mode", mode)),
        diff=hunks,
        header=header,
        new_file=created,
        renamed_file="rename from" in found,
        deleted_file=deleted,
    )


def _facts(header: str) -> Iterator[tuple[str, str]]:
    """What the lines before the hunks say; the later ones are more exact than the first."""
    first, *others = header.splitlines()
    paths = re.match(r"diff --git (\"?a/.*?) (\"?b/.*)$", first)
    if paths:
        yield "old", _path(paths[1])
        yield "new", _path(paths[2])
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
            yield "old", _path(line[4:])
        if line.startswith("+++ ") and line != "+++ /dev/null":
            yield "new", _path(line[4:])


def _path(text: str) -> str:
    """Without a/ or b/; git quotes names with unusual bytes."""
    text = text.rstrip("\t")
    if text.startswith('"'):
        text = text.strip('"').encode("latin-1").decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
    return text[2:]


def unidiff(file: FileDiff) -> str:
    """The hunks with the ---/+++ lines that the API leaves out unless asked (facts 2.2)."""
    if not file.diff:
        return ""
    old = "/dev/null" if file.new_file else f"a/{file.old_path}"
    new = "/dev/null" if file.deleted_file else f"b/{file.new_path}"
    return f"--- {old}\n+++ {new}\n{file.diff}"


def undone(file: FileDiff, after: str) -> str | None:
    """What the file said before; None if the diff does not fit `after`."""
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
