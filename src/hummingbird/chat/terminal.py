"""The terminal of a conversation (C1): a prompt that is always there, what goes on above it, and all that is settled in
the scrollback above that.

Text that streams is looked at a few times a second, keys are echoed at once. A block is rendered when it is complete,
once. Nothing here knows what is talked about.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.output import ColorDepth

from hummingbird.chat.attachments import Pastes, is_long, put_aside, repaired
from hummingbird.chat.blocks import Block, Blocks
from hummingbird.chat.completion import ChatCompleter, completable
from hummingbird.chat.history import KeptHistory, RecallingBuffer
from hummingbird.chat.keys import key_bindings
from hummingbird.chat.layout import COLOURED, PLAIN, divided
from hummingbird.chat.limits import LIVE_ROWS, REDRAW_S, STANDING_S, TWICE_S
from hummingbird.chat.markdown import Renderer
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.partner import Standing
from hummingbird.chat.questions import Questions
from hummingbird.chat.shown import Tone, coloured, fitted, shown, tail, wrapped
from hummingbird.chat.status_line import status_line
from hummingbird.chat.talk import Talk
from hummingbird.chat.terminal_ends import HeldOutput, pushed_down, reflows
from hummingbird.domain.text import shortened

_PRINTING_S = 0.02  # at a time, so that keys come in between


@dataclass(frozen=True, slots=True)
class Setting:
    """`mask` takes known credentials out of what is written to the history; `history` None keeps none."""

    start: Path
    environment: Mapping[str, str]
    mask: Callable[[str], str] = str
    history: Path | None = None
    colour: bool = True
    verbose: bool = False
    greeting: str = ""


class _Resizing(Application[None]):
    """Draws frames that fit the size that the terminal has when they are written.

    A terminal changes its size at any moment, and the signal that tells us comes later. Many terminals break their
    lines anew then, which moves the last frame; prompt_toolkit erases as if they did not. A frame that was made for
    another size would erase lines that stand above it, or leave some of the last frame behind.
    """

    reflowing = False
    _drawn_for: Size | None = None

    def draw(self, above: str | None = None) -> None:
        """Draw what has changed. With `above`, or in another size than last time, erase the last frame, print `above`
        in its place, and draw all of it below. Start again if the size changes meanwhile: nothing is written then."""
        if not self._is_running or self._running_in_terminal:
            return
        output, renderer = self.output, self.renderer
        assert isinstance(output, HeldOutput)
        output.flush()
        while True:
            size, written = output.get_size(), (renderer._last_screen, renderer._cursor_pos)
            with output.held():
                if above is not None or size != self._drawn_for:
                    self._erase(size)
                    output.write_raw(above or "")
                super()._redraw()
                if output.get_size() == size:
                    self._drawn_for = size
                    return
                output.drop()
            renderer._last_screen, renderer._cursor_pos = written

    def _erase(self, size: Size) -> None:
        screen = self.renderer.last_rendered_screen
        if self.reflowing and screen is not None:
            cursor = screen.get_cursor_position(self.layout.current_window)
            rows = [screen.data_buffer[row] for row in range(cursor.y)]
            widths = [max((at + 1 for at, cell in row.items() if cell.char != " "), default=0) for row in rows]
            self.output.cursor_up(pushed_down(widths, cursor.x, size))
        self.renderer.erase(leave_alternate_screen=False)

    def _redraw(self, render_as_done: bool = False) -> None:
        if render_as_done:
            super()._redraw(render_as_done)
        else:
            self.draw()

    def _on_resize(self) -> None:
        self.draw("")


class Terminal:
    """A Screen (`chat.screen`), and what the keys do (`chat.keys.Typed`)."""

    def __init__(self, setting: Setting, keyboard: Input, output: HeldOutput) -> None:
        self._setting = setting
        self._output = output
        self._renderer = Renderer(colour=setting.colour)
        self._above: deque[Callable[[int], str]] = deque()
        self._spaced = True  # nothing, or an empty line, stands above
        self._changed = True
        self._lines: StyleAndTextTuples = []
        self._draft = ""  # put aside while a question is answered
        self._asking = False
        self._broke_at = 0.0
        self._standing: tuple[float, Standing | None] = (0.0, None)
        self._told_of_bytes = False
        self.pastes = Pastes()
        self.history = KeptHistory(setting.history, setting.mask, self.pastes)
        self.narrator = Narrator(self)
        self.narrator.verbose = setting.verbose
        self.questions = Questions(self)
        self.talk: Talk | None = None
        self.buffer = RecallingBuffer(
            multiline=True,
            history=self.history,
            completer=ThreadedCompleter(ChatCompleter(setting.start)),
            complete_while_typing=Condition(lambda: completable(self.buffer.document)),
        )
        self._app = self._application(keyboard)

    def _application(self, keyboard: Input) -> _Resizing:
        made = _Resizing(
            layout=divided(self.buffer, lambda: self._lines, self._prompt, self._status),
            key_bindings=key_bindings(self),
            style=COLOURED if self._setting.colour else PLAIN,
            color_depth=ColorDepth.DEPTH_8_BIT if self._setting.colour else ColorDepth.DEPTH_1_BIT,
            input=keyboard,
            output=self._output,
            include_default_pygments_style=False,
            erase_when_done=True,
        )
        made.ttimeoutlen = 0.1  # a key that begins with Esc comes in one piece; Esc alone need not wait longer
        made.timeoutlen = 0.3
        made.reflowing = reflows(self._setting.environment)
        made.key_processor.before_key_press += self._key_pressed
        return made

    async def run(self, talk: Talk) -> None:
        """Returns when one has left."""
        self.talk = talk
        beside = [asyncio.ensure_future(self._watch()), asyncio.ensure_future(self._leave(talk))]
        for task in beside:
            task.add_done_callback(self._ended_with)
        warming = asyncio.ensure_future(asyncio.to_thread(self._renderer.warm))
        self.finish()  # what is erased at the top of a screen, tmux moves into its history instead
        try:
            await self._app.run_async(set_exception_handler=False)
        except EOFError:  # the terminal is gone
            talk.leave()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, warming, return_exceptions=True)
            self._remember()
            self.finish()

    def _ended_with(self, task: "asyncio.Task[None]") -> None:
        """Better no screen than one that stands still."""
        if not task.cancelled() and (error := task.exception()) is not None and self._app.is_running:
            self._app.exit(exception=error)

    def _remember(self) -> None:
        """What was typed or pasted and not sent is there again tomorrow, with Up."""
        for text in (self._draft, self.buffer.text):
            if text.strip():
                self._keep(text)

    def _keep(self, text: str) -> None:
        self.history.append_string(text)
        self._tell_what_is_cut()

    def _tell_what_is_cut(self) -> None:
        if self.history.cut:
            self.say(f"· what was not sent is long. {self.history.cut}", Tone.DIM)

    def finish(self) -> None:
        """Prints what is left, without a prompt below it."""
        try:
            while self._above:
                self._output.write_raw(self._printed())
            self._output.flush()
        except OSError:  # the terminal is gone
            self._above.clear()

    # A screen.

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        tinted = tone if self._setting.colour else Tone.PLAIN
        self._print(lambda _: coloured(shown(text), tinted) + "\n", spaced=tone is Tone.BOLD)

    def answer(self, block: Block) -> None:
        self._print(lambda columns: self._renderer.render(block, columns), spaced=block.begins)

    def page(self, markdown: str) -> None:
        blocks = Blocks()
        for block in [*blocks.feed(markdown), *blocks.end()]:
            self.answer(block)

    def touch(self) -> None:
        self._changed = True

    def refill(self, text: str) -> None:
        """What is being typed stays, behind it. A long text comes back as a placeholder; one that comes when the prompt
        is gone is kept in the history."""
        if not self._app.is_running:
            self._keep(text)
            return
        if is_long(text):
            text = self.pastes.keep(text)
        if self.questions.armed:
            self._draft = "\n".join(filter(None, (text, self._draft)))
        else:
            self._fill("\n".join(filter(None, (text, self.buffer.text))))

    # Keys.

    @property
    def asked(self) -> bool:
        return self.questions.armed

    def sent(self) -> None:
        assert self.talk is not None
        text, asked = self.buffer.text, self.questions.armed
        if not text.strip() and not asked:
            return
        self._broke_at = 0.0
        self.buffer.reset(append_to_history=bool(text.strip()) and not asked)
        self.talk.submit(text)
        self.touch()

    def broke(self) -> None:
        assert self.talk is not None
        now = time.monotonic()
        again = now - self._broke_at < TWICE_S
        self._broke_at = now
        if again:
            self.ended()
        elif self.talk.interrupt():
            self.say("· interrupted; Ctrl-C again leaves", Tone.DIM)
        elif self.buffer.text:
            self.buffer.reset(append_to_history=True)
            self._tell_what_is_cut()
        else:
            self.say("· Ctrl-C again leaves", Tone.DIM)

    def ended(self) -> None:
        assert self.talk is not None
        self.talk.leave()

    def pasted(self, text: str) -> None:
        text, broken = repaired(text.replace("\r\n", "\n").replace("\r", "\n"))
        if broken and not self._told_of_bytes:
            self._told_of_bytes = True
            self.say("· what was pasted is not all UTF-8; the rest stands as �", Tone.DIM)
        self.buffer.insert_text(self.pastes.keep(text) if put_aside(text) else text)

    def declined(self) -> None:
        self.questions.decline()

    def _key_pressed(self, _: Any) -> None:
        self.questions.key_pressed()
        self._make_room()

    def _make_room(self) -> None:
        """What was being typed when a question took the input is put aside, and comes back."""
        if self.questions.armed:
            if not self._draft and self.buffer.text and not self._asking:
                self._draft = self.buffer.text
                self.buffer.reset()
            self._asking = True
        elif self._asking:
            self._asking = False
            draft, self._draft = self._draft, ""
            if draft:
                self._fill("\n".join(filter(None, (draft, self.buffer.text))))

    def _fill(self, text: str) -> None:
        self.buffer.document = Document(text, len(text))

    # What is drawn.

    def _prompt(self) -> str:
        return "? " if self.questions.armed else "› "

    def _status(self) -> StyleAndTextTuples:
        standing = self._looked()
        if standing is None or self.talk is None:
            return []
        doing = "asks you" if self.questions.open else self.narrator.doing
        line = status_line(standing, self._columns, doing=doing, queued=len(self.talk.queued))
        return [("class:status", line)]

    def _looked(self) -> Standing | None:
        at, standing = self._standing
        now = time.monotonic()
        if self.talk is not None and (standing is None or now - at > STANDING_S):
            standing = self.talk.partner.standing()
            self._standing = (now, standing)
        return standing

    @property
    def _columns(self) -> int:
        return max(20, self._output.get_size().columns)

    def _live(self) -> StyleAndTextTuples:
        columns, size = self._columns - 1, self._output.get_size()
        rows = max(2, min(LIVE_ROWS, size.rows // 2 - 2))
        lines: StyleAndTextTuples = [
            ("class:live", fitted(shown(line).replace("\n", " "), columns)) for line in self.narrator.live()[-4:]
        ]
        standing = self._standing[1]
        beside = standing.background[:3] if standing is not None else ()
        lines += [("class:live", fitted(shown(f"& {line}").replace("\n", " "), columns)) for line in beside]
        waiting = self.talk.queued if self.talk is not None else ()
        lines += [
            ("class:queued", fitted(shown(f"queued: {shortened(text, columns)}"), columns)) for text in waiting[:3]
        ]
        lines += [("class:question", row) for row in self._asked(columns, max(2, size.rows // 3))]
        if (partial := self.narrator.partial) and (left := rows - len(lines)) > 0:
            lines = [*(("", row) for row in tail(partial, columns, left)), *lines]
        return [*((one[0], one[1] + "\n") for one in lines[:-1]), *lines[-1:]]

    def _asked(self, columns: int, rows: int) -> list[str]:
        """The open question, as much of it as there is room for: all of it was printed. How to answer it, always."""
        if not self.questions.open:
            return []
        page, keys = (wrapped(shown(line), columns) for line in self.questions.panel())
        if len(page) > rows:
            page = [*page[: rows - 1], fitted("… all of it is above; v shows it again", columns)]
        return [*page, *keys]

    async def _watch(self) -> None:
        """A few times a second; what nobody announced (seconds that pass) once a second."""
        ticked = 0.0
        while True:
            await asyncio.sleep(REDRAW_S)
            now = time.monotonic()
            if self._changed or self._above or now - ticked > 1.0:
                self._changed, ticked = False, now
                self._make_room()
                if self.talk is not None:
                    self.talk.look()
                self._lines = self._live()
                self._draw()
                self._changed |= self.questions.open and not self.questions.armed
            elif self._shrunk:
                self._draw()

    @property
    def _shrunk(self) -> bool:
        """Whether less is to be drawn than was drawn last."""
        screen, size = self._app.renderer.last_rendered_screen, self._output.get_size()
        wanted = self._app.layout.container.preferred_height(size.columns, size.rows).preferred
        return screen is not None and screen.height > wanted

    def _draw(self) -> None:
        """With something to print above, or when less is to be drawn than before, all of it is drawn anew, lower
        down; else what has changed."""
        if not self._app.is_running or not (self._above or self._shrunk):
            self._app.invalidate()
            return
        self._app.draw(self._printed())  # `invalidate` would leave the prompt away until the loop is free

    def _print(self, made: Callable[[int], str], *, spaced: bool) -> None:
        """`spaced`: with an empty line above."""

        def with_space(columns: int) -> str:
            gap = "" if self._spaced or not spaced else "\n"
            self._spaced = False
            return gap + made(columns)

        self._above.append(with_space)

    def _printed(self) -> str:
        """What waits to be printed: the first of it in any case, and what can be rendered in a short time."""
        found: list[str] = []
        until = time.monotonic() + _PRINTING_S
        while self._above and (not found or time.monotonic() < until):
            found.append(self._above.popleft()(self._columns))
        return "".join(found).replace("\n", "\r\n")

    async def _leave(self, talk: Talk) -> None:
        await talk.left.wait()
        self._app.exit()
