"""What single characters may do in a note, and how each is made harmless (N5, facts 2.3).

GitLab looks for references in the rendered text, so an entity hides none; a backslash does: the character before which
it stands is put into a span of its own, and looks as before. Where Markdown is not read (HTML, code in doubt), an
invisible word joiner is put behind the sign instead. Knows neither blocks nor secrets.
"""

import html
import re
from html.entities import html5
from urllib.parse import unquote

JOINER = "\u2060"  # shows nothing, breaks no line; whatever the model wrote of these is gone before
SIGNS = frozenset("@#!%$~&")
SIGN = (
    r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9_.&\\\"*~<`-])|[#!](?=[0-9&\\*_])|%(?=[A-Za-z0-9_\"&\\])|\$|"
    r"(?<!~)~(?=[A-Za-z0-9_\"&])|&(?=[0-9])"
)
LEAD = r"[^\S\n>]*(?:>[^\S\n]*)*(?:(?:[-+*:~]|[0-9]{1,9}[.)])[^\S\n]+(?:>[^\S\n]*)*)*"
ENTITY = r"&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
WORDS = r"\[(?=[a-z_]{4,20}:)|\bGL-(?=[0-9&])|\*iteration(?=:)"

_LINES = re.compile(r"\r\n?")
_BREAKS = re.compile("[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
# Controls; soft hyphen, fillers, joiners, directions, variation selectors, tags; what is no character at all.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200c\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_LONE_JOINER = re.compile("(?<![\u00a9-\U0001ffff])\u200d|\u200d(?![\u00a9-\U0001ffff])")  # within emoji it has a use
_LEAD = re.compile(LEAD)
_LEAD_CHARS = 200
_PLACE_CHARS = 2_000  # of an address; longer ones lead nowhere
_LAYERS = 5  # of escapes in each other
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SCHEME = re.compile(r"[^/?#]*?:")
_REFERENCE = re.compile(
    r"(?:[\w./~^-]*[@#!%$&~](?:[0-9]+|\"[^\"]*\")?|[@%~].*|GL-[0-9]+|\[[a-z_]+:.*)\Z|.*/@|@", re.IGNORECASE
)
_ITEM = re.compile(
    r"/(?:issues|merge_requests|work_items|epics|milestones|snippets|designs|alerts|vulnerabilities|incident|iterations)/",
    re.IGNORECASE,
)
# Up to where the next one may begin, so that no text is looked at twice.
_NEARBY = re.compile(r"(?!GL-)[A-Za-z0-9_./-]*(?:[)\](]+[A-Za-z0-9_./-]*)*")
_PLACE = re.compile(
    r"\s{0,9}(<[^<>\n]{0,2000}>|(?:https?:/)?(?:[^\s<>\]:]|\](?![(:])|:(?!//))*(?:://)?)", re.IGNORECASE
)


def plain(text: str) -> str:
    """With `\\n` between lines and without characters that nobody can see."""
    return _LONE_JOINER.sub("", _UNSEEN.sub("", _BREAKS.sub(" ", _LINES.sub("\n", text))))


def unseen(text: str) -> bool:
    """Whether `plain` would take any of it away, or move it to another line."""
    return bool(_UNSEEN.search(text) or _BREAKS.search(text) or "\n" in text or "\r" in text or "\u200d" in text)


def decoded(entity: str) -> str | None:
    """What an entity stands for; None if for nothing."""
    if not entity.startswith("&#") and entity[1:] not in html5:
        return None
    return html.unescape(entity)


def spelt(sign: str) -> bool:
    """Whether an entity for it is of no use but to hide an address or a number."""
    return sign.isascii() and (sign.isalnum() or sign in (":", "/"))


def first(text: str, at: int) -> bool:
    """Whether nothing but the marks of lists and quotes stands before it in its line."""
    before = text[max(0, at - _LEAD_CHARS) : at].rpartition("\n")[2]
    return len(before) < _LEAD_CHARS and _LEAD.fullmatch(before) is not None


def destination(text: str, at: int) -> str:
    """Of a link, as it is written from there on."""
    found = _PLACE.match(text, at)
    return found[1] if found else ""


def allowed(written: str) -> bool:
    """Whether a link may lead there: to the web, to a mailbox, or to somewhere near; and not to another item, for that
    leaves a trace on it."""
    place = written.strip("<>")
    if _NEARBY.fullmatch(place):
        return not _ITEM.search(place)
    if len(place) > _PLACE_CHARS:
        return False
    for _ in range(_LAYERS):
        read = unquote(html.unescape(_ESCAPED.sub(r"\1", place)))
        if read == place:
            break
        place = read
    else:
        return False
    place = re.sub(r"[\s\x00-\x20]|" + _UNSEEN.pattern, "", place)
    scheme = _SCHEME.match(place)
    if scheme and scheme[0].lower() not in ("http:", "https:", "mailto:"):
        return False
    ends = {place, place.rstrip(").,;:!?'\""), place.split(")")[0]}
    return not _ITEM.search(place) and not any(end and _REFERENCE.match(end) for end in ends)
