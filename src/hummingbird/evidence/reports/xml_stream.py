"""Parse XML in pieces and report starts, texts and ends; stop with a reason at hostile or broken XML.

Entities are never expanded: a document that declares one is refused. At most one tag is held, of limited size.
"""

import codecs
import re
from collections.abc import Mapping
from typing import Protocol
from xml.parsers import expat

from hummingbird.core.limits import XML_DEPTH, XML_PIECE_BYTES, XML_TOKEN_BYTES

# Cleaning. Test reports contain what tests printed: escape sequences, bytes in another encoding than the declared one,
# references to characters that XML forbids. A parser gives up at the first of them and would miss the failures behind.
DECLARATION_BYTES = 1024
# Codecs that convert between text and bytes. Python has others, some of which warn, decompress or are slow.
SAFE_CODECS = re.compile(r"utf-(8|16|32)|iso8859|cp(125|437|85|866|932|936|949|950)|koi8|shift_jis|euc_|gb|big5")
DECLARED_ENCODING = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
BYTE_ORDER_MARKS = (
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


class XmlTextCleaner:
    """Turns bytes that claim to be XML into UTF-8 that a parser accepts.

    Fed in pieces; returns whole characters and whole character references only.
    """

    def __init__(self) -> None:
        self._head = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        if self._decoder is None:
            self._head += piece
            if b">" not in self._head and len(self._head) < DECLARATION_BYTES:
                return b""
            piece = self._choose_decoder()
        return self._clean(piece)

    @property
    def is_not_xml(self) -> bool:
        """Whether the input is too short to detect an encoding but already cannot be XML in any."""
        start = self._head.lstrip(b" \t\r\n")[:1]
        return self._decoder is None and start not in {b"", b"<", b"\0", *(mark[:1] for mark, _ in BYTE_ORDER_MARKS)}

    def _choose_decoder(self) -> bytes:
        name, skipped = detect_encoding(self._head)
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


def detect_encoding(head: bytes) -> tuple[str, int]:
    """Return the codec for a document that begins like this, and the size of the byte order mark to skip."""
    for mark, name in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return name, len(mark)
    if head[:4] in {b"<\0?\0", b"<\0t\0", b"<\0a\0"}:
        return "utf-16-le", 0
    if head[:4] in {b"\0<\0?", b"\0<\0t", b"\0<\0a"}:
        return "utf-16-be", 0
    declared = DECLARED_ENCODING.match(head.lstrip(b" \t\r\n"))
    return (_safe_codec(declared.group(1).decode()) if declared else "utf-8"), 0


def _safe_codec(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return "utf-8"
    # The declaration was readable byte by byte, so it is not UTF-16, whatever it declares. .NET is known for this.
    return found if SAFE_CODECS.match(found) and not found.startswith(("utf-16", "utf-32")) else "utf-8"


def strip_colours(text: str) -> str:
    """Remove colour codes, also in the forms in which reports escape them."""
    return COLOUR.sub("", text)


LOOKS_LIKE_XML = re.compile(rb"<[?!A-Za-z_]")

NOT_XML = "It is not XML."


class XmlHandler(Protocol):
    """Receives the events of an `XmlStream`; line numbers are those of the document."""

    def start(self, name: str, attributes: Mapping[str, str], line: int) -> None: ...

    def text(self, text: str, line: int) -> None: ...

    def end(self, name: str) -> None: ...


class _XmlRefused(Exception):
    """Raised inside the parser's callbacks to stop it."""


class XmlStream:
    """Parses XML that comes in chunks and passes events to a handler; `error_text` says why it stopped early."""

    def __init__(self, story: XmlHandler) -> None:
        self._story = story
        self._cleaner = XmlTextCleaner()
        self._waiting = bytearray()
        self._parsed = 0
        self._depth = 0
        self.error_text = ""
        self.closed = False  # the root element has ended
        self._parser = self._create_parser()

    def feed(self, chunk: bytes) -> None:
        if self.error_text or self.closed:
            return
        self._waiting += chunk
        # Expat rereads an unfinished tag from its start each time. Waiting for as many bytes as the tag already has
        # keeps the total work linear in the size of the tag.
        while len(self._waiting) >= (need := max(XML_PIECE_BYTES, self._pending_bytes)) and not self.error_text:
            piece = bytes(self._waiting[:need])
            del self._waiting[:need]
            self._parse(self._cleaner.feed(piece))

    def flush(self) -> None:
        """Parse everything that was fed so far, to the last byte."""
        if not self.error_text:
            piece, self._waiting = bytes(self._waiting), bytearray()
            self._parse(self._cleaner.feed(piece))
            if self._cleaner.is_not_xml:
                self.error_text = NOT_XML

    @property
    def _pending_bytes(self) -> int:
        return self._parsed - max(0, self._parser.CurrentByteIndex)

    def _create_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.specified_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = _refuse_entity
        return parser

    def _parse(self, piece: bytes) -> None:
        if not piece or self.error_text or self.closed:
            return
        if not self._parsed and not LOOKS_LIKE_XML.match(piece):
            self.error_text = NOT_XML
            return
        try:
            self._parser.Parse(piece, False)
        except _XmlRefused as refused:
            self.error_text = str(refused)
        except expat.ExpatError as error:
            if not self.closed:  # what follows the root element does not matter
                self._parser.buffer_text = False  # makes it hand over the text that it held when it stopped
                self.error_text = f"It stops being XML at line {error.lineno}: {expat.ErrorString(error.code)}."
        else:
            self._parsed += len(piece)
            if self._pending_bytes > XML_TOKEN_BYTES:
                self.error_text = f"A tag or comment has more than {XML_TOKEN_BYTES} bytes."

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > XML_DEPTH:
            raise _XmlRefused(f"Its elements are nested more than {XML_DEPTH} deep.")
        self._story.start(_local_name(name), attributes, self._parser.CurrentLineNumber)

    def _text(self, text: str) -> None:
        # With buffered text the parser is already past the text, so count its lines back.
        self._story.text(text, max(1, self._parser.CurrentLineNumber - text.count("\n")))

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._story.end(_local_name(name))
        self.closed = self._depth == 0


def _local_name(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse_entity(*_declaration: object) -> None:
    raise _XmlRefused("It declares entities of its own, which a test report has no use for; nothing was expanded.")
