"""XML in pieces, told as starts, texts and ends; whatever is hostile or broken ends the story with a reason.

Nothing is expanded: a document that declares an entity is refused there and then. Holds one tag at most, and not a tag
of any size. Knows nothing of what the elements mean.
"""

import re
from collections.abc import Mapping
from typing import Protocol
from xml.parsers import expat

from hummingbird.domain.limits import XML_DEPTH, XML_PIECE_BYTES, XML_TOKEN_BYTES
from hummingbird.evidence.reports.xml_text import Cleaner

LOOKS_LIKE_XML = re.compile(rb"<[?!A-Za-z_]")

NOT_XML = "It is not XML."


class Story(Protocol):
    """Who listens. Line numbers are those of the document."""

    def start(self, name: str, attributes: Mapping[str, str], line: int) -> None: ...

    def text(self, text: str, line: int) -> None: ...

    def end(self, name: str) -> None: ...


class _Refused(Exception):
    """Raised inside the parser's callbacks to stop it."""


class XmlStream:
    def __init__(self, story: Story) -> None:
        self._story = story
        self._cleaner = Cleaner()
        self._waiting = bytearray()
        self._parsed = 0
        self._depth = 0
        self.broke = ""
        self.closed = False  # the root element has ended
        self._parser = self._created()

    def feed(self, chunk: bytes) -> None:
        if self.broke or self.closed:
            return
        self._waiting += chunk
        # Expat looks at an unfinished tag from its start each time. Giving it as much again as it already holds keeps
        # the whole linear in the size of the tag.
        while len(self._waiting) >= (need := max(XML_PIECE_BYTES, self._lag)) and not self.broke:
            piece = bytes(self._waiting[:need])
            del self._waiting[:need]
            self._parse(self._cleaner.feed(piece))

    def settle(self) -> None:
        """Reads everything that has come so far, to the last byte."""
        if not self.broke:
            piece, self._waiting = bytes(self._waiting), bytearray()
            self._parse(self._cleaner.feed(piece))
            if self._cleaner.hopeless:
                self.broke = NOT_XML

    @property
    def _lag(self) -> int:
        return self._parsed - max(0, self._parser.CurrentByteIndex)

    def _created(self) -> expat.XMLParserType:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.specified_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = _refuse_entity
        return parser

    def _parse(self, piece: bytes) -> None:
        if not piece or self.broke or self.closed:
            return
        if not self._parsed and not LOOKS_LIKE_XML.match(piece):
            self.broke = NOT_XML
            return
        try:
            self._parser.Parse(piece, False)
        except _Refused as refused:
            self.broke = str(refused)
        except expat.ExpatError as error:
            if not self.closed:  # what follows the root is somebody else's
                self._parser.buffer_text = False  # hands over the text that it held when it stopped
                self.broke = f"It stops being XML at line {error.lineno}: {expat.ErrorString(error.code)}."
        else:
            self._parsed += len(piece)
            if self._lag > XML_TOKEN_BYTES:
                self.broke = f"A tag or comment has more than {XML_TOKEN_BYTES} bytes."

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > XML_DEPTH:
            raise _Refused(f"Its elements are nested more than {XML_DEPTH} deep.")
        self._story.start(_local(name), attributes, self._parser.CurrentLineNumber)

    def _text(self, text: str) -> None:
        # With buffered text the parser already stands at what follows it.
        self._story.text(text, max(1, self._parser.CurrentLineNumber - text.count("\n")))

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._story.end(_local(name))
        self.closed = self._depth == 0


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse_entity(*_declaration: object) -> None:
    raise _Refused("It declares entities of its own, which a test report has no use for; nothing was expanded.")
