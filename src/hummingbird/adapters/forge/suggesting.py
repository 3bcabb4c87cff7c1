"""A suggestion on a line of the diff: a block that somebody applies with one click (W2, facts 2.4). Pure.

It is code that will be committed, so it is posted letter by letter or not at all: what would have to be changed to be
safe is shown as plain code, which nobody can apply. The text of a note has no such blocks; the firewall sees to that.
"""

import re

from hummingbird.adapters.forge.firewall import safe
from hummingbird.domain.secrets import Secrets

_TEXT = "text"


def suggested(lines: str, secrets: Secrets, marker_prefix: str, above: int = 0) -> str:
    """In place of the line that the note is on, and of as many above it; of none below it."""
    block = _fenced(lines, _TEXT)
    shown = safe(block, secrets, marker_prefix)
    return _fenced(lines, f"suggestion:-{above:d}+0") if shown == block else shown


def _fenced(lines: str, kind: str) -> str:
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", lines)), default=0) + 1)
    return f"{fence}{kind}\n{lines}\n{fence}" if lines else f"{fence}{kind}\n{fence}"
