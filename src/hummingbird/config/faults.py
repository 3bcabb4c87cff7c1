"""Describe faults in a configuration: where each one is and what was expected there.

Messages never repeat a value of the file, because someone may have written a secret where a variable's name belongs.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hummingbird.core.errors import ConfigurationError
from hummingbird.core.limits import CONFIG_FAULTS
from hummingbird.core.text import shorten_line

KeyPath = tuple[str | int, ...]
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, order=True)
class FilePosition:
    """A position in the file. Both numbers start at 1; (0, 0) stands for the whole file."""

    line: int
    column: int


WHOLE_FILE = FilePosition(0, 0)


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One fault. `expected` starts in lower case and has no full stop."""

    path: KeyPath
    position: FilePosition
    expected: str

    def __str__(self) -> str:
        where = f"line {self.position.line}, column {self.position.column}" if self.position != WHOLE_FILE else ""
        return f"{': '.join(filter(None, (where, format_key_path(self.path), self.expected)))}."


def format_key_path(path: KeyPath) -> str:
    """Format a path as people write it: workflows.review.projects["group/project"].tokens."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{shorten_line(step, 80)}" if text else shorten_line(step, 80)
        else:
            text += f"[{json.dumps(shorten_line(step, 80), ensure_ascii=not step.isprintable())}]"
    return text


def unknown_key_message(name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown key, with the most similar known key or a list of all."""
    names = sorted(known)
    alike = {one.replace("-", "_").casefold(): one for one in names}
    near = difflib.get_close_matches(name[:200].replace("-", "_").casefold(), alike, n=1, cutoff=0.6)
    if near:
        return f"there is no such key here; perhaps {alike[near[0]]!r} is meant"
    return f"there is no such key here; expected one of: {', '.join(names)}"


def faults_error(name: str, faults: Sequence[ConfigFault]) -> ConfigurationError:
    """Combine all faults into one error, in the order of the file."""
    ordered = sorted(faults, key=lambda fault: (fault.position, format_key_path(fault.path)))
    lines = tuple(str(fault) for fault in ordered)
    shown = [f"  {line}" for line in lines[:CONFIG_FAULTS]]
    if len(lines) > CONFIG_FAULTS:
        shown.append(f"  … and {len(lines) - CONFIG_FAULTS} more.")
    count = "one thing" if len(lines) == 1 else f"{len(lines)} things"
    return ConfigurationError("\n".join([f"Fix {count} in {name}:", *shown]), lines)
