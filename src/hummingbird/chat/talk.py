"""One conversation between a person and a partner: what is said in which order, what waits, what is given back.

Nothing that was typed is lost: it is said, or it waits, or it goes back to the input line. Knows neither keys nor
windows.
"""

import asyncio
from collections import deque
from contextlib import suppress
from pathlib import Path

from hummingbird.chat.attachments import Composer
from hummingbird.chat.commands import Called, called, unknown
from hummingbird.chat.limits import LEAVING_S
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.pages import todo_page
from hummingbird.chat.partner import Partner
from hummingbird.chat.questions import Questions
from hummingbird.chat.screen import Screen
from hummingbird.chat.shown import Tone
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.journal import EndReason
from hummingbird.domain.runs import Outcome
from hummingbird.domain.todos import Todo


class Talk:
    def __init__(
        self, partner: Partner, screen: Screen, narrator: Narrator, questions: Questions, composer: Composer
    ) -> None:
        self.partner = partner
        self.screen = screen
        self._narrator = narrator
        self._questions = questions
        self._composer = composer
        self._queue: deque[str] = deque()
        self._work: asyncio.Task[None] | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self._saying = False
        self._interrupted = False
        self._todos: tuple[Todo, ...] = tuple(partner.todos())
        self.left = asyncio.Event()

    @property
    def start(self) -> Path:
        return self._composer.start

    @property
    def busy(self) -> bool:
        """Whether a message is being answered."""
        return self._saying

    @property
    def working(self) -> bool:
        """Whether anything is under way, be it a command."""
        return self._work is not None and not self._work.done()

    @property
    def queued(self) -> tuple[str, ...]:
        return tuple(self._queue)

    def submit(self, text: str) -> None:
        """What was typed and sent: an answer to the open question, a command, or a message."""
        meant = called(text)
        if meant is None and self._questions.armed:
            self._guarded(text)
        elif meant is None and not text.strip():
            return
        elif meant is not None and meant.command is None:
            self.screen.say(unknown(meant.word))
        elif meant is not None and meant.command is not None and meant.command.anytime:
            self._start_beside(meant)
        else:
            self._queue.append(text)
            self._go_on()

    def interrupt(self) -> bool:
        """False if nothing was under way. What waits goes back to the input at once; what is typed from now on is said
        as soon as the run has ended."""
        if not self.working:
            return False
        self._interrupted = True
        self.take_back()
        if self._saying:
            self.partner.interrupt()
        elif self._work is not None:
            self._work.cancel()
        return True

    def take_back(self) -> None:
        messages = [text for text in self._queue if called(text) is None]
        for command in (text for text in self._queue if called(text) is not None):
            self.screen.say(f"· not done: {command}", Tone.DIM)
        self._queue.clear()
        if messages:
            self.screen.refill("\n".join(messages))

    def look(self) -> None:
        """Shows the list of what is to be done if it is another one by now."""
        if not self._narrator.todos_changed:
            return
        self._narrator.todos_changed = False
        with suppress(HummingbirdError):  # told when /todo asks for it
            todos = tuple(self.partner.todos())
            if todos != self._todos:
                self._todos = todos
                self.screen.say(todo_page(todos))

    async def idle(self) -> None:
        """Returns when nothing is under way and nothing waits."""
        while self.working or self._beside:
            tasks = [*self._beside, *([self._work] if self._work else [])]
            await asyncio.wait(tasks)
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Ends what is under way, in bounded time, and then the partner."""
        self.take_back()
        self.interrupt()
        tasks = {*self._beside, *([self._work] if self._work else [])}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LEAVING_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self.partner.close()

    # What commands may do (`commands.Conversing`).

    async def confirmed(self, question: str) -> bool:
        return await self._questions.confirm(question)

    def approved(self, answer: str) -> bool:
        if not self._questions.permission:
            return False
        self._questions.answer(answer)
        return True

    def next(self, text: str) -> None:
        self._queue.appendleft(text)
        self._go_on()

    def typed(self, message: str) -> str:
        return self._composer.typed(message)

    def toggled(self) -> bool:
        self._narrator.verbose = not self._narrator.verbose
        return self._narrator.verbose

    def leave(self) -> None:
        self.left.set()

    def _guarded(self, text: str) -> None:
        try:
            self._questions.answer(text)
        except HummingbirdError as error:
            self.screen.say(str(error), Tone.BAD)

    def _start_beside(self, meant: Called) -> None:
        task = asyncio.ensure_future(self._ran(meant))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _go_on(self) -> None:
        self.screen.touch()
        if not self.working and not self.left.is_set():
            self._work = asyncio.ensure_future(self._worked_off())
            self._work.add_done_callback(lambda _: self._go_on() if self._queue else None)

    async def _worked_off(self) -> None:
        while self._queue:
            self._interrupted = False
            text = self._queue.popleft()
            meant = called(text)
            if meant is None:
                await self._said(text)
            else:
                await self._ran(meant)

    async def _ran(self, meant: Called) -> None:
        assert meant.command is not None
        self.screen.say(f"> /{meant.command.name} {meant.argument}".rstrip(), Tone.BOLD)
        try:
            await meant.command.run(self, meant.argument)
        except HummingbirdError as error:
            self.screen.say(str(error), Tone.BAD)
        except asyncio.CancelledError:
            self.screen.say(f"· /{meant.word} is interrupted", Tone.DIM)
            raise
        except Exception as error:  # noqa: BLE001 - the border of a command: whatever broke, the prompt stays
            self.screen.say(f"/{meant.word} failed: {type(error).__name__}: {error}", Tone.BAD)

    async def _said(self, text: str) -> None:
        self.screen.say(f"> {text}", Tone.BOLD)
        self._narrator.begun()
        try:
            message = await self._composer.composed(text)
            self._saying = True
            outcome = await self.partner.say(message)
        except HummingbirdError as error:
            self._failed(text, str(error))
        except asyncio.CancelledError:
            self.screen.refill(text)
            raise
        except Exception as error:  # noqa: BLE001 - the border of a turn: whatever broke, what was typed is given back
            self._failed(text, f"unexpected {type(error).__name__}: {error}")
        else:
            self._settled(outcome)
        finally:
            self._saying = False
            self._narrator.stopped()
            self.look()

    def _failed(self, text: str, sentence: str) -> None:
        self.screen.say(sentence, Tone.BAD)
        self._queue.appendleft(text)
        self.take_back()

    def _settled(self, outcome: Outcome) -> None:
        """What was steered too late is said next; after an interrupt it is given back instead."""
        interrupted = self._interrupted or outcome.reason is EndReason.INTERRUPTED
        if interrupted and outcome.undelivered:
            self.screen.refill("\n".join(outcome.undelivered))
        else:
            self._queue.extendleft(reversed(outcome.undelivered))
