"""What becomes of a file when somebody applies a suggestion with a click (W2, facts 2.4): which lines go, which come,
and how they end. Pure; works on bytes, for files are no text before somebody has looked.

GitLab puts the lines of a suggestion into the file as they are, with line feeds between them, and ends the last one as
the last line ends that it replaces. A suggestion of nothing but blanks takes the lines away. So some files and some
suggestions do not go together, and that is said here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LF, _CRLF = b"\n", b"\r\n"


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """Lines `first` to `last`, counted from 1, become `text`; empty: they go."""

    first: int
    last: int
    text: str

    def meets(self, other: "Change") -> bool:
        return self.first <= other.last and other.first <= self.last


def lines_of(content: bytes) -> list[bytes]:
    """With their ends. Only a line feed ends one, as for git."""
    lines = [line + _LF for line in content.split(_LF)]
    lines[-1] = lines[-1].removesuffix(_LF)
    return lines if lines[-1] else lines[:-1]


def bare(line: bytes) -> bytes:
    return line.removesuffix(_LF).removesuffix(b"\r")


def unfit(content: bytes) -> str:
    """Why nothing can be known of suggestions for this file; empty if it can."""
    if b"\0" in content:
        return "the file is no text"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "the file is not in UTF-8"
    return ""


def fault(content: bytes, change: Change) -> str:
    """Why a click would not do what is meant, as the end of a sentence; empty if it would."""
    lines = lines_of(content)
    if not 1 <= change.first <= change.last <= len(lines):
        return f"the file has {len(lines)} lines at that commit"
    replaced, wanted = lines[change.first - 1 : change.last], change.text.split("\n")
    if "\r" in change.text or any(b"\r" in bare(line) for line in replaced):
        return "there are carriage returns amidst its lines"
    if change.text and not (wanted[0].strip() and wanted[-1].strip()):
        return "it begins or ends with an empty line, which GitLab does not keep"
    if len(wanted) > 1 and replaced[-1].endswith(_CRLF):
        return "the file's lines end in CR LF, and GitLab would put several lines in with LF alone"
    if changed(content, [change]) == content:
        return "it changes nothing"
    return ""


def changed(content: bytes, changes: Iterable[Change]) -> bytes:
    """The file with all of them, none of which meets another."""
    lines = lines_of(content)
    for change in sorted(changes, reverse=True):
        lines[change.first - 1 : change.last] = _new(lines, change)
    return b"".join(lines)


def patch(content: bytes, changes: Sequence[Change], name: str) -> bytes:
    """As git takes it: one hunk of the whole file, so that nothing can be applied in another place."""
    lines, at, body = lines_of(content), 0, list[bytes]()
    before, after = len(lines), len(lines)
    for change in sorted(changes):
        old, new = lines[change.first - 1 : change.last], _new(lines, change)
        body += [b" " + line for line in lines[at : change.first - 1]]
        body += [b"-" + line for line in old] + [b"+" + line for line in new]
        after, at = after + len(new) - len(old), change.last
    body += [b" " + line for line in lines[at:]]
    head = f"--- a/{name}\n+++ b/{name}\n@@ -{_range(before)} +{_range(after)} @@\n".encode()
    return head + b"".join(line if line.endswith(_LF) else line + b"\n\\ No newline at end of file\n" for line in body)


def _range(lines: int) -> str:
    return f"1,{lines}" if lines else "0,0"


def _new(lines: Sequence[bytes], change: Change) -> list[bytes]:
    if not change.text:
        return []
    last = lines[change.last - 1]
    return lines_of(change.text.encode() + last[len(bare(last)) :])
