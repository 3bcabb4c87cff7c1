"""Sanitize untrusted text and render the note that is posted, so that it has no effect in GitLab.

Three steps: parse the text with GitLab's own parser, rebuild it from a short list of safe constructs, and check the
result as GitLab will render it. A text that fails the check, or takes too long, is posted as one block of code.

A note has this order, of which `text`, `more`, the folds and the suggestion are sanitized one by one:

    <!-- marker -->  above  text  more  <details>…</details>  suggestion  ---  below

A note that is too long loses its folds first, then part of its text, but never our own words. A last check makes sure
that no part affects how another is read.
"""

import html
import logging
import re
from collections.abc import Callable
from typing import NamedTuple

from hummingbird.core.limits import FORGE_FOLD_CHARS_LEAST, FORGE_TITLE_CHARS, NOTE_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.write.markdown_rebuild import CUT_NOTICE, fit_code
from hummingbird.gitlab.write.markdown_text import JOINER, code_block, decode_entities, fence_for, strip_invisible
from hummingbird.gitlab.write.note_worker import parts_keep_apart, rebuild_note
from hummingbird.gitlab.write.protocol import CollapsedSection, NoteDraft, NoteMarkers

_GAP = "\n\n"
_MARKUP = re.compile(r"\\(?=[!-/:-@\[-`{-~])|<[^<>\n]*>")
_EMPHASIS = re.compile(r"[*`~]|\b_|_\b")
_LINES_LOOKED_AT = 1_000
_log = logging.getLogger(__name__)


def sanitize_markdown(markdown: str, secrets: Secrets, marker_prefix: str, max_chars: int = NOTE_CHARS) -> str:
    """Return Markdown without effects in GitLab, of at most `max_chars` characters; it says when it was cut."""
    text = break_marker(secrets.mask(strip_invisible(markdown)), marker_prefix).strip("\n").rstrip()
    note = rebuild_note(text[:max_chars], max_chars, was_cut=len(text) > max_chars)
    # The text itself is masked. Doing so again takes half a second of CPU time for a megabyte of escapes.
    written_anew = {note.visible_text.strip("\n"), note.markdown} - {text}
    if not note.fault and all(_is_masked(each, secrets) for each in written_anew):
        unmarked = break_marker(note.markdown, marker_prefix)  # code may hold a marker that was written with entities
        return unmarked if len(unmarked) <= max_chars else _write_code(text, secrets, marker_prefix, max_chars)
    if note.fault:
        _log.warning("Posting the text of a note as a block of code: it has %s.", note.fault)
        return _write_code(text, secrets, marker_prefix, max_chars)
    # A secret with tags or entities between its letters becomes readable only in the rendered page.
    return sanitize_code(note.visible_text, secrets, marker_prefix, max_chars)


def sanitize_code(text: str, secrets: Secrets, marker_prefix: str, max_chars: int = NOTE_CHARS) -> str:
    """Return the text as one block of code, of at most `max_chars` characters."""
    return _write_code(secrets.mask(strip_invisible(text)), secrets, marker_prefix, max_chars)


def _write_code(masked: str, secrets: Secrets, marker_prefix: str, max_chars: int) -> str:
    shown = break_marker(_mask_spelt_out(masked, secrets), marker_prefix)
    block = code_block(shown, "text")
    if len(block) <= max_chars:
        return block
    return fit_code(shown, max_chars - len(CUT_NOTICE) - len(_GAP)) + _GAP + CUT_NOTICE


def break_marker(text: str, prefix: str) -> str:
    """Break our own hidden marker, also in code: the search for markers does not know what is code."""
    return re.sub(rf"<!(?=--\s{{0,9}}{re.escape(prefix)})", f"<!{JOINER}", text, flags=re.IGNORECASE)


def _mask_spelt_out(text: str, secrets: Secrets) -> str:
    """Mask secrets that have markup between their letters: a reader could still make them out in code."""
    if all(_is_masked(plain, secrets) for plain in {*_strip_markup(text)} - {text}):  # the text itself is masked
        return text
    lines = text.split("\n")
    if len(lines) > _LINES_LOOKED_AT:  # checking so many lines one by one would take half a minute
        return secrets.mask(_strip_markup(text)[1])
    for number, line in enumerate(lines):
        revealing = (plain for plain in _strip_markup(line) if not _is_masked(plain, secrets))
        lines[number] = secrets.mask(next(revealing, line))
    return "\n".join(lines)


def _strip_markup(text: str) -> tuple[str, str]:
    plain = decode_entities(_MARKUP.sub("", text))
    return plain, _EMPHASIS.sub("", plain)


def _is_masked(text: str, secrets: Secrets) -> bool:
    return secrets.mask(text) == text


def write_suggestion(lines: str, secrets: Secrets, marker_prefix: str, lines_above: int = 0) -> str:
    """Return a suggestion block, which somebody applies to the diff with one click.

    It replaces the line that the note is on and the `lines_above` lines before it. A suggestion becomes a commit, so it
    is posted verbatim or not at all: code that would have to be changed to be safe is shown as a plain block, which
    nobody can apply.
    """
    fence = fence_for(lines)
    inside = f"{lines}\n{fence}" if lines else fence
    shown = sanitize_code(lines, secrets, marker_prefix)
    is_unchanged = shown == f"{fence}text\n{inside}"
    return f"{fence}suggestion:-{lines_above:d}+0\n{inside}" if is_unchanged else shown


_MONEY = re.compile(r"\$(?=[0-9])")
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
