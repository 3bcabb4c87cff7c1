"""Bytes that claim to be XML, made into UTF-8 that an XML parser does not stumble over.

Test reports carry what tests printed: escape sequences, bytes of another encoding than the declared one, references to
characters that XML forbids. A parser gives up at the first of them, and the failure behind it would never be seen.
Knows nothing of elements.
"""

import codecs
import re

DECLARATION_BYTES = 1024
SENSIBLE = re.compile(r"utf-(8|16|32)|iso8859|cp(125|437|85|866|932|936|949|950)|koi8|shift_jis|euc_|gb|big5")
"""Codecs that turn text into text; Python has others, and some of them warn, unpack or take their time."""
DECLARED = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
CONTROLS = bytes(set(range(32)) - set(b"\t\n\r"))
ESCAPE = "␛"
FORBIDDEN_REFERENCE = re.compile(rb"&#(?:x0*(?:[0-8bcefBCEF]|1[0-9a-fA-F])|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]));")
ESCAPE_REFERENCE = re.compile(rb"&#(?:x0*1[bB]|0*27);")
REFERENCE_BYTES = 12
COLOUR = re.compile("(?:\x1b|␛|#x1B)\\[[0-9;?]*[A-Za-z]")  # pytest writes `#x1B` where XML forbids the character


class Cleaner:
    """Fed in pieces; what it gives back is a whole number of characters and never half of a reference."""

    def __init__(self) -> None:
        self._head = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        if self._decoder is None:
            self._head += piece
            if b">" not in self._head and len(self._head) < DECLARATION_BYTES:
                return b""
            piece = self._open()
        return self._clean(piece)

    @property
    def hopeless(self) -> bool:
        """Too short to tell an encoding, and long enough to tell that it is no XML in any."""
        start = self._head.lstrip(b" \t\r\n")[:1]
        return self._decoder is None and start not in {b"", b"<", b"\0", *(mark[:1] for mark, _ in MARKS)}

    def _open(self) -> bytes:
        name, skipped = encoding_of(self._head)
        self._decoder = codecs.getincrementaldecoder(name)("replace")
        start, self._head = self._head[skipped:].lstrip(b" \t\r\n"), b""
        return start

    def _clean(self, piece: bytes) -> bytes:
        assert self._decoder is not None
        text = self._decoder.decode(piece).replace("\x1b", ESCAPE).replace("\ufffe", "").replace("\uffff", "")
        content = self._held + text.encode("utf-8", "replace").translate(None, CONTROLS)
        cut = content.rfind(b"&", max(0, len(content) - REFERENCE_BYTES))
        cut = len(content) if cut < 0 or b";" in content[cut:] else cut
        content, self._held = content[:cut], content[cut:]
        return (
            FORBIDDEN_REFERENCE.sub(b"", ESCAPE_REFERENCE.sub(ESCAPE.encode(), content))
            if b"&#" in content
            else content
        )


def encoding_of(head: bytes) -> tuple[str, int]:
    """The codec for a document that begins like this, and how many bytes of byte order mark to skip."""
    for mark, name in MARKS:
        if head.startswith(mark):
            return name, len(mark)
    if head[:4] in {b"<\0?\0", b"<\0t\0", b"<\0a\0"}:
        return "utf-16-le", 0
    if head[:4] in {b"\0<\0?", b"\0<\0t", b"\0<\0a"}:
        return "utf-16-be", 0
    declared = DECLARED.match(head.lstrip(b" \t\r\n"))
    return (_sensible(declared.group(1).decode()) if declared else "utf-8"), 0


def _sensible(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return "utf-8"
    # We could read the declaration byte by byte, so it is no UTF-16, whatever it says. .NET is known for it.
    return found if SENSIBLE.match(found) and not found.startswith(("utf-16", "utf-32")) else "utf-8"


def uncoloured(text: str) -> str:
    return COLOUR.sub("", text)
