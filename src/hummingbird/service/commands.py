"""What a person's note asks of us, word by word (R3, R6): a command, settings of their own, and the rest as message.

Knows how people write, not which workflows or models there are. What stands in code or in a quotation is not said to
us. Total: every text means something.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hummingbird.domain.limits import MESSAGE_CHARS
from hummingbird.domain.text import plain

CUT = "\n\n[The rest of this note was left out: it is too long.]"
_LINE_END = re.compile(r"\r\n|\r|\n")  # not what splitlines takes for one: Markdown does not
_OPENING = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*|(>{3,})\s*)")
_CHOICE = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`opens`: the first line is for us. `name` is the first word of a command, empty if there is none; None: no
    command. `choices`: key and value of every setting, as written. `message`: what is left."""

    opens: bool = False
    name: str | None = None
    choices: tuple[tuple[str, str], ...] = ()
    message: str = ""


def asked(text: str, prefix: str) -> Asked:
    """A command is on the first line that is not empty; settings stand behind its name, or on lines of their own."""
    lines = _LINE_END.split(plain(text))
    begin = next((at for at, line in enumerate(lines) if line.strip()), 0)
    first = _addressed(lines[begin], prefix) if _own_words(lines)[begin] else None
    if first is None or _CHOICE.match(first):
        choices, kept = _choices(lines, prefix)
        return Asked(opens=first is not None, choices=choices, message=_message(kept))
    name, rest = _word(first)
    behind, said = _peeled(rest)
    # What is behind the name is no line for us, whatever it looks like; the lines after it may be.
    more, kept = _choices(lines[begin + 1 :], prefix)
    return Asked(opens=True, name=name, choices=(*behind, *more), message=_message([said, *kept]))


def _choices(lines: Sequence[str], prefix: str) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """What the lines with settings say, and all lines without it."""
    found: list[tuple[str, str]] = []
    kept: list[str] = []
    for line, own in zip(lines, _own_words(lines), strict=True):
        rest = _addressed(line, prefix) if own else None
        if rest is None or not _CHOICE.match(rest):
            kept.append(line)
            continue
        choices, said = _peeled(rest)
        found += choices
        kept += [said] if said else []
    return tuple(found), kept


def _addressed(line: str, prefix: str) -> str | None:
    """What stands behind the prefix; four blanks before it would make it code."""
    found = re.match(rf" {{0,3}}{re.escape(prefix)}(?=\s|$)", line, re.IGNORECASE)
    return line[found.end() :] if found else None


def _word(text: str) -> tuple[str, str]:
    name, *rest = text.split(maxsplit=1) or [""]
    return name, rest[0] if rest else ""


def _peeled(text: str) -> tuple[list[tuple[str, str]], str]:
    """The settings that a text begins with, and the rest of it."""
    found, at = [], 0
    while choice := _CHOICE.match(text, at):
        found.append((choice[1], choice[2]))
        at = choice.end()
    return found, text[at:].strip()


def _own_words(lines: Sequence[str]) -> list[bool]:
    return list(_outside(lines))


def _outside(lines: Sequence[str]) -> Iterator[bool]:
    """Of each line whether it is neither in a fence nor between two `>>>`, which is how GitLab quotes several lines."""
    fence = ""
    for line in lines:
        if fence:
            yield False
            fence = "" if _closes(line, fence) else fence
        elif opening := _OPENING.fullmatch(line):
            yield False
            fence = opening[1] or opening[2] or opening[3]
        else:
            yield True


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0]) and not line.startswith(("    ", "\t"))


def _message(lines: Sequence[str]) -> str:
    """Bounded, since an order travels as one message of a queue."""
    text = "\n".join(lines).strip()
    return text if len(text) <= MESSAGE_CHARS else text[: MESSAGE_CHARS - len(CUT)] + CUT
