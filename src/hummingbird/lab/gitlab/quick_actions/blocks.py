"""Which lines of a note stand in a paragraph of its own, and so may hold a quick action.

The block half of CommonMark, written for one question and without building a tree: GitLab looks for commands only in
paragraphs at the top level, never in fenced code, block quotes (`>` and `>>>`), list items or HTML blocks (facts 2.3).
Where renderers differ, a line is rather taken for a paragraph. Knows no command and nothing of what is inside a line.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FENCE = re.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
HEADING = re.compile(r"#{1,6}(?: |$)")
UNDERLINE = re.compile(r"(?:=+|-+) *$")
RULE = re.compile(r"(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$")
BULLET = re.compile(r"([-+*])(?= |$)|([0-9]{1,9})[.)](?= |$)")
DETAILS = re.compile(r"([:~])(?= )()")
QUOTE_FENCE = re.compile(r"(>{3,}) *$")
ALERT_FENCE = re.compile(r"(>{3,}) *\[![A-Za-z]+\].*$")
TABLE_RULE = re.compile(r"[ |:]*-[ |:-]*$")
REFERENCE = re.compile(r" {0,3}\[[^\]]+\]:")
CUTS, CUT_LINES = 100, 100_000
DEPTH = 100  # what is nested more deeply is taken for text, so that no line costs more than this
FRONT_MATTER = re.compile(  # the first line may name an encoding
    r"(?:[^\n]*coding:[^\n]*\n)?\s*(---|\+\+\+|;;;)[^\n]*\n(?:.*?\n)??(?:\1|\.{3})[^\S\n]*(?:\n|\Z)", re.DOTALL
)

# What opens an HTML block, and what ends it; without an end, a blank line does. The last kind starts no block in the
# middle of a paragraph.
TAG_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "track|ul"
)
ATTRIBUTE = r"""[a-zA-Z_:][\w:.-]*(?:S*=S*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?"""
RAW = "script|pre|style|textarea"
HTML_KINDS = (
    (rf"<(?:{RAW})(?:S|>|$)", rf"</(?:{RAW})>"),
    (r"<!--", r"-->"),
    (r"<\?", r"\?>"),
    (r"<![A-Za-z]", r">"),
    (r"<!\[CDATA\[", r"\]\]>"),
    (rf"</?(?:{TAG_NAMES})(?:S|/?>|$)", None),
    (rf"(?:<[A-Za-z][A-Za-z0-9-]*(?:S+{ATTRIBUTE})*S*/?>|</[A-Za-z][A-Za-z0-9-]*S*>)S*$", None),
)


def html_kinds(space: str) -> tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...]:
    """With S standing for `space`."""
    return tuple(
        (re.compile(start.replace("S", space), re.IGNORECASE), re.compile(end, re.IGNORECASE) if end else None)
        for start, end in HTML_KINDS
    )


NARROW_HTML, WIDE_HTML = html_kinds(" "), html_kinds(r"\s")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where versions of GitLab and of its parser differ. `details`: description lists are known. `alerts`: so are
    `>>> [!note]` blocks. `wide`: any white space is a blank, not only space and tab."""

    details: bool = False
    alerts: bool = False
    wide: bool = False

    def blank(self, text: str) -> bool:
        return not (text.strip() if self.wide else text.strip(" "))


@dataclass(slots=True)
class _Quote:
    """`length` of its fence if it is one of GitLab's `>>>` blocks."""

    length: int = 0


@dataclass(slots=True)
class _Item:
    width: int
    empty: bool


@dataclass(slots=True)
class _Fence:
    mark: str


@dataclass(slots=True)
class _Html:
    end: re.Pattern[str] | None


@dataclass(slots=True)
class _Paragraph:
    top: bool


@dataclass(slots=True)
class _Scan:
    lines: list[str]
    dialect: Dialect
    containers: list[_Quote | _Item] = field(default_factory=list)
    leaf: _Fence | _Html | _Paragraph | None = None
    found: list[list[int]] = field(default_factory=list)
    _longest: list[int] = field(default_factory=list)

    def run(self) -> list[list[int]]:
        for number, line in enumerate(self.lines):
            self._line(number, line.expandtabs(4))
        return self.found

    def _line(self, number: int, line: str) -> None:
        rest, matched = self._continued(line)
        if rest is None:
            return
        whole = matched == len(self.containers)
        if whole and self._inside_leaf(rest):
            return
        opened, rest = self._started(number, rest, matched)
        if rest is None:
            return
        lazy = not whole and not opened and isinstance(self.leaf, _Paragraph) and not self.dialect.blank(rest)
        if lazy:
            self._lazily(number)
        elif self.dialect.blank(rest):
            self._cut(matched, opened)
            self.leaf = None
        else:
            self._text(number, rest, matched, opened)

    def _continued(self, line: str) -> tuple[str | None, int]:
        """What is left of the line inside the containers it goes on with, and how many these are."""
        rest = line
        for at, container in enumerate(self.containers):
            inside = self._inside(container, rest, at)
            if inside is None:
                return rest, at
            if isinstance(container, _Quote) and container.length and inside == "":
                closing = QUOTE_FENCE.match(rest.lstrip(" "))
                if closing and len(closing[1]) >= container.length:
                    del self.containers[at:]
                    self.leaf = None
                    return None, at
                inside = rest
            rest = inside
        return rest, len(self.containers)

    def _inside(self, container: _Quote | _Item, rest: str, at: int) -> str | None:
        spaces = indent(rest)
        if isinstance(container, _Quote):
            if container.length:
                return "" if spaces < 4 and QUOTE_FENCE.match(rest.lstrip(" ")) else rest
            return after_quote(rest) if spaces < 4 and rest.lstrip(" ").startswith(">") else None
        if self.dialect.blank(rest):
            return None if container.empty and self.leaf is None and at == len(self.containers) - 1 else rest
        if spaces < container.width:
            return None
        container.empty = False
        return rest[container.width :]

    def _inside_leaf(self, rest: str) -> bool:
        """Whether the line belongs to the fence or the HTML that is open."""
        if isinstance(self.leaf, _Fence):
            text = rest.strip(" ")
            mark = self.leaf.mark
            if indent(rest) < 4 and len(text) >= len(mark) and set(text) == {mark[0]}:
                self.leaf = None
            return True
        if isinstance(self.leaf, _Html):
            if self.leaf.end is None and self.dialect.blank(rest):
                self.leaf = None
                return False
            if self.leaf.end is not None and self.leaf.end.search(rest):
                self.leaf = None
            return True
        return False

    def _started(self, number: int, rest: str, matched: int) -> tuple[bool, str | None]:
        """Open what the line opens. Without a rest, the line was used up."""
        opened = False
        while True:
            paragraph = isinstance(self.leaf, _Paragraph)
            whole = opened or matched == len(self.containers)
            text = rest.lstrip(" ")
            if indent(rest) >= 4 or self.dialect.blank(text) or len(self.containers) >= DEPTH:
                return opened, rest
            if text.startswith(">"):
                self._cut(matched, opened)
                opened, self.leaf = True, None
                if self._quote_fence(number, text):
                    return opened, None
                self.containers.append(_Quote())
                rest = after_quote(rest)
            elif self._one_line(text, paragraph and whole) or self._block(text, paragraph):
                # the leaf was set; what it stands in is what the line goes on with
                leaf = self.leaf
                self._cut(matched, opened)
                self.leaf = leaf
                return True, None
            elif (item := self._item(rest, paragraph and whole)) is not None:
                self._cut(matched, opened)
                opened, self.leaf = True, None
                self.containers.append(item)
                rest = rest[item.width :]
            else:
                return opened, rest

    def _quote_fence(self, number: int, text: str) -> bool:
        # A `>>>` that nothing closes is, in older GitLabs, no block at all: what follows is rather taken for text.
        fence = QUOTE_FENCE.match(text) or (ALERT_FENCE.match(text) if self.dialect.alerts else None)
        if fence is None:
            return False
        if self._longest_after(number) < len(fence[1]):
            return False
        self.containers.append(_Quote(len(fence[1])))
        return True

    def _longest_after(self, number: int) -> int:
        """How long a `>>>` there is that may close what is opened on this line."""
        if not self._longest:
            marks = [QUOTE_FENCE.match(line.expandtabs(4).lstrip(" ")) for line in self.lines]
            lengths = [len(mark[1]) if mark else 0 for mark in reversed(marks)]
            self._longest = [*reversed(list(itertools.accumulate(lengths, max))), 0]
        return self._longest[number + 1]

    def _one_line(self, text: str, paragraph: bool) -> bool:
        if HEADING.match(text) or (paragraph and UNDERLINE.match(text)) or RULE.match(text):
            self.leaf = None
            return True
        return False

    def _block(self, text: str, paragraph: bool) -> bool:
        if fence := FENCE.match(text):
            self.leaf = _Fence(fence[1] or fence[3])
            return True
        for kind, (start, end) in enumerate(WIDE_HTML if self.dialect.wide else NARROW_HTML):
            if start.match(text) and not (kind == 6 and paragraph):
                self.leaf = None if end is not None and end.search(text) else _Html(end)
                return True
        return False

    def _item(self, rest: str, paragraph: bool) -> _Item | None:
        before = indent(rest)
        text = rest.lstrip(" ")
        found = BULLET.match(text) or (DETAILS.match(text) if self.dialect.details else None)
        if found is None:
            return None
        after = rest[before + found.end() :]
        empty = self.dialect.blank(after)
        if paragraph and (empty or (found[2] and int(found[2]) != 1)):
            return None
        gap = indent(after)
        wide = 1 if empty or gap > 4 else gap
        return _Item(before + found.end() + wide, empty=empty)

    def _lazily(self, number: int) -> None:
        # Part of the quote or the list item before it; taken for text of its own all the same.
        if self.found and self.found[-1] and self.found[-1][-1] == number - 1:
            self.found[-1].append(number)
        else:
            self.found.append([number])

    def _text(self, number: int, rest: str, matched: int, opened: bool) -> None:
        going_on = isinstance(self.leaf, _Paragraph) and matched == len(self.containers) and not opened
        if not going_on:
            self._cut(matched, opened)
            self.leaf = None if indent(rest) >= 4 else _Paragraph(not self.containers)
            if isinstance(self.leaf, _Paragraph) and self.leaf.top:
                self.found.append([])
        if isinstance(self.leaf, _Paragraph) and self.leaf.top:
            self.found[-1].append(number)

    def _cut(self, matched: int, opened: bool) -> None:
        if not opened and matched < len(self.containers):
            del self.containers[matched:]
            self.leaf = None


def paragraphs(text: str) -> Iterator[list[int]]:
    """The numbers of the lines of each paragraph, in every way they may be told apart; none twice."""
    given: set[tuple[int, ...]] = set()
    for lines in sources(text):
        for dialect in dialects(text):
            for found in _Scan(lines, dialect).run():
                for piece in (found, *parts(lines, found)):
                    if piece and tuple(piece) not in given:
                        given.add(tuple(piece))
                        yield piece


def sources(text: str) -> Iterator[list[str]]:
    """The lines, and besides them what is left without front matter."""
    lines = text.split("\n")
    yield lines
    matter = FRONT_MATTER.match(text)
    if matter is not None:
        hidden = matter[0].count("\n")
        yield [""] * hidden + lines[hidden:]


def dialects(text: str) -> Iterator[Dialect]:
    """Those that may read this text differently."""
    wide = (False, True) if any(each.isspace() and each not in " \n\t" for each in text) else (False,)
    alerts = (False, True) if ">>>" in text and "[!" in text else (False,)
    details = (False, True) if re.search(r"(?m)^ {0,3}[:~][ \t]", text) else (False,)
    return (Dialect(*each) for each in itertools.product(details, alerts, wide))


def parts(lines: list[str], found: list[int]) -> Iterator[list[int]]:
    """A paragraph cut where a table or the end of link definitions may divide it; with very many such places, anywhere.

    It matters only for what may be taken for code or markup."""
    if not any("`" in lines[number] or "<" in lines[number] for number in found):
        return
    cuts = [at for at, number in enumerate(found) if divides(lines[number], at)]
    if len(cuts) > CUTS or len(cuts) * len(found) > CUT_LINES:
        yield from ([number] for number in found)
        return
    for at in cuts:
        yield from (piece for piece in (found[: max(at - 1, 0)], found[max(at - 1, 0) : at], found[at + 1 :]) if piece)


def divides(line: str, at: int) -> bool:
    return REFERENCE.match(line) is not None or (at > 0 and TABLE_RULE.match(line.expandtabs(4)) is not None)


def indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def after_quote(line: str) -> str:
    return line.lstrip(" ")[1:].removeprefix(" ")
