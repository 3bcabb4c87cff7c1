"""Render a draft as the Markdown that is posted, in this order:

    <!-- marker -->  above  text  more  <details>…</details>  suggestion  ---  below

`text`, `more`, the folds and the suggestion are sanitized one by one. A note that is too long loses its folds first,
then part of its text, but never our own words. A last check makes sure that no part affects how another is read.
"""

import html
import logging
import re
from collections.abc import Callable
from typing import NamedTuple

from hummingbird.core.limits import FORGE_FOLD_CHARS_LEAST, FORGE_TITLE_CHARS, NOTE_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.write.markdown_text import JOINER, strip_invisible
from hummingbird.gitlab.write.note_markers import NoteMarkers
from hummingbird.gitlab.write.note_sanitizer import sanitize_code, sanitize_markdown, write_suggestion
from hummingbird.gitlab.write.note_worker import parts_keep_apart
from hummingbird.gitlab.write.protocol import CollapsedSection, NoteDraft

_GAP = "\n\n"
_MONEY = re.compile(r"\$(?=[0-9])")
_log = logging.getLogger(__name__)
LEFT_OUT = "*This section was too long for a note. The full text is in the session.*"
_Sanitize = Callable[[str, Secrets, str, int], str]


class _NoteRenderer(NamedTuple):
    draft: NoteDraft
    markers: NoteMarkers
    secrets: Secrets
    max_chars: int

    def render_parts(self, sanitize: _Sanitize) -> list[str]:
        """Return the parts of the note; `sanitize` writes the model's text."""
        draft, prefix, secrets = self.draft, self.markers.prefix, self.secrets
        above, below = (self._write_own_words(part) for part in (draft.above, draft.below))
        head = [part for part in (self.markers.format_marker(draft), above) if part]
        foot = [f"---\n{below}"] if below else []
        if draft.suggestion is not None:
            foot = [write_suggestion(draft.suggestion, secrets, prefix, draft.suggested_above), *foot]
        room = self.max_chars - sum(len(part) + len(_GAP) for part in (*head, *foot))
        more = [sanitize(draft.more, secrets, prefix, room // 2)] if draft.more.strip() else []
        room -= sum(len(part) + len(_GAP) for part in more)
        text = sanitize(draft.text, secrets, prefix, room) if draft.text.strip() else ""
        folds = self._render_folds(room - len(text) - len(_GAP), sanitize)
        return [part for part in (*head, text, *more, *folds, *foot) if part]

    def _write_own_words(self, words: str) -> str:
        """Mask our own words too, because they quote foreign errors; keep `$1.20` from linking to snippet 1."""
        return _MONEY.sub(f"${JOINER}", self.secrets.mask(words.strip()))

    def _render_folds(self, room: int, sanitize: _Sanitize) -> list[str]:
        """Return as many folds as fit; the last one is cut."""
        shown: list[str] = []
        for fold in self.draft.folds:
            free = room - len(LEFT_OUT) - len(_GAP)
            if free < FORGE_FOLD_CHARS_LEAST:
                return [*shown, LEFT_OUT] if free >= 0 else shown
            shown.append(self._render_fold(fold, free, sanitize))
            room -= len(shown[-1]) + len(_GAP)
        return shown

    def _render_fold(self, fold: CollapsedSection, room: int, sanitize: _Sanitize) -> str:
        title = html.escape(shorten_line(strip_invisible(fold.title), FORGE_TITLE_CHARS))
        opening, closing = f"<details><summary>{title}</summary>", "</details>"
        inside_room = room - len(opening) - len(closing) - 2 * len(_GAP)
        write = sanitize if fold.markdown else sanitize_code
        inside = write(fold.text.strip("\r\n"), self.secrets, self.markers.prefix, inside_room)
        return _GAP.join((opening, inside, closing))


def render_note(draft: NoteDraft, markers: NoteMarkers, secrets: Secrets, max_chars: int = NOTE_CHARS) -> str:
    """Return the body of a note, of at most `max_chars` characters."""
    renderer = _NoteRenderer(draft, markers, secrets, max_chars)
    parts = renderer.render_parts(sanitize_markdown)
    body = _GAP.join(parts)
    if parts_keep_apart(parts, body):
        return body
    _log.warning("Posting the text of a note as a block of code: its parts would affect each other in GitLab.")
    return _GAP.join(renderer.render_parts(sanitize_code))
