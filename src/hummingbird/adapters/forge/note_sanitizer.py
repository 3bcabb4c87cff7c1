"""Make what somebody else wrote fit to be posted with the bot's rights: it may be read, and does nothing else.

Three steps: parse the text with GitLab's own parser, write it anew from a short list of constructs, look at the result
as GitLab will show it. What does not pass the look, or takes too long, is posted as one block of code.
"""

import html
import logging
import re

from hummingbird.adapters.forge.markdown_rebuild import CUT, fit_code
from hummingbird.adapters.forge.markdown_text import JOINER, code_block, strip_invisible
from hummingbird.adapters.forge.note_worker import rebuild_note
from hummingbird.domain.limits import NOTE_CHARS
from hummingbird.domain.secrets import Secrets

_GAP = "\n\n"
_MARKUP = re.compile(r"\\(?=[!-/:-@\[-`{-~])|<[^<>\n]*>")
_EMPHASIS = re.compile(r"[*`~]|\b_|_\b")
_LINES_LOOKED_AT = 1_000
_log = logging.getLogger(__name__)


def sanitize_markdown(markdown: str, secrets: Secrets, marker_prefix: str, max_chars: int = NOTE_CHARS) -> str:
    """Return Markdown that cannot act in GitLab, of at most `max_chars` characters; if some are missing, it says so."""
    text = break_marker(secrets.mask(strip_invisible(markdown)), marker_prefix).strip("\n").rstrip()
    note = rebuild_note(text[:max_chars], max_chars, was_cut=len(text) > max_chars)
    if not note.fault and _is_masked(note.visible_text, secrets) and _is_masked(note.markdown, secrets):
        unmarked = break_marker(note.markdown, marker_prefix)  # code may hold one that was spelt with entities
        return unmarked if len(unmarked) <= max_chars else sanitize_code(text, secrets, marker_prefix, max_chars)
    if note.fault:
        _log.warning("The text of a note is posted as a block of code: it has %s.", note.fault)
        return sanitize_code(text, secrets, marker_prefix, max_chars)
    # A secret that is spelt with tags or entities between its letters can be read only once the page is shown.
    return sanitize_code(note.visible_text, secrets, marker_prefix, max_chars)


def sanitize_code(text: str, secrets: Secrets, marker_prefix: str, max_chars: int = NOTE_CHARS) -> str:
    """Return the text as one block of code, of at most `max_chars` characters."""
    shown = break_marker(_mask_spelt_out(secrets.mask(strip_invisible(text)), secrets), marker_prefix)
    block = code_block(shown, "text")
    if len(block) <= max_chars:
        return block
    return fit_code(shown, max_chars - len(CUT) - len(_GAP)) + _GAP + CUT


def break_marker(text: str, prefix: str) -> str:
    """Break our own hidden marker, in code too: whoever looks for one does not ask where it stands."""
    return re.sub(rf"<!(?=--\s{{0,9}}{re.escape(prefix)})", f"<!{JOINER}", text, flags=re.IGNORECASE)


def _mask_spelt_out(text: str, secrets: Secrets) -> str:
    """Mask secrets that have markup between their letters: in code they can still be read, with some patience."""
    if all(_is_masked(plain, secrets) for plain in _without_markup(text)):
        return text
    lines = text.split("\n")
    if len(lines) > _LINES_LOOKED_AT:  # one by one they would take half a minute
        return secrets.mask(_without_markup(text)[1])
    for number, line in enumerate(lines):
        revealing = (plain for plain in _without_markup(line) if not _is_masked(plain, secrets))
        lines[number] = secrets.mask(next(revealing, line))
    return "\n".join(lines)


def _without_markup(text: str) -> tuple[str, str]:
    plain = html.unescape(_MARKUP.sub("", text))
    return plain, _EMPHASIS.sub("", plain)


def _is_masked(text: str, secrets: Secrets) -> bool:
    return secrets.mask(text) == text
