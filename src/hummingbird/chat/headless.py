"""Chat without a terminal: answers one question, or each line of standard input.

Only answers go to standard output; the exit code tells the outcome. There is nobody to ask: a tool call that needs
permission is denied, with a sentence that says how to allow it.
"""

import asyncio
import os
import select
import shlex
import signal
import stat
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import msgspec

from hummingbird.agent.prompts import NO_ANSWER
from hummingbird.chat.attachments import MessageComposer, PasteStore
from hummingbird.chat.call_text import describe_call
from hummingbird.chat.commands import CommandCall, parse_command, unknown_command_text
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.partner import Partner
from hummingbird.chat.screen import PIPED_BYTES, MarkdownBlock, Tone, printable_text
from hummingbird.core.errors import HummingbirdError, InputUnreadable
from hummingbird.core.events import (
    CallDelta,
    EntryRecorded,
    ReasoningDelta,
    RetryScheduled,
    RunDetached,
    RunEvent,
    RunOutcome,
    StatusMessage,
    TextDelta,
    ToolProgress,
)
from hummingbird.core.journal import dump_entry
from hummingbird.core.permissions import PermissionAnswer, PermissionQuestion
from hummingbird.core.protocols.interaction import Clarifier, PermissionAsker
from hummingbird.core.protocols.observer import RunObserver


class StreamScreen:
    """A Screen on two streams: answers go to `said`, progress to `told`, or nowhere if that is None.

    Control characters are spelled out only on a terminal: a pipe gets what the model wrote.
    """

    def __init__(self, said: TextIO, told: TextIO | None) -> None:
        self._answers = said
        self._progress = told
        self.reader_gone = False

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, verbatim: bool = False) -> None:
        """Write plain text, which is a command's answer, to `said`; any other tone is progress or an error."""
        if tone is Tone.PLAIN:
            self.write_answer(text)
        elif self._progress is not None or tone is Tone.BAD:
            self.write_progress(text)

    def show_block(self, block: MarkdownBlock) -> None:
        """Do nothing: answers are written when they are complete."""

    def show_page(self, markdown: str) -> None:
        self.write_answer(markdown)

    def request_redraw(self) -> None:
        """Do nothing: a stream cannot be redrawn."""

    def restore_input(self, text: str) -> None:
        self.write_progress(f"Not sent: {text[:200]}")

    def copy(self, text: str) -> None:
        """Write the text: a stream has no clipboard."""
        self.write_answer(text)

    def write_progress(self, text: str) -> None:
        print(printable_text(text), file=self._progress or sys.stderr, flush=True)

    def write_answer(self, text: str) -> None:
        """Write a text and a newline; do nothing once the reader has closed the pipe."""
        if self.reader_gone:
            return
        if self._answers.isatty():
            text = printable_text(text)
        encoding = self._answers.encoding or "utf-8"
        try:
            self._answers.buffer.write(f"{text}\n".encode(encoding, "backslashreplace"))
            self._answers.buffer.flush()
        except BrokenPipeError:
            self._discard_output()

    def _discard_output(self) -> None:
        """Redirect the stream to /dev/null: the interpreter flushes it at exit and would print an error."""
        self.reader_gone = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._answers.fileno())
        os.close(nowhere)


class ProgressScreen:
    """A Screen for progress: ignores answers, which are written when they are complete."""

    def __init__(self, streams: StreamScreen) -> None:
        self._streams = streams

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, verbatim: bool = False) -> None:
        self._streams.write_progress(text)

    def show_block(self, block: MarkdownBlock) -> None: ...

    def show_page(self, markdown: str) -> None: ...

    def request_redraw(self) -> None: ...

    def restore_input(self, text: str) -> None: ...

    def copy(self, text: str) -> None: ...


class JsonScreen(StreamScreen):
    """A StreamScreen that writes the output of commands as lines of JSON."""

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, verbatim: bool = False) -> None:
        self.write_answer(msgspec.json.encode({"kind": "said", "text": text}).decode())

    def show_page(self, markdown: str) -> None:
        self.say(markdown)


class JsonEventWriter:
    """A RunObserver that writes each event as a line of JSON: entries as in the journal, and deltas."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            self._write(dump_entry(event.entry).decode().rstrip("\n"))
        elif not isinstance(event, RunDetached):  # a chat is never detached
            self._write(msgspec.json.encode(_delta_fields(event)).decode())

    def write_result(self, said: Mapping[str, Any]) -> None:
        """Write the last line of a run."""
        line = msgspec.json.encode({"kind": "result", **said}, enc_hook=str)
        self._write(line.decode())


def _delta_fields(
    event: TextDelta | ReasoningDelta | CallDelta | ToolProgress | StatusMessage | RetryScheduled,
) -> dict[str, Any]:
    match event:
        case TextDelta(text=text):
            return {"kind": "text_delta", "text": text}
        case ReasoningDelta(text=text):
            return {"kind": "reasoning_delta", "text": text}
        case CallDelta(index=index, name=name, part=part):
            return {"kind": "call_delta", "index": index, "name": name, "part": part}
        case ToolProgress(call_id=call_id, name=name, text=text):
            return {"kind": "progress", "call_id": call_id, "name": name, "text": text}
        case StatusMessage(sentence=sentence):
            return {"kind": "told", "text": sentence}
        case RetryScheduled(retry=retry, retries=retries, wait_s=wait_s, reason=reason):
            return {"kind": "retry", "retry": retry, "retries": retries, "wait_s": wait_s, "reason": reason}


NOT_ALLOWED_EXIT_CODE = 3  # there is an answer, but calls were denied because nobody could be asked
READER_GONE_EXIT_CODE = 141  # 128 + SIGPIPE, as a shell reports it
PIPE_WAIT_S = 3.0  # for the first byte of a pipe beside a question
_CHUNK_BYTES = 64 * 1024
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HeadlessPartnerFactory = Callable[[RunObserver, PermissionAsker, Clarifier | None], Awaitable[Partner]]
OutcomeDescriber = Callable[[RunOutcome], Mapping[str, Any]]  # the same dictionary as the library returns


class DenyingAsker:
    """A PermissionAsker that denies everything, because there is nobody to ask, and tells how to allow it."""

    name = "the lack of a terminal"

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.denied: list[Mapping[str, str]] = []  # in this run: the call, and the option that would allow it

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        call = describe_call(question.tool, question.arguments)
        self._tell(f"hummingbird: not allowed: {call}. To allow it: {_allowing_option(question)}")
        self.denied.append({"call": call, "option": _allowing_option(question)})
        return PermissionAnswer(
            None,
            f"nobody can be asked here. To allow it, start with {_allowing_option(question)}, add a rule to "
            f"chat.permissions in the configuration, or start hummingbird chat in a terminal",
        )


def _allowing_option(question: PermissionQuestion) -> str:
    """Return the option of the command line that would allow the call."""
    if question.offer.accept_edits:
        return "--allow-edits"
    return f"--allow {shlex.quote(question.offer.rule or question.tool)}"


@dataclass(frozen=True, slots=True)
class HeadlessSettings:
    """`describe_outcome` makes the last line of each run with `as_json`; `watched`: progress goes to standard error.

    With `only_result`, that line is all that is printed of a run.
    """

    start: Path
    describe_outcome: OutcomeDescriber
    as_json: bool = False
    watched: bool = False
    verbose: bool = False
    only_result: bool = False


async def answer_one(
    partner_of: HeadlessPartnerFactory, text: str, piping: HeadlessSettings, *, piped: str = ""
) -> int:
    """Answer one message and return the exit code. What was `piped` goes along, but cannot mention files."""
    async with HeadlessChat(partner_of, piping) as desk:
        return await desk.say("\n\n".join(filter(None, (text, desk.pastes.keep(piped) if piped else ""))))


async def answer_lines(partner_of: HeadlessPartnerFactory, lines: BinaryIO, piping: HeadlessSettings) -> int:
    """Process each line as a message or a command, and return the highest exit code."""
    worst = 0
    async with HeadlessChat(partner_of, piping) as desk:
        async for line in _read_lines(lines, desk.streams):
            if line.strip():
                worst = max(worst, await desk.process_line(line))
            if desk.has_left or worst >= 128:
                break
    return worst


def open_standard_input() -> BinaryIO:
    """Return standard input. Raises InputUnreadable if it was closed when the process started."""
    if sys.stdin is None:
        raise InputUnreadable("There is no standard input: ask with -q TEXT, or start hummingbird chat in a terminal.")
    return sys.stdin.buffer


def read_query(stdin: BinaryIO, *, may_be_empty: bool = False) -> str:
    """Read all of standard input. Raises InputUnreadable if it is too long, or empty where it may not be."""
    content = stdin.read(PIPED_BYTES + 1)
    if len(content) > PIPED_BYTES:
        raise InputUnreadable(f"Standard input is longer than {PIPED_BYTES:,} bytes: put it into a file and name that.")
    text = content.decode("utf-8", "replace")
    if not text.strip() and not may_be_empty:
        raise InputUnreadable("Standard input is empty: there is nothing to answer.")
    if "\ufffd" in text and "\ufffd".encode() not in content:
        print("hummingbird: standard input is not all UTF-8; the rest stands as \ufffd", file=sys.stderr)  # noqa: T201 - where nobody watches there is no screen to tell it on
    return text


def read_piped_input() -> str:
    """Return what is piped into the process, empty if nothing is. Raises InputUnreadable if it is too long.

    Whoever starts programs may leave them a pipe that nobody ever writes to or closes: that is not waited for.
    """
    if sys.stdin is None or stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode):  # a terminal, or /dev/null
        return ""
    if not select.select([sys.stdin.fileno()], [], [], PIPE_WAIT_S)[0]:
        told = f"hummingbird: nothing came through standard input in {PIPE_WAIT_S:g} s; going on without"
        print(told, file=sys.stderr)  # noqa: T201 - there is no screen yet
        return ""
    return read_query(sys.stdin.buffer, may_be_empty=True).strip()


class HeadlessChat:
    """Processes one message or command after the other; also their CommandContext."""

    def __init__(self, partner_of: HeadlessPartnerFactory, piping: HeadlessSettings) -> None:
        self._partner_of = partner_of
        self._settings = piping
        made = JsonScreen if piping.as_json or piping.only_result else StreamScreen
        self.streams = made(sys.stdout, sys.stderr if piping.watched else None)
        self._narrator = Narrator(ProgressScreen(self.streams))
        self._narrator.verbose = piping.verbose
        self._events = JsonEventWriter(self.streams.write_answer) if piping.as_json or piping.only_result else None
        self.pastes = PasteStore()
        self._asker = DenyingAsker(self.streams.write_progress)
        self._next: list[str] = []
        self._interrupts = 0
        self.is_answering = False
        self.has_left = False

    async def __aenter__(self) -> "HeadlessChat":
        self.partner = await self._partner_of(self._observe, self._asker, None)
        self._composer = MessageComposer(
            self._settings.start, self.partner.attach, self.pastes, attach_image=self.partner.attach_image
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.partner.close()

    async def process_line(self, text: str) -> int:
        """Process a line and return its exit code; report an error, so that the next line can be processed."""
        try:
            return await self._run_line(text)
        except HummingbirdError as error:
            self.streams.write_progress(f"hummingbird: {error}")
        except Exception as error:  # noqa: BLE001 - the border of a line: whatever broke, the next one is taken
            self.streams.write_progress(f"hummingbird: unexpected {type(error).__name__}: {error}")
        self._next.clear()
        return 1

    async def _run_line(self, text: str) -> int:
        meant = parse_command(text)
        if meant is None:
            return await self.say(text)
        if meant.command is None and (said := self.partner.expand_command(meant.word, meant.argument)):
            return await self.say(said)
        if meant.command is None:
            self.streams.write_progress(unknown_command_text(meant.word))
            return 2
        code = await self._run_command(meant)
        while self._next and code == 0:
            code = await self.say(self._next.pop(0))
        return code

    async def say(self, text: str) -> int:
        """Send a message, then what was steered too late; return the exit code."""
        self.is_answering, self._interrupts = True, 0
        self._asker.denied.clear()
        try:
            with self._interruptible():
                outcome = await self.partner.say(await self._composer.compose(text))
        except asyncio.CancelledError:
            if self._interrupts < 2:
                raise
            return 128 + signal.SIGINT
        finally:
            self.is_answering = False
            self._narrator.finish_run()
        self._write_outcome(outcome)
        if self.streams.reader_gone:
            return READER_GONE_EXIT_CODE
        code = NOT_ALLOWED_EXIT_CODE if self._asker.denied and outcome.exit_code == 0 else outcome.exit_code
        for left in outcome.undelivered:
            await self.say(left)
        return code

    def _write_outcome(self, outcome: RunOutcome) -> None:
        if self._events is not None:
            self._events.write_result({**self._settings.describe_outcome(outcome), "not_allowed": self._asker.denied})
            return
        if outcome.text.strip() and (outcome.answered or outcome.text != NO_ANSWER):
            self.streams.write_answer(outcome.text)
        if not outcome.answered:
            self.streams.write_progress(f"hummingbird: {outcome.sentence or outcome.reason.value}")

    def _observe(self, event: RunEvent) -> None:
        """Show an event. A StatusMessage reports a problem, so it is shown even if nobody watches."""
        if self._events is not None:
            if not self._settings.only_result:
                self._events(event)
        elif isinstance(event, StatusMessage):
            self.streams.write_progress(f"hummingbird: {event.sentence}")
        elif self._settings.watched:
            self._narrator(event)
        if self.streams.reader_gone:
            self.partner.interrupt()

    async def _run_command(self, meant: CommandCall) -> int:
        assert meant.command is not None
        try:
            await meant.command.run(self, meant.argument)
        except HummingbirdError as error:
            self.streams.say(str(error), Tone.BAD)
            return 1
        return READER_GONE_EXIT_CODE if self.streams.reader_gone else 0

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let Ctrl-C end the run, which still returns what it has; a second Ctrl-C cancels everything."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def interrupt() -> None:
            self._interrupts += 1
            if self._interrupts > 1 and task is not None:
                task.cancel()
            self.partner.interrupt()

        for one in _ENDING_SIGNALS:
            loop.add_signal_handler(one, interrupt)
        try:
            yield
        finally:
            for one in _ENDING_SIGNALS:
                loop.remove_signal_handler(one)

    # CommandContext

    @property
    def screen(self) -> StreamScreen:
        return self.streams

    @property
    def start_folder(self) -> Path:
        return self._settings.start

    async def confirm(self, question: str) -> bool:
        """Return True: the person who piped the command meant it."""
        return True

    def copy(self, text: str) -> None:
        self.streams.copy(text)

    async def pick(self, title: str, rows: Sequence[str]) -> None:
        """Show the rows: nobody is there to choose one."""
        self.streams.say("\n".join([title, *rows]))

    def answer_permission(self, answer: str) -> bool:
        return False

    def say_next(self, text: str) -> None:
        self._next.append(text)

    def original_text(self, message: str) -> str:
        return self._composer.original_text(message)

    def toggle_verbose(self) -> bool:
        self._narrator.verbose = not self._narrator.verbose
        return self._narrator.verbose

    def return_queued(self) -> None:
        """Do nothing: there is no queue."""

    def leave(self) -> None:
        self.has_left = True


async def _read_lines(source: BinaryIO, streams: StreamScreen) -> AsyncIterator[str]:
    """Yield the lines; a line longer than PIPED_BYTES is split there."""
    told, held = False, b""
    while True:
        chunk = await _read_chunk(source.fileno())
        *lines, held = (held + chunk).split(b"\n")
        if held and (not chunk or len(held) > PIPED_BYTES):
            lines, held = [*lines, held], b""
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if not told and "\ufffd" in text and "\ufffd".encode() not in line:
                told = True
                streams.write_progress("hummingbird: standard input is not all UTF-8; the rest stands as \ufffd")
            yield text
        if not chunk:
            return


async def _read_chunk(descriptor: int) -> bytes:
    """Read in a daemon thread: a pipe may be silent for long, and the process must be able to end meanwhile."""
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
        with suppress(RuntimeError):  # the loop is closed, nobody waits
            loop.call_soon_threadsafe(tell, content)

    threading.Thread(target=read, daemon=True).start()
    return await found
