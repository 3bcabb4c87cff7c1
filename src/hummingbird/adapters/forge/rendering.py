"""A draft as the Markdown that is posted: marker, our words, the safe text, what folds out, the footer (N5, N7). Pure,
and slow for long texts.

    <!-- marker -->  above  text  more  <details>…</details>  suggestion  ---  below

`text` and `more` are made safe apart: what the one leaves open does not swallow the other. What is too long is cut
from the folds first and then from the text, never from our own words.
"""

import html
import re

from hummingbird.adapters.forge.firewall import safe
from hummingbird.adapters.forge.firewall_signs import plain
from hummingbird.adapters.forge.markers import Markers
from hummingbird.adapters.forge.suggesting import suggested
from hummingbird.domain.limits import FORGE_FOLD_CHARS_LEAST, FORGE_TITLE_CHARS, NOTE_CHARS
from hummingbird.domain.notes import Draft, Fold
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.text import shortened

_GAP = "\n\n"
LEFT_OUT = "*What folds out here was too long for a note. It is in the session.*"


def rendered(draft: Draft, markers: Markers, secrets: Secrets, most: int = NOTE_CHARS) -> str:
    """At most `most` characters."""
    above, below = (secrets.mask(part.strip()) for part in (draft.above, draft.below))  # they quote errors of others
    head = [part for part in (markers.written(draft), above) if part]
    foot = [f"---\n{below}"] if below else []
    if draft.suggestion is not None:
        foot = [suggested(draft.suggestion, secrets, markers.prefix, draft.suggested_above), *foot]
    room = most - sum(len(part) + len(_GAP) for part in (*head, *foot))
    more = [safe(draft.more.lstrip(), secrets, markers.prefix, room // 2)] if draft.more.strip() else []
    room -= sum(len(part) + len(_GAP) for part in more)
    # behind a list, what is indented would no longer be the code that it was taken for
    text = safe(draft.text.lstrip() if draft.above else draft.text, secrets, markers.prefix, room)
    folds = _folds(draft.folds, markers.prefix, secrets, room - len(text) - len(_GAP))
    return _GAP.join(part for part in (*head, text, *more, *folds, *foot) if part)


def _folds(folds: tuple[Fold, ...], prefix: str, secrets: Secrets, room: int) -> list[str]:
    """As many as there is room for, the last of them cut."""
    shown: list[str] = []
    for fold in folds:
        free = room - len(LEFT_OUT) - len(_GAP)
        if free < FORGE_FOLD_CHARS_LEAST:
            return [*shown, LEFT_OUT] if free >= 0 else shown
        shown.append(_fold(fold, prefix, secrets, free))
        room -= len(shown[-1]) + len(_GAP)
    return shown


def _fold(fold: Fold, prefix: str, secrets: Secrets, room: int) -> str:
    title = html.escape(shortened(plain(fold.title), FORGE_TITLE_CHARS))
    opening, closing = f"<details><summary>{title}</summary>", "</details>"
    inside = safe(_fenced(fold.text), secrets, prefix, room - len(opening) - len(closing) - 2 * len(_GAP))
    return _GAP.join((opening, inside, closing))


def _fenced(text: str) -> str:
    """First without what nobody sees: two runs of back-ticks may be one then."""
    shown = plain(text).strip("\n")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"
