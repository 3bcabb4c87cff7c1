"""The fence around what outsiders could have written (T8): it tells the model that this is material, not instructions.

Both ends carry the first digits of the content's own digest. So content cannot close its own fence, and the same
content is fenced the same way in a replay. Knows neither tools nor sandboxes.
"""

from hashlib import sha256

OPENING = '<untrusted tool="{tool}" id="{mark}">'
CLOSING = '</untrusted id="{mark}">'
MARK_CHARS = 16


def fenced(text: str, tool: str) -> str:
    """The text as it is, between two lines that belong together."""
    mark = _mark(text)
    return f"{OPENING.format(tool=tool, mark=mark)}\n{text}\n{CLOSING.format(mark=mark)}"


def fence_bytes(tool: str) -> int:
    """What a fence weighs besides its content."""
    return len(fenced("", tool).encode())


def _mark(text: str) -> str:
    """Hashing costs somebody who wants his own mark in his text 2**55 tries, which can be bought; so it is checked."""
    seen = text.lower()
    mark = _digest(text.encode("utf-8", "replace"))
    while mark in seen:
        mark = _digest(mark.encode() + text.encode("utf-8", "replace"))
    return mark


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:MARK_CHARS]
