"""A conversation on two streams instead of a terminal: answers to one, what goes on to the other (C1).

Control characters are written out only where somebody looks: a pipe gets what the model wrote.
"""

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import msgspec

from hummingbird.chat.blocks import Block
from hummingbird.chat.shown import Tone, shown
from hummingbird.domain.events import CallDelta, Event, Left, Progressed, ReasoningDelta, Recorded, TextDelta, Told
from hummingbird.domain.journal import dump


class Streams:
    """`said` is where answers go, `told` where everything else does; None: nobody watches."""

    def __init__(self, said: TextIO, told: TextIO | None) -> None:
        self._said = said
        self._told = told
        self.gone = False

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """A Screen: what commands show is their answer, what goes on is not."""
        if tone is Tone.PLAIN:
            self.write(text)
        elif self._told is not None or tone is Tone.BAD:
            self.tell(text)

    def answer(self, block: Block) -> None:
        """Answers are written as a whole."""

    def page(self, markdown: str) -> None:
        self.write(markdown)

    def touch(self) -> None:
        """Nothing here is drawn twice."""

    def refill(self, text: str) -> None:
        self.tell(f"Not said: {text[:200]}")

    def tell(self, text: str) -> None:
        print(shown(text), file=self._told or sys.stderr, flush=True)

    def write(self, text: str) -> None:
        """One text, with a newline. Does nothing any more when nobody reads."""
        if self.gone:
            return
        if self._said.isatty():
            text = shown(text)
        encoding = self._said.encoding or "utf-8"
        try:
            self._said.buffer.write(f"{text}\n".encode(encoding, "backslashreplace"))
            self._said.buffer.flush()
        except BrokenPipeError:
            self._forget()

    def _forget(self) -> None:
        """Or the interpreter tries once more when it ends, and complains."""
        self.gone = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._said.fileno())
        os.close(nowhere)


class Watched:
    """A Screen for what goes on: everything to the other stream, and no answers, which are written when they are
    complete."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self._streams.tell(text)

    def answer(self, block: Block) -> None: ...

    def page(self, markdown: str) -> None: ...

    def touch(self) -> None: ...

    def refill(self, text: str) -> None: ...


class JsonStreams(Streams):
    """What commands show, as a line of JSON like everything else there."""

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.write(msgspec.json.encode({"kind": "said", "text": text}).decode())

    def page(self, markdown: str) -> None:
        self.say(markdown)


class JsonEvents:
    """An observer that writes each event as a line of JSON: entries as in their journal, deltas beside them."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: Event) -> None:
        if isinstance(event, Recorded):
            self._write(dump(event.entry).decode().rstrip("\n"))
        elif not isinstance(event, Left):  # a conversation goes on
            self._write(msgspec.json.encode(_delta(event)).decode())

    def result(self, said: Mapping[str, Any]) -> None:
        """The last line of a run."""
        line = msgspec.json.encode({"kind": "result", **said}, enc_hook=str)
        self._write(line.decode())


def _delta(event: TextDelta | ReasoningDelta | CallDelta | Progressed | Told) -> dict[str, Any]:
    match event:
        case TextDelta(text=text):
            return {"kind": "text_delta", "text": text}
        case ReasoningDelta(text=text):
            return {"kind": "reasoning_delta", "text": text}
        case CallDelta(index=index, name=name, part=part):
            return {"kind": "call_delta", "index": index, "name": name, "part": part}
        case Progressed(call_id=call_id, name=name, text=text):
            return {"kind": "progress", "call_id": call_id, "name": name, "text": text}
        case Told(sentence=sentence):
            return {"kind": "told", "text": sentence}
