"""Write a suggestion on a line of the diff: a block that somebody applies with one click.

It is code that will be committed, so it is posted letter by letter or not at all: what would have to be changed to be
safe is shown as plain code, which nobody can apply. The text of a note has no such blocks; the sanitizer sees to that.
"""

from hummingbird.adapters.forge.markdown_text import fence_for
from hummingbird.adapters.forge.note_sanitizer import sanitize_code
from hummingbird.domain.secrets import Secrets


def write_suggestion(lines: str, secrets: Secrets, marker_prefix: str, lines_above: int = 0) -> str:
    """Return a suggestion in place of the line that the note is on, and of `lines_above` lines above it."""
    fence = fence_for(lines)
    inside = f"{lines}\n{fence}" if lines else fence
    shown = sanitize_code(lines, secrets, marker_prefix)
    is_unchanged = shown == f"{fence}text\n{inside}"
    return f"{fence}suggestion:-{lines_above:d}+0\n{inside}" if is_unchanged else shown
