"""One conversation in the terminal: sends messages and commands in order, queues them, and handles interrupts.

Nothing that was typed is lost: it is sent, or it waits in the queue, or it goes back to the input line.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hummingbird.agent.todo_list import Todo
from hummingbird.chat.attachments import MessageComposer
from hummingbird.chat.commands import (
    CommandCall,
    find_full_name,
    parse_command,
    show_last_exchange,
    unknown_command_text,
)
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.partner import Partner
from hummingbird.chat.questions import QuestionQueue
from hummingbird.chat.screen import LEAVING_S, Screen, Tone
from hummingbird.chat.status_text import todo_page
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import EndReason

OWN_WORK_MARKS = ("!", "# ")  # a command of the person's own; a line for the memory


class TerminalConversation:
    """A conversation between a person and a partner; the CommandContext of the terminal's commands."""

    def __init__(
        self, partner: Partner, screen: Screen, narrator: Narrator, questions: QuestionQueue, composer: MessageComposer
    ) -> None:
        self.partner = partner
        self.screen = screen
        self._narrator = narrator
        self._questions = questions
        self._composer = composer
        self._queue: deque[str] = deque()
        self._work: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._is_answering = False
        self._interrupted = False
        self._todos: tuple[Todo, ...] = tuple(partner.todos())
        self._printed_todos = self._todos
        self.left = asyncio.Event()

    @property
    def start_folder(self) -> Path:
        return self._composer.start

    @property
    def is_answering(self) -> bool:
        return self._is_answering

    @property
    def is_working(self) -> bool:
        """True while a message or a command is being processed."""
        return self._work is not None and not self._work.done()

    @property
    def queued_texts(self) -> tuple[str, ...]:
        return tuple(self._queue)

    def submit(self, text: str) -> None:
        """Handle a submitted text: an answer to the open question, a command, or a message."""
        meant = parse_command(text)
        if meant is None and self._questions.is_armed:
            self._answer_question(text)
        elif meant is None and not text.strip():
            return
        elif meant is not None and meant.command is None and (said := self._expand(meant)):
            self._queue.append(said)
            self._start_work()
        elif meant is not None and meant.command is None and (name := find_full_name(meant.word)):
            self.submit(f"/{name} {meant.argument}")
        elif meant is not None and meant.command is None:
            self.screen.say(unknown_command_text(meant.word))
            self.screen.restore_input(text)
        elif meant is not None and meant.command is not None and meant.command.anytime:
            self._run_in_background(meant)
        else:
            self._queue.append(text)
            self._start_work()

    def interrupt(self) -> bool:
        """Interrupt the current work; return False if there is none.

        Queued messages go back to the input at once. A text submitted from now on is sent as soon as the run has ended.
        """
        if not self.is_working:
            return False
        self._interrupted = True
        self.return_queued()
        if self._is_answering:
            self.partner.interrupt()
        elif self._work is not None:
            self._work.cancel()
        return True

    def return_queued(self) -> None:
        messages = [text for text in self._queue if parse_command(text) is None]
        for command in (text for text in self._queue if parse_command(text) is not None):
            self.screen.say(f"· not done: {command}", Tone.DIM)
        self._queue.clear()
        if messages:
            self.screen.restore_input("\n".join(messages))

    def update_todos(self) -> None:
        """Read the to-do list again if it has changed; `live_todos` shows it while the run goes on."""
        if not self._narrator.todos_changed:
            return
        self._narrator.todos_changed = False
        with suppress(HummingbirdError):  # /todo shows the error
            self._todos = tuple(self.partner.todos())

    @property
    def live_todos(self) -> tuple[Todo, ...]:
        """The to-do list while the agent works on it."""
        return self._todos if self._is_answering and any(one.is_open for one in self._todos) else ()

    def _print_changed_todos(self) -> None:
        self.update_todos()
        if self._todos != self._printed_todos:
            self._printed_todos = self._todos
            if self._todos:
                self.screen.say(todo_page(self._todos))

    def show_newest_result(self) -> None:
        self._narrator.show_newest()

    def begin(self, *, resumed: bool, first: str) -> None:
        """Show the end of a session that is continued, and send the first text, if there is one."""
        if resumed:
            self._work = asyncio.ensure_future(show_last_exchange(self))
            self._work.add_done_callback(lambda _: self._start_work() if self._queue else None)
        if first:
            self._queue.append(first)
            if not resumed:
                self._start_work()

    async def wait_until_idle(self) -> None:
        """Wait until nothing is running and the queue is empty."""
        while self.is_working or self._background:
            tasks = [*self._background, *([self._work] if self._work else [])]
            await asyncio.wait(tasks)
            await asyncio.sleep(0)

    async def close(self) -> None:
        """End the current work within LEAVING_S, then close the partner."""
        self.return_queued()
        self.interrupt()
        tasks = {*self._background, *([self._work] if self._work else [])}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LEAVING_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self.partner.close()

    # CommandContext

    async def confirm(self, question: str) -> bool:
        return await self._questions.confirm(question)

    async def pick(self, title: str, rows: Sequence[str]) -> int | None:
        return await self._questions.pick(title, rows) if rows else None

    def answer_permission(self, answer: str) -> bool:
        if not self._questions.is_permission:
            return False
        self._questions.answer(answer)
        return True

    def say_next(self, text: str) -> None:
        self._queue.appendleft(text)
        self._start_work()

    def original_text(self, message: str) -> str:
        return self._composer.original_text(message)

    def toggle_verbose(self) -> bool:
        self._narrator.verbose = not self._narrator.verbose
        return self._narrator.verbose

    def leave(self) -> None:
        self.left.set()

    def _expand(self, meant: CommandCall) -> str:
        """Return the message that an own command or a skill stands for."""
        try:
            return self.partner.expand_command(meant.word, meant.argument)
        except HummingbirdError as error:
            self.screen.say(str(error), Tone.BAD)
            return ""

    async def _do_own_work(self, text: str) -> None:
        """Run a command of the person (!), or add a line to the memory (#)."""
        self._show_said(text)
        words = text[1:].strip()
        try:
            if text.startswith("!"):
                self.screen.say(await self.partner.run_command(words) or "(no output)", verbatim=True)
            else:
                self.screen.say(await self.partner.remember(words), Tone.DIM)
        except HummingbirdError as error:
            self.screen.say(str(error), Tone.BAD)
        except asyncio.CancelledError:
            self.screen.say("· interrupted", Tone.DIM)
            raise

    def copy(self, text: str) -> None:
        self.screen.copy(text)

    def _answer_question(self, text: str) -> None:
        try:
            self._questions.answer(text)
        except HummingbirdError as error:
            self.screen.say(str(error), Tone.BAD)

    def _run_in_background(self, meant: CommandCall) -> None:
        task = asyncio.ensure_future(self._run_command(meant))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _start_work(self) -> None:
        self.screen.request_redraw()
        if not self.is_working and not self.left.is_set():
            self._work = asyncio.ensure_future(self._process_queue())
            self._work.add_done_callback(lambda _: self._start_work() if self._queue else None)

    async def _process_queue(self) -> None:
        while self._queue:
            self._interrupted = False
            text = self._queue.popleft()
            meant = parse_command(text)
            if meant is None and text.startswith(OWN_WORK_MARKS):
                await self._do_own_work(text)
            elif meant is None or meant.command is None:
                await self._say(text)
            else:
                await self._run_command(meant)

    async def _run_command(self, meant: CommandCall) -> None:
        assert meant.command is not None
        slash = "" if meant.word == "?" else "/"
        self.screen.say(f"> {slash}{meant.word} {meant.argument}".rstrip(), Tone.BOLD)
        try:
            await meant.command.run(self, meant.argument)
        except HummingbirdError as error:
            self.screen.say(str(error), Tone.BAD)
        except asyncio.CancelledError:
            self.screen.say(f"· /{meant.word} is interrupted", Tone.DIM)
            raise
        except Exception as error:  # noqa: BLE001 - the border of a command: whatever broke, the prompt stays
            self.screen.say(f"/{meant.word} failed: {type(error).__name__}: {error}", Tone.BAD)

    def _show_said(self, text: str) -> None:
        self.screen.say("> " + text.replace("\n", "\n  "), Tone.BOLD)

    async def _say(self, text: str) -> None:
        self._show_said(text)
        self._narrator.show_sending()
        try:
            message = await self._composer.compose(text)
            self._is_answering = True
            outcome = await self.partner.say(message)
        except HummingbirdError as error:
            self._return_failed(text, str(error))
        except asyncio.CancelledError:
            self.screen.restore_input(text)
            raise
        except Exception as error:  # noqa: BLE001 - the border of a turn: whatever broke, what was typed is given back
            self._return_failed(text, f"unexpected {type(error).__name__}: {error}")
        else:
            self._queue_undelivered(outcome)
        finally:
            self._is_answering = False
            self._narrator.finish_run()
            self._print_changed_todos()

    def _return_failed(self, text: str, sentence: str) -> None:
        self.screen.say(sentence, Tone.BAD)
        self._queue.appendleft(text)
        self.return_queued()

    def _queue_undelivered(self, outcome: RunOutcome) -> None:
        """Send next what was steered too late; after an interrupt, put it back into the input instead."""
        interrupted = self._interrupted or outcome.reason is EndReason.INTERRUPTED
        if interrupted and outcome.undelivered:
            self.screen.restore_input("\n".join(outcome.undelivered))
        else:
            self._queue.extendleft(reversed(outcome.undelivered))
