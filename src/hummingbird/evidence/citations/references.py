"""Check the places, jobs and links that an answer names against what was fetched.

A place (`path:line`) or job that was not fetched is marked. A link to GitLab must lead to a
fetched address, or to one made of fetched ids; else it is removed, or marked, and its words stay. A plain https
link to any other host is left, unless it could carry data away: then its address is shown as text. A link to a line
that a log does not have leads to the log instead. Nothing is requested over the network.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import pairwise
from urllib.parse import urlsplit

from hummingbird.evidence.bounds import MENTIONS
from hummingbird.evidence.citations.diffs import FileLineRange
from hummingbird.evidence.citations.source_record import TRAILING_PUNCTUATION, FetchedRecord

NOT_FOUND_MARK = " (not found in what was fetched)"
_PATH = (
    r"(?:[\w.+@~-]+/)*[\w.+@-]*\.[A-Za-z][A-Za-z0-9_]{0,9}|(?:[\w.+@~-]+/)*(?:Docker|Make|Container|Jenkins|Just)file"
)
_PLACE = re.compile(
    rf"(?<![\w/.:@+~-])(/?(?:{_PATH}))(?::|`?,? lines? )(\d{{1,7}})(?:(?:[-–]|,? to )(\d{{1,7}}))?"
    r"(?::\d{1,5})?(?![\w/])"
)
_NUMBER = re.compile(r"\b(?:job|pipeline)s? #?`?(\d{3,18})(?!\w)", re.IGNORECASE)
_NAME = re.compile(r"\bjobs? (?:called |named )?`([^`\n]{2,200})`|`([^`\n]{2,200})` jobs?\b", re.IGNORECASE)
_CLOSING = re.compile(r"[`*_]*")
_BETWEEN = r"[\"'`)\]]*(?::|, line | line |\()\s?"


@dataclass(frozen=True, slots=True)
class AnswerReference:
    """A place or a job that an answer names.

    It is supported if all `patterns` of one group occur in something fetched. `path`, `first` and `last` are set for a
    place in a file.
    """

    start: int
    end: int
    patterns: tuple[tuple[str, ...], ...]
    path: str = ""
    first: int = 0
    last: int = 0


def find_references(text: str) -> list[AnswerReference]:
    """Return the places and jobs of a text, in order."""
    found = [*_find_places(text), *_find_jobs(text)]
    found.sort(key=lambda one: (one.start, -one.end))
    return found[:MENTIONS]


def _find_places(text: str) -> Iterator[AnswerReference]:
    for found in _PLACE.finditer(text):
        if _is_in_address(text, found.start()):
            continue
        path, first, last = found[1].lstrip("/").removeprefix("./"), int(found[2]), int(found[3] or found[2])
        yield AnswerReference(found.start(), found.end(), tuple(_place_patterns(path, first, last)), path, first, last)


def _is_in_address(text: str, at: int) -> bool:
    start = max(text.rfind(sign, 0, at) for sign in " \n(<[`")
    return "://" in text[start + 1 : at]


def _place_patterns(path: str, first: int, last: int) -> Iterator[tuple[str, ...]]:
    """Yield the forms that logs and traces use. The file name alone counts only if the whole path occurs, too."""
    ends = (first,) if first == last else (first, last)
    yield tuple(_line_pattern(path, number) for number in ends)
    if "/" in path:
        name = path.rsplit("/", 1)[-1]
        yield (*(_line_pattern(name, number, alone=True) for number in ends), rf"(?<![\w.-]){re.escape(path)}(?![\w-])")


def _line_pattern(path: str, number: int, *, alone: bool = False) -> str:
    """With `alone`, no folder may stand before the path, because that would be another file."""
    return rf"(?<![\w.{'/' if alone else ''}-]){re.escape(path)}{_BETWEEN}{number}(?!\d)"


def _find_jobs(text: str) -> Iterator[AnswerReference]:
    for found in _NUMBER.finditer(text):
        yield AnswerReference(found.start(), found.end(), ((rf"(?<![\w.]){found[1]}(?![\w])",),))
    for found in _NAME.finditer(text):
        name = (found[1] or found[2]).strip()
        if name and not name.isdigit():
            yield AnswerReference(found.start(), found.end(), ((rf"(?<!\w){re.escape(name)}(?!\w)",),))


def is_supported(mention: AnswerReference, record: FetchedRecord, numbers: Mapping[str, int]) -> bool:
    """Tell whether the record supports the reference; `numbers` has the index of each pattern in the record."""
    if mention.path and any(_is_within(mention, stretch) for stretch in record.line_ranges):
        return True
    return any(all(numbers[word] in record.found_patterns for word in group) for group in mention.patterns)


def _is_within(mention: AnswerReference, stretch: FileLineRange) -> bool:
    same = stretch.path == mention.path or stretch.path.endswith(f"/{mention.path}")
    return same and stretch.first <= mention.first <= mention.last <= stretch.last


def mark_missing(text: str, missing: Sequence[AnswerReference]) -> str:
    """Put a mark behind each missing reference, unless it has one."""
    pieces, at = [], 0
    for one in missing:
        if one.end < at:
            continue
        closing = _CLOSING.match(text, one.end)
        end = closing.end() if closing else one.end
        if text.startswith(NOT_FOUND_MARK, end) or text.startswith(NOT_FOUND_MARK, one.end):
            continue
        pieces += [text[at:end], NOT_FOUND_MARK]
        at = end
    return "".join([*pieces, text[at:]])


_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:.|\n)*?(?<!`)\1(?!`)")
_DESTINATION = re.compile(
    r"\]\(\s{0,9}(<[^<>\n]{0,4096}>|[^\s()<>]{0,4096}(?:\([^\s()<>]{0,999}\)[^\s()<>]{0,4096})?)"
    r"(?:\s{1,9}(?:\"[^\"\n]{0,999}\"|'[^'\n]{0,999}'|\([^()\n]{0,999}\)))?\s{0,9}\)"
)
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,999}\]:[ \t]*<?([^\s>]{1,4096})>?[^\n]*$", re.MULTILINE)
_ADDRESS = re.compile(r"<?\b(?:https?://|www\.)[^\s<>\"'`\\\x00-\x20\x7f\]\[{}|^]+>?", re.IGNORECASE)
_GITLAB = re.compile(r"(https?://[^?#]+?)/-/(jobs|pipelines|merge_requests|commit|blob|raw)/([^?#]+)")
_LOG_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?")
_KNOWN_SUBPAGES = {
    "jobs": frozenset({"", "raw", "artifacts/browse", "artifacts/download"}),
    "pipelines": frozenset({"", "test_report", "failures", "builds", "dag"}),
    "merge_requests": frozenset({"", "diffs", "commits", "pipelines"}),
}
_ID_NAMES = {"jobs": ("job_id",), "pipelines": ("pipeline_id",), "merge_requests": ("iid", "mr_iid")}


_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?\.){1,5}[a-z]{2,20}", re.IGNORECASE)
_PLAIN_PATH = re.compile(r"[\w./~+:@!(),-]{0,200}", re.ASCII)
_PLAIN_FRAGMENT = re.compile(r"[\w.:/()-]{0,80}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9]+")
_LETTERS_AND_DIGITS = re.compile(r"(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9]{20,}")


def is_plain_link(address: str) -> bool:
    """Tell whether an address is a plain https one that could not carry data away.

    What could: a query, a user, a port, an address in numbers, and long pieces that are not words.
    """
    try:
        parts = urlsplit(address)
        plain = parts.scheme == "https" and not parts.query and "?" not in address and parts.netloc == parts.hostname
    except ValueError:
        return False
    if not plain or not _HOST.fullmatch(parts.netloc):
        return False
    return bool(_PLAIN_PATH.fullmatch(parts.path) and _PLAIN_FRAGMENT.fullmatch(parts.fragment)) and not any(
        len(word) > 32 or _LETTERS_AND_DIGITS.fullmatch(word) for word in _WORD.findall(address)
    )


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


class LinkVerdict(Enum):
    """What becomes of a link: it stays, it is marked, it is removed, or its address is shown as text."""

    KEEP = auto()
    MARK = auto()
    REMOVE = auto()
    SHOW = auto()


@dataclass(slots=True)
class LinkChecker:
    """Checks and rewrites links, and counts them.

    `known` are addresses from the configuration. With `marks`, a wrong link stays and is marked; without `cites`, links
    are not citations, and only what could carry data away is looked for.
    """

    record: FetchedRecord
    known: Iterable[str] = ()
    marks: bool = False
    cites: bool = True
    checked: int = 0
    removed: int = 0
    marked: int = 0
    _bases: frozenset[str] = field(init=False)
    _hosts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        found = (*self.record.addresses, *self.known)
        self._bases = frozenset(one.split("#", 1)[0].rstrip("/") for one in found)
        ours = (*self.known, *(one for one in self.record.addresses if "/-/" in one))
        self._hosts = frozenset(filter(None, map(_host_of, ours)))

    def rewrite_links(self, text: str) -> str:
        """Rewrite the links of prose, given as joined lines without code blocks."""
        return self._rewrite_bare_addresses(self._rewrite_inline_links(_DEFINITION.sub(self._rewrite_definition, text)))

    def correct_address(self, address: str) -> str:
        """Return the address as it may be posted, or "" if it may not."""
        base, _, fragment = address.partition("#")
        if not base:
            return address
        if base.rstrip("/") not in self._bases and not self._is_made_of_known_ids(base):
            return ""
        return address if not fragment or self._fragment_exists(base, fragment, address) else base

    def _is_made_of_known_ids(self, base: str) -> bool:
        found = _GITLAB.fullmatch(base)
        if found is None or not self._is_known_project(found[1]):
            return False
        kind, rest = found[2], found[3].rstrip("/")
        if kind == "commit":
            return bool(re.fullmatch(r"[0-9a-f]{7,64}", rest)) and any(
                value.startswith(rest) for name, value in self.record.ids if name.endswith("sha")
            )
        if kind in ("blob", "raw"):
            return self._is_known_file(rest)
        number, _, below = rest.partition("/")
        return below in _KNOWN_SUBPAGES[kind] and (
            any((name, number) in self.record.ids for name in _ID_NAMES[kind])
            or f"{found[1]}/-/{kind}/{number}" in self._bases
        )

    def _is_known_project(self, address: str) -> bool:
        return address in self._bases or any(one.startswith(f"{address}/-/") for one in self._bases)

    def _is_known_file(self, rest: str) -> bool:
        """Tell whether both the revision and the path were fetched."""
        revisions = {value for name, value in self.record.ids if name.endswith(("sha", "ref", "branch"))}
        paths = {stretch.path for stretch in self.record.line_ranges}
        paths |= {value for name, value in self.record.ids if name.endswith("path")}
        return any(rest == f"{revision}/{path}" for revision in revisions for path in paths)

    def _fragment_exists(self, base: str, fragment: str, address: str) -> bool:
        """Tell whether the target of the fragment exists, as far as is known."""
        if address in self.record.addresses:
            return True
        lines, found = _LOG_LINES.fullmatch(fragment), _GITLAB.fullmatch(base)
        if lines is None or found is None:
            return False
        last = int(lines[2] or lines[1])
        if found[2] == "jobs":
            size = self.record.log_line_counts.get(found[3].split("/", 1)[0])
            return last > 0 and (size is None or last <= size)
        ends = found[3]
        return any(
            ends.endswith(f"/{stretch.path}") and stretch.first <= int(lines[1]) <= last <= stretch.last
            for stretch in self.record.line_ranges
        )

    def _check_address(self, address: str) -> tuple[LinkVerdict, str]:
        """Return what becomes of a link, and the address that it should have."""
        self.checked += 1
        if self.checked > MENTIONS:
            return LinkVerdict.REMOVE, ""
        if right := self.correct_address(address):
            return LinkVerdict.KEEP, right
        host = _host_of(address)
        if host and (not self.cites or host not in self._hosts):
            alike = any(known in host for known in self._hosts - {host})
            if is_plain_link(address) and not alike:
                return LinkVerdict.KEEP, address
            self.removed += 1
            return (LinkVerdict.SHOW if "://" in address else LinkVerdict.REMOVE), ""
        if self.marks and host:
            self.marked += 1
            return LinkVerdict.MARK, address
        self.removed += 1
        return LinkVerdict.REMOVE, ""

    def _rewrite_definition(self, found: re.Match[str]) -> str:
        verdict, right = self._check_address(found[1])
        if verdict is LinkVerdict.MARK or right == found[1]:
            return found[0]
        return found[0].replace(found[1], right) if right else ""

    def _rewrite_inline_links(self, text: str) -> str:
        """Rewrite `[words](address)`, last one first, so that earlier positions stay valid."""
        code = [found.span() for found in _CODE.finditer(text)]
        for found in reversed(list(_DESTINATION.finditer(text))):
            if any(start < found.start() < end - 1 for start, end in code):
                continue
            opening = _find_opening_bracket(text, found.start())
            if opening < 0:
                continue
            given = found[1].strip("<>")
            verdict, right = self._check_address(given)
            is_image = opening > 0 and text[opening - 1] == "!"
            if is_image and not self.correct_address(given):  # a picture is loaded by whoever reads the note
                self.removed += bool(right)
                verdict, right = LinkVerdict.REMOVE, ""
            if not right:
                shown = f" (`{given}`)" if verdict is LinkVerdict.SHOW and "`" not in given else ""
                start = opening - is_image
                text = text[:start] + text[opening + 1 : found.start()] + shown + text[found.end() :]
            elif verdict is LinkVerdict.MARK:
                if not text.startswith(NOT_FOUND_MARK, found.end()):
                    text = text[: found.end()] + NOT_FOUND_MARK + text[found.end() :]
            elif right != given:
                text = text[: found.start()] + found[0].replace(given, right) + text[found.end() :]
        return text

    def _rewrite_bare_addresses(self, text: str) -> str:
        """Rewrite addresses outside of links. In code spans they are not links, so there they are only marked."""
        spans = [found.span() for found in _CODE.finditer(text)]
        ends = [(0, 0), *spans, (len(text), len(text))]
        pieces = []
        for before, here in pairwise(ends):
            pieces.append(self._rewrite_plain_text(text[before[1] : here[0]]))
            span = text[here[0] : here[1]]
            behind = text[here[1] : here[1] + len(NOT_FOUND_MARK)]
            pieces.append(
                span + (NOT_FOUND_MARK if behind != NOT_FOUND_MARK and self._has_unknown_address(span) else "")
            )
        return "".join(pieces)

    def _has_unknown_address(self, span: str) -> bool:
        return any(
            not self._is_known_address(found[0].strip("<>").rstrip(TRAILING_PUNCTUATION))
            for found in _ADDRESS.finditer(span)
        )

    def _is_known_address(self, address: str) -> bool:
        """Tell whether an address is known, or claims nothing; of one that is cut, whether its beginning is."""
        if not self.cites or _host_of(address) not in self._hosts:
            return True
        if not address.endswith("…"):
            self.checked += 1
            known = bool(self.correct_address(address))
            self.removed += not known
            return known
        begun = any(one.startswith(address[:-1]) for one in self._bases)
        self.checked, self.removed = self.checked + 1, self.removed + (not begun)
        return begun

    def _rewrite_plain_text(self, text: str) -> str:
        def rewrite_match(found: re.Match[str]) -> str:
            whole = found[0]
            if found.start() >= 2 and text[found.start() - 2 : found.start()] == "](":
                return whole  # checked as an inline link
            given = whole.strip("<>").rstrip(TRAILING_PUNCTUATION)
            verdict, right = self._check_address(given)
            if right == given and verdict is LinkVerdict.KEEP:
                return whole
            end = "" if whole.startswith("<") else whole[len(given) :]
            if verdict is LinkVerdict.KEEP:
                return f"{right}{end}"
            return f"`{given}`{end}" if verdict is LinkVerdict.SHOW else f"`{given}`{NOT_FOUND_MARK}{end}"

        return _ADDRESS.sub(rewrite_match, text)


def _find_opening_bracket(text: str, closing: int) -> int:
    """Return where the bracket begins that closes there, or -1."""
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
