"""What is wrong with a configuration: where it stands and what was expected instead.

Never repeats a value of the file: somebody may have put a secret where the name of a variable belongs.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hummingbird.domain.errors import ConfigurationBroken
from hummingbird.domain.limits import CONFIG_FAULTS
from hummingbird.domain.text import shortened

KeyPath = tuple[str | int, ...]
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Both count from 1; 0 and 0 is the file as a whole."""

    line: int
    column: int


WHOLE = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Fault:
    """`expected` begins in lower case and has no full stop."""

    path: KeyPath
    place: Place
    expected: str

    def __str__(self) -> str:
        where = f"line {self.place.line}, column {self.place.column}" if self.place != WHOLE else ""
        return f"{': '.join(filter(None, (where, written(self.path), self.expected)))}."


def written(path: KeyPath) -> str:
    """As people write it: workflows.review.projects["group/project"].tokens."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{shortened(step, 80)}" if text else shortened(step, 80)
        else:
            text += f"[{json.dumps(shortened(step, 80), ensure_ascii=not step.isprintable())}]"
    return text


def unknown(name: str, known: Iterable[str]) -> str:
    """What to say of a key that nobody knows."""
    names = sorted(known)
    alike = {one.replace("-", "_").casefold(): one for one in names}
    near = difflib.get_close_matches(name[:200].replace("-", "_").casefold(), alike, n=1, cutoff=0.6)
    if near:
        return f"there is no such key here; perhaps {alike[near[0]]!r} is meant"
    return f"there is no such key here; expected one of: {', '.join(names)}"


def broken(name: str, faults: Sequence[Fault]) -> ConfigurationBroken:
    """One error that says everything, in the order of the file."""
    ordered = sorted(faults, key=lambda fault: (fault.place, written(fault.path)))
    lines = tuple(str(fault) for fault in ordered)
    shown = [f"  {line}" for line in lines[:CONFIG_FAULTS]]
    if len(lines) > CONFIG_FAULTS:
        shown.append(f"  … and {len(lines) - CONFIG_FAULTS} more.")
    count = "one thing" if len(lines) == 1 else f"{len(lines)} things"
    return ConfigurationBroken("\n".join([f"Mend {count} in {name}:", *shown]), lines)
