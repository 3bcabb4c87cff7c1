"""The links of an answer: each leads to an address that was fetched, or to one that is made of ids that were.

Others are taken out and their words stay. Where a line of a log is meant that the log does not have, the link leads to
the log. Knows GitLab's addresses, and asks nobody.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from hummingbird.domain.citation_limits import MENTIONS
from hummingbird.evidence.citations.mentions import MARK
from hummingbird.evidence.citations.record import TRAILING, Record

_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:.|\n)*?(?<!`)\1(?!`)")
_DESTINATION = re.compile(
    r"\]\(\s{0,9}(<[^<>\n]{0,4096}>|[^\s()<>]{0,4096}(?:\([^\s()<>]{0,999}\)[^\s()<>]{0,4096})?)"
    r"(?:\s{1,9}(?:\"[^\"\n]{0,999}\"|'[^'\n]{0,999}'|\([^()\n]{0,999}\)))?\s{0,9}\)"
)
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,999}\]:[ \t]*<?([^\s>]{1,4096})>?[^\n]*$", re.MULTILINE)
_ADDRESS = re.compile(r"<?\b(?:https?://|www\.)[^\s<>\"'`\\\x00-\x20\x7f\]\[{}|^]+>?", re.IGNORECASE)
_GITLAB = re.compile(r"(https?://[^?#]+?)/-/(jobs|pipelines|merge_requests|commit|blob|raw)/([^?#]+)")
_LOG_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?")
_BELOW = {
    "jobs": frozenset({"", "raw", "artifacts/browse", "artifacts/download"}),
    "pipelines": frozenset({"", "test_report", "failures", "builds", "dag"}),
    "merge_requests": frozenset({"", "diffs", "commits", "pipelines"}),
}
_NAMED = {"jobs": ("job_id",), "pipelines": ("pipeline_id",), "merge_requests": ("iid", "mr_iid")}


@dataclass(slots=True)
class Links:
    """`known`: addresses of the configuration. Counts what it sees."""

    record: Record
    known: Iterable[str] = ()
    checked: int = 0
    removed: int = 0
    _bases: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        found = (*self.record.addresses, *self.known)
        self._bases = frozenset(one.split("#", 1)[0].rstrip("/") for one in found)

    def rewritten(self, text: str) -> str:
        """Prose, its lines joined; nothing of it stands in a block of code."""
        return self._outside_code(self._inline(_DEFINITION.sub(self._defined, text)))

    def right(self, address: str) -> str:
        """The address as it may stand, empty if it may not."""
        base, _, fragment = address.partition("#")
        if not base:
            return address
        if base.rstrip("/") not in self._bases and not self._made_of_ids(base):
            return ""
        return address if not fragment or self._reaches(base, fragment, address) else base

    def _made_of_ids(self, base: str) -> bool:
        found = _GITLAB.fullmatch(base)
        if found is None or not self._is_project(found[1]):
            return False
        kind, rest = found[2], found[3].rstrip("/")
        if kind == "commit":
            return bool(re.fullmatch(r"[0-9a-f]{7,64}", rest)) and any(
                value.startswith(rest) for name, value in self.record.ids if name.endswith("sha")
            )
        if kind in ("blob", "raw"):
            return self._is_file(rest)
        number, _, below = rest.partition("/")
        return below in _BELOW[kind] and (
            any((name, number) in self.record.ids for name in _NAMED[kind])
            or f"{found[1]}/-/{kind}/{number}" in self._bases
        )

    def _is_project(self, address: str) -> bool:
        return address in self._bases or any(one.startswith(f"{address}/-/") for one in self._bases)

    def _is_file(self, rest: str) -> bool:
        """A revision and a path that were both told."""
        revisions = {value for name, value in self.record.ids if name.endswith(("sha", "ref", "branch"))}
        paths = {stretch.path for stretch in self.record.stretches}
        paths |= {value for name, value in self.record.ids if name.endswith("path")}
        return any(rest == f"{revision}/{path}" for revision in revisions for path in paths)

    def _reaches(self, base: str, fragment: str, address: str) -> bool:
        """Whether what the fragment names is there, as far as anybody knows."""
        if address in self.record.addresses:
            return True
        lines, found = _LOG_LINES.fullmatch(fragment), _GITLAB.fullmatch(base)
        if lines is None or found is None:
            return False
        last = int(lines[2] or lines[1])
        if found[2] == "jobs":
            size = self.record.sizes.get(found[3].split("/", 1)[0])
            return last > 0 and (size is None or last <= size)
        ends = found[3]
        return any(
            ends.endswith(f"/{stretch.path}") and stretch.first <= int(lines[1]) <= last <= stretch.last
            for stretch in self.record.stretches
        )

    def _judged(self, address: str) -> str:
        self.checked += 1
        found = self.right(address)
        self.removed += not found
        return found if self.checked <= MENTIONS else ""

    def _defined(self, found: re.Match[str]) -> str:
        right = self._judged(found[1])
        return found[0] if right == found[1] else found[0].replace(found[1], right) if right else ""

    def _inline(self, text: str) -> str:
        """`[words](address)`: the last first, so that what stands before keeps its place."""
        code = [found.span() for found in _CODE.finditer(text)]
        for found in reversed(list(_DESTINATION.finditer(text))):
            if any(start < found.start() < end - 1 for start, end in code):
                continue
            opening = _opening(text, found.start())
            if opening < 0:
                continue
            given = found[1].strip("<>")
            right = self._judged(given)
            image = opening - 1 if opening and text[opening - 1] == "!" else opening
            if not right:
                text = text[:image] + text[opening + 1 : found.start()] + text[found.end() :]
            elif right != given:
                text = text[: found.start()] + found[0].replace(given, right) + text[found.end() :]
        return text

    def _outside_code(self, text: str) -> str:
        """Addresses that stand for themselves. In code they lead nowhere: those are marked."""
        spans = [found.span() for found in _CODE.finditer(text)]
        ends = [(0, 0), *spans, (len(text), len(text))]
        pieces = []
        for before, here in pairwise(ends):
            pieces.append(self._plain(text[before[1] : here[0]]))
            span = text[here[0] : here[1]]
            behind = text[here[1] : here[1] + len(MARK)]
            pieces.append(span + (MARK if behind != MARK and self._foreign(span) else ""))
        return "".join(pieces)

    def _foreign(self, span: str) -> bool:
        return any(not self._told(found[0].strip("<>").rstrip(TRAILING)) for found in _ADDRESS.finditer(span))

    def _told(self, address: str) -> bool:
        """Of one that is cut, its beginning."""
        if not address.endswith("…"):
            return bool(self._judged(address))
        begun = any(one.startswith(address[:-1]) for one in self._bases)
        self.checked, self.removed = self.checked + 1, self.removed + (not begun)
        return begun

    def _plain(self, text: str) -> str:
        def made(found: re.Match[str]) -> str:
            whole = found[0]
            if found.start() >= 2 and text[found.start() - 2 : found.start()] == "](":
                return whole  # judged already
            given = whole.strip("<>").rstrip(TRAILING)
            right = self._judged(given)
            if right == given:
                return whole
            end = "" if whole.startswith("<") else whole[len(given) :]
            return f"{right}{end}" if right else f"`{given}`{MARK}{end}"

        return _ADDRESS.sub(made, text)


def _opening(text: str, closing: int) -> int:
    """Where the bracket begins that ends there; -1 if none does."""
    depth = 0
    for at in range(closing, max(-1, closing - 2_000), -1):
        if at and text[at - 1] == "\\":
            continue
        if text[at] == "]":
            depth += 1
        elif text[at] == "[":
            depth -= 1
            if not depth:
                return at
        elif text[at] == "\n" and text[at - 1 : at] == "\n":
            return -1
    return -1
