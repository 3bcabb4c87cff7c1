"""Outsiders' words made harmless for Markdown: in code spans, in fences, or not at all.

A job may be called anything. Knows Markdown, nothing of failures.
"""

import re
from collections.abc import Iterable

from hummingbird.adapters.models.digest.reading import UNKNOWN
from hummingbird.domain.text import plain, shortened
from hummingbird.evidence.regions import Line

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./~%:@&=+,;?#-]*)?", re.ASCII)
_RUN = re.compile("`+")
_NAME_CHARS = 120
_LINE_CHARS = 400


def code(text: str, chars: int = _NAME_CHARS) -> str:
    """A word or a sentence of somebody's in a code span: nothing in it is Markdown, a mention or a command."""
    inside = shortened(_HIDDEN.sub(" ", plain(text)).replace("`", "'"), chars)
    return f"`{inside}`" if inside else "`(no name)`"


def linked(text: str, address: str) -> str:
    """The word, with a link where the address is one that cannot be anything else."""
    usable = len(address) <= 1000 and _ADDRESS.fullmatch(address)
    return f"[{code(text)}]({address})" if usable else code(text)


def quoted(lines: Iterable[Line]) -> str:
    """Lines word for word, with their numbers, in a fence that none of them can close."""
    shown = [_line(line) for line in lines]
    width = max((len(run) for line in shown for run in _RUN.findall(line)), default=0)
    fence = "`" * max(3, width + 1)
    return "\n".join([f"{fence}text", *shown, fence])


def _line(line: Line) -> str:
    text = _HIDDEN.sub("", plain(line.text).replace("\n", " ").replace("\r", " ")).rstrip()
    text = text if len(text) <= _LINE_CHARS else f"{text[: _LINE_CHARS - 1]}…"
    return text if line.number == UNKNOWN else f"{line.number}: {text}"
