"""The order in which a second run writes what runs side by side: other streams come first, each keeps its own order."""

import random
import re
from collections.abc import Iterator
from itertools import groupby

# `#6 ` of BuildKit, `web_1  | ` of Compose, `[gw3] ` of pytest-xdist: who wrote the line stands first.
_STREAM = re.compile(r"(?:\S+Z )?(?:#(\d+) |([A-Za-z][\w.-]*[_-]\d+)\s+\| |\[(gw\d+)\] )")
# What conda prints of a set: its order is another one each time.
_MEMBER = re.compile(r"\s+- \S+=\S+\s*$")


def reordered(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    return "\n".join(line for kind, group in groupby(lines, _kind) for line in _mixed(kind, list(group), dice))


def _kind(line: str) -> str:
    return "stream" if _STREAM.match(line) else "member" if _MEMBER.match(line) else "fixed"


def _mixed(kind: str, lines: list[str], dice: random.Random) -> Iterator[str]:
    if kind == "member":
        dice.shuffle(lines)
    if kind != "stream":
        yield from lines
        return
    streams: dict[str, list[str]] = {}
    for line in lines:
        streams.setdefault(_writer(line), []).append(line)
    turns = [writer for writer, said in streams.items() for _ in said]
    dice.shuffle(turns)
    for writer in turns:
        yield streams[writer].pop(0)


def _writer(line: str) -> str:
    match = _STREAM.match(line)
    assert match is not None
    return next(name for name in match.groups() if name)
