"""Sanitize untrusted text so that it can be posted with the bot's rights and have no effect in GitLab.

Three steps: parse the text with GitLab's own parser, rebuild it from a short list of safe constructs, and check the
result as GitLab will render it. A text that fails the check, or takes too long, is posted as one block of code.
"""

import logging
import re

from hummingbird.core.limits import NOTE_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.gitlab.write.markdown_rebuild import CUT_NOTICE, fit_code
from hummingbird.gitlab.write.markdown_text import JOINER, code_block, decode_entities, fence_for, strip_invisible
from hummingbird.gitlab.write.note_worker import rebuild_note

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
