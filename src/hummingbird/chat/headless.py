"""A conversation without a terminal (C1): one question, or a line of standard input each. Answers go to standard
output, nothing else does; the exit code says how it went (L12).

Nobody can be asked here: a call that needs a yes is denied, with a sentence that says how to allow it.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hummingbird.chat.attachments import Composer, Pastes
from hummingbird.chat.commands import Called, called, unknown
from hummingbird.chat.limits import PIPED_BYTES
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.partner import Partner
from hummingbird.chat.shown import Tone
from hummingbird.chat.streams import JsonEvents, JsonStreams, Streams, Watched
from hummingbird.domain.errors import HummingbirdError, InputUnreadable
from hummingbird.domain.events import Event, Told
from hummingbird.domain.permissions import Answer, Question
from hummingbird.domain.runs import Outcome
from hummingbird.ports.observer import Observer
from hummingbird.ports.permissions import Asker
from hummingbird.ports.person import Clarifier

READER_GONE = 141  # as a shell says it of whoever writes to a pipe that nobody reads
_CHUNK_BYTES = 64 * 1024
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PartnerOf = Callable[[Observer, Asker, Clarifier | None], Awaitable[Partner]]
Described = Callable[[Outcome], Mapping[str, Any]]  # the dictionary that the library gives (C2)


class Nobody:
    """Asker where there is no person. A question that is no wish for a yes cannot be asked here at all."""

    name = "nobody: there is no terminal"

    async def ask(self, question: Question) -> Answer:
        return Answer(
            None,
            f"nobody can be asked here. To allow {question.tool}, add a rule to chat.permissions in the configuration "
            f"(action: allow, tool: {question.tool}), or start hummingbird chat in a terminal",
        )


@dataclass(frozen=True, slots=True)
class Piping:
    """`described` is asked for the last line of each run with `as_json`. `watched`: somebody looks at what goes on."""

    start: Path
    described: Described
    as_json: bool = False
    watched: bool = False
    verbose: bool = False


async def answer_one(partner_of: PartnerOf, text: str, piping: Piping, *, typed: bool = True) -> int:
    """One message; the exit code. What was not `typed` is somebody's text, which mentions no files."""
    async with _Desk(partner_of, piping) as desk:
        return await desk.said(text if typed else desk.pastes.keep(text))


async def answer_lines(partner_of: PartnerOf, lines: BinaryIO, piping: Piping) -> int:
    """Each line is a message or a command, until there are no more. The worst of the exit codes."""
    worst = 0
    async with _Desk(partner_of, piping) as desk:
        async for line in _read(lines, desk.streams):
            if line.strip():
                worst = max(worst, await desk.took(line))
            if desk.left or worst >= 128:
                break
    return worst


def standard_input() -> BinaryIO:
    """Raises InputUnreadable where it was closed before we began."""
    if sys.stdin is None:
        raise InputUnreadable("There is no standard input: ask with -q TEXT, or start hummingbird chat in a terminal.")
    return sys.stdin.buffer


def query_text(stdin: BinaryIO) -> str:
    """All of standard input. Raises InputUnreadable."""
    content = stdin.read(PIPED_BYTES + 1)
    if len(content) > PIPED_BYTES:
        raise InputUnreadable(f"Standard input is longer than {PIPED_BYTES:,} bytes: put it into a file and name that.")
    text = content.decode("utf-8", "replace")
    if not text.strip():
        raise InputUnreadable("Standard input is empty: there is nothing to answer.")
    if "\ufffd" in text and "\ufffd".encode() not in content:
        print("hummingbird: standard input is not all UTF-8; the rest stands as \ufffd", file=sys.stderr)  # noqa: T201 - where nobody watches there is no screen to tell it on
    return text


class _Desk:
    """Says one thing after the other. What commands may do (`commands.Conversing`)."""

    def __init__(self, partner_of: PartnerOf, piping: Piping) -> None:
        self._partner_of = partner_of
        self._piping = piping
        made = JsonStreams if piping.as_json else Streams
        self.streams = made(sys.stdout, sys.stderr if piping.watched else None)
        self._narrator = Narrator(Watched(self.streams))
        self._narrator.verbose = piping.verbose
        self._events = JsonEvents(self.streams.write) if piping.as_json else None
        self.pastes = Pastes()
        self._next: list[str] = []
        self._breaks = 0
        self.busy = False
        self.left = False

    async def __aenter__(self) -> "_Desk":
        self.partner = await self._partner_of(self._observed, Nobody(), None)
        self._composer = Composer(self._piping.start, self.partner.attach, self.pastes)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.partner.close()

    async def took(self, text: str) -> int:
        """A line. What is wrong with it is told, and the next one is taken."""
        try:
            return await self._taken(text)
        except HummingbirdError as error:
            self.streams.tell(f"hummingbird: {error}")
        except Exception as error:  # noqa: BLE001 - the border of a line: whatever broke, the next one is taken
            self.streams.tell(f"hummingbird: unexpected {type(error).__name__}: {error}")
        self._next.clear()
        return 1

    async def _taken(self, text: str) -> int:
        meant = called(text)
        if meant is None:
            return await self.said(text)
        if meant.command is None:
            self.streams.tell(unknown(meant.word))
            return 2
        code = await self._ran(meant)
        while self._next and code == 0:
            code = await self.said(self._next.pop(0))
        return code

    async def said(self, text: str) -> int:
        """And after it what was steered too late."""
        self.busy, self._breaks = True, 0
        try:
            with self._interruptible():
                outcome = await self.partner.say(await self._composer.composed(text))
        except asyncio.CancelledError:
            if self._breaks < 2:
                raise
            return 128 + signal.SIGINT
        finally:
            self.busy = False
            self._narrator.stopped()
        self._written(outcome)
        if self.streams.gone:
            return READER_GONE
        for left in outcome.undelivered:
            await self.said(left)
        return outcome.exit_code

    def _written(self, outcome: Outcome) -> None:
        if self._events is not None:
            self._events.result(self._piping.described(outcome))
            return
        if outcome.text.strip():
            self.streams.write(outcome.text)
        if not outcome.answered:
            self.streams.tell(f"hummingbird: {outcome.sentence or outcome.reason.value}")

    def _observed(self, event: Event) -> None:
        """What is told is trouble, and is told whoever watches."""
        if self._events is not None:
            self._events(event)
        elif isinstance(event, Told):
            self.streams.tell(f"hummingbird: {event.sentence}")
        elif self._piping.watched:
            self._narrator(event)
        if self.streams.gone:
            self.partner.interrupt()

    async def _ran(self, meant: Called) -> int:
        assert meant.command is not None
        try:
            await meant.command.run(self, meant.argument)
        except HummingbirdError as error:
            self.streams.say(str(error), Tone.BAD)
            return 1
        return READER_GONE if self.streams.gone else 0

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C ends the run, which still tells what it has; a second one ends everything."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def interrupt() -> None:
            self._breaks += 1
            if self._breaks > 1 and task is not None:
                task.cancel()
            self.partner.interrupt()

        for one in _ENDING:
            loop.add_signal_handler(one, interrupt)
        try:
            yield
        finally:
            for one in _ENDING:
                loop.remove_signal_handler(one)

    # What commands may do.

    @property
    def screen(self) -> Streams:
        return self.streams

    @property
    def start(self) -> Path:
        return self._piping.start

    async def confirmed(self, question: str) -> bool:
        """Whoever piped the command meant it."""
        return True

    def approved(self, answer: str) -> bool:
        return False

    def next(self, text: str) -> None:
        self._next.append(text)

    def typed(self, message: str) -> str:
        return self._composer.typed(message)

    def toggled(self) -> bool:
        self._narrator.verbose = not self._narrator.verbose
        return self._narrator.verbose

    def take_back(self) -> None:
        """Nothing waits here."""

    def leave(self) -> None:
        self.left = True


async def _read(source: BinaryIO, streams: Streams) -> AsyncIterator[str]:
    """A line that never ends is cut where messages are."""
    told, held = False, b""
    while True:
        chunk = await _chunk(source.fileno())
        *lines, held = (held + chunk).split(b"\n")
        if held and (not chunk or len(held) > PIPED_BYTES):
            lines, held = [*lines, held], b""
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if not told and "\ufffd" in text and "\ufffd".encode() not in line:
                told = True
                streams.tell("hummingbird: standard input is not all UTF-8; the rest stands as \ufffd")
            yield text
        if not chunk:
            return


async def _chunk(descriptor: int) -> bytes:
    """Read in a thread, because a pipe may be silent for long; one that nobody waits for when we end."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[bytes] = loop.create_future()

    def tell(content: bytes) -> None:
        if not found.done():
            found.set_result(content)

    def read() -> None:
        try:
            content = os.read(descriptor, _CHUNK_BYTES)
        except OSError:
            content = b""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, content)

    threading.Thread(target=read, daemon=True).start()
    return await found
