"""Makes the text inside a block harmless, from left to right (N5).

It does not have to read hostile text as GitLab does: what it does not understand it turns into plain characters, so
that what comes out can be read in one way only. Knows nothing of blocks: who calls says what kind of text it is.
"""

import re
from bisect import bisect_right

from hummingbird.adapters.forge.firewall_signs import (
    ENTITY,
    JOINER,
    LEAD,
    SIGN,
    SIGNS,
    WORDS,
    allowed,
    decoded,
    destination,
    first,
    spelt,
    unseen,
)
from hummingbird.adapters.forge.firewall_tags import TAG, Tags

_TOKEN = re.compile(
    rf"^(?P<lead>{LEAD})/|(?P<pair>\\[!-/:-@\[-`{{-~])|(?P<code>`+)|(?P<angle><)|(?P<entity>{ENTITY})|"
    rf"(?P<image>!+(?=\[))|(?P<link>\](?:\(|:))|(?P<url>https?://(?:[^\s<>`:]|:(?!//))*)|"
    rf"(?P<other>\[\[|\^\[|www\.)|(?P<words>{WORDS})|"
    rf"(?P<sign>{SIGN})",
    re.MULTILINE | re.IGNORECASE,
)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>`]*|[A-Za-z0-9_.+-]+@[A-Za-z0-9.-]+)>", re.IGNORECASE)
_ADDRESS = re.compile(
    r"https?://(?:[A-Za-z0-9]"
    r"(?:[^\s<>`()\[\]|\"'\\*&@$!]|!(?!\[)|&(?=[A-Za-z_]+=)|@(?![A-Za-z0-9_.-])|@(?=[\w.-]*[:/]))*)?",
    re.IGNORECASE,
)
_PICTURE = re.compile(r"\[[^\]\n`]{0,300}\][(\[]")
_SLASHES = re.compile(rf"\n{LEAD}/")
_SIGN = re.compile(SIGN)
# GitLab may take this for a table, and then finds code in other places.
_TABLE = re.compile(r"^(?=.*[|:])[\s>|:-]*-[\s>|:-]*$", re.MULTILINE)


class Inline:
    """`text`: of one block, with the marks of what it stands in."""

    def __init__(self, text: str, tags: Tags, *, contested: bool = False, code: bool = True) -> None:
        self._text = text
        self._tags = tags
        self._ticks = _Ticks(text if code else "")
        self._contested = contested or ("`" in text and _TABLE.search(text) is not None)

    def safe(self) -> str:
        parts: list[str] = []
        at = 0
        while (token := _TOKEN.search(self._text, at)) is not None:
            parts.append(self._text[at : token.start()])
            kind = token.lastgroup
            assert kind is not None
            part, at = getattr(self, f"_{kind}")(token)
            parts.append(part)
        parts.append(self._text[at:])
        return "".join(parts)

    def _lead(self, token: re.Match[str]) -> tuple[str, int]:
        return token["lead"] + "&#47;", token.end()

    def _pair(self, token: re.Match[str]) -> tuple[str, int]:
        return token[0], token.end()

    def _code(self, token: re.Match[str]) -> tuple[str, int]:
        end = self._ticks.closing(token.start(), len(token[0]))
        if end is None:
            return token[0], token.end()
        inside = _SLASHES.sub(" /", self._text[token.end() : end - len(token[0])])
        return token[0] + (strict(inside) if self._contested else inside) + token[0], end

    def _angle(self, token: re.Match[str]) -> tuple[str, int]:
        at = token.start()
        if self._text.startswith("<!--", at):
            end = self._text.find("-->", at + 4)
            return ("&lt;", at + 1) if end < 0 else ("", end + 3)
        if (link := _AUTOLINK.match(self._text, at)) is not None:
            return (link[0] if allowed(link[1]) else f"`{link[1]}`"), link.end()
        tag = TAG.match(self._text, at)
        kept = self._tags.kept(tag) if tag else None
        if tag is not None and kept is not None:
            return kept, tag.end()
        return ("&lt;" if re.match(r"[A-Za-z/!?]", self._text[at + 1 : at + 2]) else "<"), at + 1

    def _entity(self, token: re.Match[str]) -> tuple[str, int]:
        sign = decoded(token[0])
        if sign is None:
            return token[0], token.end()
        if sign in SIGNS and (sign != "&" or self._text[token.end() : token.end() + 1] in set("0123456789&#")):
            return "\\" + sign, token.end()
        if spelt(sign) and not (sign == "/" and first(self._text, token.start())):
            return sign, token.end()
        return ("" if unseen(sign) else token[0]), token.end()

    def _image(self, token: re.Match[str]) -> tuple[str, int]:
        """A picture becomes a link to it."""
        if len(token[0]) > 1 or not _PICTURE.match(self._text, token.end()):
            return "\\!" * len(token[0]), token.end()
        return ("[image", token.end() + 1) if self._text[token.end() + 1] == "]" else ("", token.end())

    def _link(self, token: re.Match[str]) -> tuple[str, int]:
        place = destination(self._text, token.end())
        if "`" in place or not allowed(place):
            return "]\\" + token[0][1], token.end()
        if not place.startswith("<"):
            return token[0], token.end()
        start = self._text.index("<", token.end())
        return token[0] + self._text[token.end() : start] + _SIGN.sub(r"\\\g<0>", place), start + len(place)

    def _url(self, token: re.Match[str]) -> tuple[str, int]:
        address = _ADDRESS.match(self._text, token.start())
        assert address is not None
        whole = max(token[0], address[0], key=len)  # which may hold another one
        if not allowed(whole):
            bare = whole.rstrip(").,;:!?*_]|'\"\\")
            return f"`{bare}`", token.start() + len(bare)
        self._contested |= self._text.startswith("`", token.end())
        return address[0], address.end()

    def _other(self, token: re.Match[str]) -> tuple[str, int]:
        """What GitLab knows and CommonMark does not; it may hold a backtick, so that the next ones pair differently."""
        self._contested = True
        return token[0][:1], token.start() + 1

    def _words(self, token: re.Match[str]) -> tuple[str, int]:
        return token[0] + JOINER, token.end()

    def _sign(self, token: re.Match[str]) -> tuple[str, int]:
        return "\\" + token[0], token.end()


class _Ticks:
    """Where code between backticks ends."""

    def __init__(self, text: str) -> None:
        self._starts: dict[int, list[int]] = {}
        for run in re.finditer("`+", text):
            self._starts.setdefault(len(run[0]), []).append(run.start())

    def closing(self, start: int, length: int) -> int | None:
        places = self._starts.get(length, [])
        at = bisect_right(places, start)
        return places[at] + length if at < len(places) else None


_STRICT = re.compile(
    rf"^(?P<lead>{LEAD})/|(?P<angle><)(?=[A-Za-z/!?])|(?P<entity>{ENTITY})|(?P<image>!+(?=\[))|(?P<link>\](?:\(|:))|"
    rf"(?P<url>https?://(?!{JOINER}))|(?P<words>{WORDS})|(?P<many>\$+)|(?P<sign>{SIGN})",
    re.MULTILINE | re.IGNORECASE,
)


def strict(text: str) -> str:
    """Harmless wherever it stands, code or not, and looking as before: by word joiners alone."""

    def joined(token: re.Match[str]) -> str:
        kind = token.lastgroup
        if kind == "lead":
            return token["lead"] + JOINER + "/"
        if kind == "entity":
            sign = decoded(token[0])
            bad = sign is not None and (sign in SIGNS or unseen(sign) or spelt(sign))
            bad = bad and not (sign == "/" and first(text, token.start()))
            return "&" + JOINER + token[0][1:].replace("#", "#" + JOINER) if bad else token[0]
        if kind == "link":
            place = destination(text, token.end())
            return token[0] if allowed(place) else "]" + JOINER + token[0][1]
        if kind == "url":
            return token[0] if allowed(destination(text, token.start())) else token[0] + JOINER
        return JOINER.join(token[0]) + JOINER

    return _STRICT.sub(joined, text)


_HTML = re.compile(
    rf"^(?P<lead>{LEAD})/|(?P<angle><)|(?P<entity>{ENTITY})|(?P<and>&)|"
    rf"(?P<url>https?://(?!{JOINER}))|(?P<words>{WORDS})|(?P<sign>{SIGN})",
    re.MULTILINE | re.IGNORECASE,
)


_RUN = re.compile(r"[^\s<>]{0,2001}")  # one more than an address may have


def in_html(text: str, tags: Tags) -> str:
    """The same for text in which Markdown is not read."""
    parts: list[str] = []
    at = 0
    while (token := _HTML.search(text, at)) is not None:
        parts.append(text[at : token.start()])
        part, at = _html_part(token, text, tags)
        parts.append(part)
    parts.append(text[at:])
    return "".join(parts)


def _html_part(token: re.Match[str], text: str, tags: Tags) -> tuple[str, int]:
    kind, end = token.lastgroup, token.end()
    if kind == "lead":
        return token["lead"] + "&#47;", end
    if kind == "angle":
        return _html_angle(text, token.start(), tags)
    if kind == "entity":
        sign = decoded(token[0])
        if sign is None:
            return "&amp;" + token[0][1:], end
        if sign in SIGNS - {"&"}:
            return sign + JOINER, end
        if spelt(sign) and not (sign == "/" and first(text, token.start())):
            return sign, end
        return (
            "" if unseen(sign) else token[0] + JOINER if sign == "&" and text[end : end + 1].isdigit() else token[0]
        ), end
    if kind == "and":
        return "&amp;" + (JOINER if text[end : end + 1].isdigit() else ""), end
    if kind == "url" and (run := _RUN.match(text, token.start())) and allowed(run[0]):
        return token[0], end
    return token[0] + JOINER, end


def _html_angle(text: str, at: int, tags: Tags) -> tuple[str, int]:
    if text.startswith("<!--", at):
        end = text.find("-->", at + 4)
        return ("&lt;", at + 1) if end < 0 else ("", end + 3)
    tag = TAG.match(text, at)
    kept = tags.kept(tag) if tag else None
    return (kept, tag.end()) if tag is not None and kept is not None else ("&lt;", at + 1)
