"""The terminal interface of the chat: scrollback on top, live text below it, and a prompt that is always there.

Keys are echoed at once; streaming text is redrawn a few times a second. A Markdown block is rendered once, when it is
complete, and then printed into the scrollback.
"""

import asyncio
import base64
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.output import ColorDepth

from hummingbird.chat.attachments import (
    MessageComposer,
    PasteStore,
    is_long_paste,
    needs_placeholder,
    read_dropped_image,
    repair_utf8,
)
from hummingbird.chat.commands import parse_command
from hummingbird.chat.conversation import TerminalConversation
from hummingbird.chat.garbage_collection import freeze_garbage_collector
from hummingbird.chat.input_area import (
    COLOURED_STYLE,
    PLAIN_STYLE,
    ChatCompleter,
    ChatHistory,
    HistoryBuffer,
    build_layout,
    can_complete,
    key_bindings,
)
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.partner import ChatStatus, Partner
from hummingbird.chat.questions import QuestionQueue
from hummingbird.chat.screen import (
    LETTER_ALONE_S,
    LIVE_ROWS,
    LIVE_TODOS,
    REDRAW_S,
    STANDING_S,
    TWICE_S,
    BlockSplitter,
    MarkdownBlock,
    Screen,
    Tone,
    colour_lines,
    fit_line,
    last_rows,
    printable_text,
    wrap_line,
    wrap_words,
)
from hummingbird.chat.status_text import ID_CHARS, build_status_line, todo_page
from hummingbird.chat.terminal_io import (
    BufferedOutput,
    ResizingApplication,
    create_keyboard,
    create_output,
    read_clipboard_image,
    terminal_reflows,
)
from hummingbird.core.errors import UsageError
from hummingbird.core.messages import make_image
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.protocols.interaction import Clarifier, PermissionAsker
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.text import shorten_line

if TYPE_CHECKING:
    from hummingbird.chat.rendering import BlockRenderer

_PRINTING_S = 0.02  # longest time to print at once, so that keys are handled in between


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """Settings of the terminal; `mask` removes credentials from the history, and `history` None stores none.

    `resumed`: show how the session that is continued ended. `first` is sent as if it had been typed.
    The bell rings for a person who has not typed for `bell_after_s`; None: never.
    """

    start: Path
    environment: Mapping[str, str]
    mask: Callable[[str], str] = str
    history: Path | None = None
    colour: bool = True
    verbose: bool = False
    bell_after_s: float | None = None
    greeting: str = ""
    resumed: bool = False
    first: str = ""


class ChatTerminal:
    """The terminal as a Screen, and the handler of its keys (KeyHandler)."""

    def __init__(self, setting: TerminalSettings, keyboard: Input, output: BufferedOutput) -> None:
        self._settings = setting
        self._output = output
        self._print_queue: deque[Callable[[int], str]] = deque()
        self._after_empty_line = True  # True at the start and after an empty line
        self._changed = True
        self._lines: StyleAndTextTuples = []
        self._draft = ""  # the input while a question is being answered
        self._stashed = ""  # input that was put aside
        self._asking = False
        self._menu_letter: tuple[str, asyncio.TimerHandle] | None = None
        self._interrupted_at = 0.0
        self._key_at = time.monotonic()
        self._waits_for = "message"
        self._status_cache: tuple[float, ChatStatus | None] = (0.0, None)
        self._told_of_invalid_bytes = False
        self._pasting: set[asyncio.Future[None]] = set()
        self.pastes = PasteStore()
        self.history = ChatHistory(setting.history, setting.mask, self.pastes)
        self.narrator = Narrator(self)
        self.narrator.verbose = setting.verbose
        self.questions = QuestionQueue(self)
        self.conversation: TerminalConversation | None = None
        self.buffer = HistoryBuffer(
            multiline=True,
            history=self.history,
            completer=ChatCompleter(setting.start, lambda: self.conversation.partner if self.conversation else None),
            complete_while_typing=Condition(lambda: can_complete(self.buffer.document)),
        )
        self.buffer.on_text_insert += self._on_text_insert
        self._app = self._create_application(keyboard)

    @cached_property
    def _renderer(self) -> "BlockRenderer":
        from hummingbird.chat.rendering import BlockRenderer  # noqa: PLC0415 - 40 ms, after the prompt is there

        return BlockRenderer(colour=self._settings.colour)

    def _warm_renderer(self) -> None:
        self._renderer.warm()

    def _create_application(self, keyboard: Input) -> ResizingApplication:
        made = ResizingApplication(
            layout=build_layout(self.buffer, lambda: self._lines, self._prompt, self._status_text),
            key_bindings=key_bindings(self),
            style=COLOURED_STYLE if self._settings.colour else PLAIN_STYLE,
            color_depth=ColorDepth.DEPTH_8_BIT if self._settings.colour else ColorDepth.DEPTH_1_BIT,
            input=keyboard,
            output=self._output,
            include_default_pygments_style=False,
            erase_when_done=True,
        )
        made.ttimeoutlen = (
            0.1  # seconds; a key sequence that starts with Esc arrives at once, so Esc alone waits no longer
        )
        made.timeoutlen = 0.3
        made.reflows_lines = terminal_reflows(self._settings.environment)
        made.key_processor.before_key_press += self._on_key_press
        return made

    async def run(self, talk: TerminalConversation) -> None:
        """Show the conversation until the person leaves."""
        self.conversation = talk
        beside = [asyncio.ensure_future(self._redraw_loop()), asyncio.ensure_future(self._exit_when_left(talk))]
        for task in beside:
            task.add_done_callback(self._exit_on_error)
        warming = asyncio.ensure_future(asyncio.to_thread(self._warm_renderer))
        self.print_remaining()  # before the first frame: tmux keeps in its history what is erased at the top
        try:
            await self._app.run_async(set_exception_handler=False)
        except EOFError:  # the terminal is gone
            talk.leave()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, warming, return_exceptions=True)
            self._store_unsent_text()
            self.print_remaining()

    def _exit_on_error(self, task: "asyncio.Task[None]") -> None:
        """End the application when a background task fails: otherwise the screen would freeze."""
        if not task.cancelled() and (error := task.exception()) is not None and self._app.is_running:
            self._app.exit(exception=error)

    def _store_unsent_text(self) -> None:
        """Store text that was not sent in the history, so that Up finds it next time."""
        for text in (self._stashed, self._draft, self.buffer.text):
            if text.strip():
                self._store_in_history(text)

    def _store_in_history(self, text: str) -> None:
        self.history.append_string(text)
        self._show_truncation_notice()

    def _show_truncation_notice(self) -> None:
        if self.history.cut:
            self.say(f"· the text that was not sent is long. {self.history.cut}", Tone.DIM)

    def print_remaining(self) -> None:
        """Print everything that waits, without a prompt below it."""
        try:
            while self._print_queue:
                self._output.write_raw(self._take_printable())
            self._output.flush()
        except OSError:  # the terminal is gone
            self._print_queue.clear()

    # Screen

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, verbatim: bool = False) -> None:
        tinted = tone if self._settings.colour else Tone.PLAIN

        def render(columns: int) -> str:
            lines = printable_text(text).split("\n")
            rows = lines if verbatim else [row for line in lines for row in wrap_words(line, columns)]
            return colour_lines("\n".join(rows), tinted) + "\n"

        self._queue_print(render, spaced=tone is Tone.BOLD)

    def show_block(self, block: MarkdownBlock) -> None:
        self._queue_print(lambda columns: self._renderer.render(block, columns), spaced=block.starts_paragraph)

    def show_page(self, markdown: str) -> None:
        blocks = BlockSplitter()
        for block in [*blocks.feed(markdown), *blocks.end()]:
            self.show_block(block)

    def request_redraw(self) -> None:
        self._changed = True

    def restore_input(self, text: str) -> None:
        """Put a text back into the input, before what is being typed.

        A long text comes back as a placeholder. When the prompt is gone, the text is stored in the history.
        """
        if not self._app.is_running:
            self._store_in_history(text)
            return
        if is_long_paste(text):
            text = self.pastes.keep(text)
        if self.questions.is_armed:
            self._draft = "\n".join(filter(None, (text, self._draft)))
        else:
            self._set_input("\n".join(filter(None, (text, self.buffer.text))))

    def copy(self, text: str) -> None:
        """Ask the terminal to put the text into the clipboard (OSC 52); terminals that cannot do that ignore it."""
        encoded = base64.b64encode(text.encode("utf-8", "replace")).decode()
        self._output.write_raw(f"\x1b]52;c;{encoded}\x07")
        self._output.flush()
        self.say(f"· {len(text):,} characters are in the clipboard, if your terminal allows that", Tone.DIM)

    # KeyHandler

    @property
    def is_question_open(self) -> bool:
        return self.questions.is_armed

    @property
    def is_menu_open(self) -> bool:
        return not self.buffer.text and self.questions.is_menu_open

    def press_menu_key(self, key: str) -> None:
        """Choose from the menu of a question, or begin an answer in words.

        A letter chooses once no other letter follows it: it may be the first one of a sentence ("you should not").
        """
        if key == "/" and self._menu_letter is None:
            self.buffer.insert_text(key)  # a command
        elif self._menu_letter is not None or not self.questions.is_menu_key(key):
            if key.isprintable() and self.questions.takes_words:
                self.questions.ask_for_words()
                self.buffer.insert_text(self._take_menu_letter() + key)
        elif key.isdigit() or not self.questions.takes_words:
            self._press(key)
        else:
            waiting = asyncio.get_running_loop().call_later(LETTER_ALONE_S, self.choose_selected)
            self._menu_letter = (key, waiting)

    def _take_menu_letter(self) -> str:
        """Return the letter that waits for another one, if there is one; it no longer chooses anything."""
        letter, waiting = self._menu_letter or ("", None)
        self._menu_letter = None
        if waiting is not None:
            waiting.cancel()
        return letter

    def _press(self, key: str) -> None:
        self.questions.press(key)
        self._swap_draft()
        self.request_redraw()

    def move_selection(self, step: int) -> None:
        self._take_menu_letter()
        self.questions.move_selection(step)

    def choose_selected(self) -> None:
        """Choose the selected line, or that of the letter that was pressed just now."""
        letter = self._take_menu_letter()
        if not self.is_menu_open:  # the question was withdrawn meanwhile
            return
        if letter:
            self._press(letter)
        else:
            self.questions.choose_selected()
            self._swap_draft()

    @property
    def is_picker_open(self) -> bool:
        return self.questions.picker is not None

    def move_in_picker(self, step: int) -> None:
        if self.questions.picker is not None:
            self.questions.picker.move(step, self.buffer.text)
            self.request_redraw()

    def close_picker(self, *, choose: bool) -> None:
        picker = self.questions.picker
        if picker is None:
            return
        if choose:
            picker.choose(self.buffer.text)
        else:
            picker.cancel()
        if picker.result.done():
            self.buffer.reset()
            self._restore_stash()
            self.request_redraw()

    def show_newest_result(self) -> None:
        assert self.conversation is not None
        self.conversation.show_newest_result()

    def cycle_mode(self) -> None:
        """Go on to the next mode; at a question about an edit, accept it and all that follow."""
        assert self.conversation is not None
        if self.questions.accept_edits():
            self._swap_draft()
        else:
            modes = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
            standing = self.conversation.partner.status().mode
            self.conversation.partner.switch_mode(modes[(modes.index(standing) + 1) % len(modes)])
        self._status_cache = (0.0, None)
        self.request_redraw()

    def submit(self) -> None:
        assert self.conversation is not None
        text, asked = self.buffer.text, self.questions.is_armed
        if not text.strip() and not asked:
            return
        self._interrupted_at = 0.0
        self.buffer.reset(append_to_history=bool(text.strip()) and not asked)
        self.conversation.submit(text)
        if not asked and parse_command(text) is None:
            self._restore_stash()
        self.request_redraw()

    @property
    def has_queued(self) -> bool:
        return self.conversation is not None and bool(self.conversation.queued_texts)

    def take_back_queued(self) -> None:
        assert self.conversation is not None
        self.conversation.return_queued()

    def stash(self) -> None:
        """Put what is typed aside until the next message was sent, or take it back."""
        if self.buffer.text.strip():
            self._stashed = "\n".join(filter(None, (self._stashed, self.buffer.text)))
            self.buffer.reset()
            self.say("· put aside until the next message was sent; Ctrl-S takes it back", Tone.DIM)
        else:
            self._restore_stash()

    def _restore_stash(self) -> None:
        stashed, self._stashed = self._stashed, ""
        if stashed:
            self._set_input("\n".join(filter(None, (stashed, self.buffer.text))))

    def choose_from(self, command: str) -> None:
        assert self.conversation is not None
        self._stashed = "\n".join(filter(None, (self._stashed, self.buffer.text)))
        self.buffer.reset()
        self.conversation.submit(command)

    def interrupt_or_leave(self) -> None:
        assert self.conversation is not None
        now = time.monotonic()
        again = now - self._interrupted_at < TWICE_S
        self._interrupted_at = now
        if again:
            self.leave()
        elif self.conversation.interrupt():
            self.narrator.show_interrupting()
        elif self.buffer.text:
            self.buffer.reset(append_to_history=True)
            self._show_truncation_notice()
        else:
            self.say("· Ctrl-C again leaves", Tone.DIM)

    def _on_text_insert(self, _: Any) -> None:
        self._interrupted_at = 0.0  # a Ctrl-C after this is a first one

    def interrupt_run(self) -> None:
        assert self.conversation is not None
        if self.conversation.interrupt():
            self.narrator.show_interrupting()

    @property
    def is_working(self) -> bool:
        return self.conversation is not None and self.conversation.is_working

    def leave(self) -> None:
        assert self.conversation is not None
        self.conversation.leave()

    def paste(self, text: str) -> None:
        text, broken = repair_utf8(text.replace("\r\n", "\n").replace("\r", "\n"))
        if broken and not self._told_of_invalid_bytes:
            self._told_of_invalid_bytes = True
            self.say("· the pasted text is not all UTF-8; � stands for the rest", Tone.DIM)
        try:
            image = read_dropped_image(text)
        except UsageError as error:
            self.say(f"· {error}", Tone.DIM)
            image = None
        if image is not None:
            self.buffer.insert_text(self.pastes.keep_image(image))
        else:
            self.buffer.insert_text(self.pastes.keep(text) if needs_placeholder(text) else text)

    def paste_image(self) -> None:
        """Handle Ctrl-V: terminals paste text by themselves, so the image in the clipboard is meant."""
        task = asyncio.ensure_future(self._paste_image())
        self._pasting.add(task)
        task.add_done_callback(self._pasting.discard)

    async def _paste_image(self) -> None:
        try:
            image = make_image("pasted.png", await asyncio.to_thread(read_clipboard_image, self._settings.environment))
        except UsageError as error:
            self.say(f"· {error}", Tone.DIM)
        else:
            self.buffer.insert_text(self.pastes.keep_image(image))
        self.request_redraw()

    def decline(self) -> None:
        """Handle Esc at a question; to decline a permission also ends the run, so that one can say what to do."""
        self._take_menu_letter()
        if self.questions.decline() and self.conversation is not None:
            self.conversation.interrupt()
        self._swap_draft()

    def _on_key_press(self, _: Any) -> None:
        self._key_at = time.monotonic()
        self.questions.note_key_press()
        self._swap_draft()

    def _swap_draft(self) -> None:
        """Put the input aside while a question is being answered, and restore it afterwards."""
        if self.questions.is_armed:
            if not self._draft and self.buffer.text and not self._asking:
                self._draft = self.buffer.text
                self.buffer.reset()
            self._asking = True
        elif self._asking:
            self._asking = False
            draft, self._draft = self._draft, ""
            if draft:
                self._set_input("\n".join(filter(None, (draft, self.buffer.text))))

    def _set_input(self, text: str) -> None:
        self.buffer.document = Document(text, len(text))

    # Drawing

    def _prompt(self) -> str:
        return "? " if self.questions.is_armed else "› "

    def _status_text(self) -> StyleAndTextTuples:
        standing = self._current_status()
        if standing is None or self.conversation is None:
            return []
        doing = "asks you" if self.questions.is_open else self.narrator.activity
        line = build_status_line(standing, self._columns, doing=doing, queued=len(self.conversation.queued_texts))
        return [("class:status", line)]

    def _current_status(self) -> ChatStatus | None:
        at, standing = self._status_cache
        now = time.monotonic()
        if self.conversation is not None and (standing is None or now - at > STANDING_S):
            standing = self.conversation.partner.status()
            self._status_cache = (now, standing)
        return standing

    @property
    def _columns(self) -> int:
        return max(20, self._output.get_size().columns)

    def _live_lines(self) -> StyleAndTextTuples:
        columns, size = self._columns - 1, self._output.get_size()
        rows = max(2, min(LIVE_ROWS, size.rows // 2 - 2))
        lines: StyleAndTextTuples = [
            ("class:live", fit_line(printable_text(line).replace("\n", " "), columns))
            for line in self.narrator.activity_lines()[-rows:]
        ]
        if self.conversation is not None and (todos := self.conversation.live_todos):
            shown = todo_page(todos).split("\n")[:LIVE_TODOS]
            lines += [("class:live", fit_line(printable_text(line), columns)) for line in shown]
        standing = self._status_cache[1]
        beside = standing.background[:3] if standing is not None else ()
        lines += [("class:live", fit_line(printable_text(f"& {line}").replace("\n", " "), columns)) for line in beside]
        waiting = self.conversation.queued_texts if self.conversation is not None else ()
        lines += [
            ("class:queued", fit_line(printable_text(f"queued: {shorten_line(text, columns)}"), columns))
            for text in waiting[:3]
        ]
        if self.questions.picker is not None:
            lines += self.questions.picker.lines(self.buffer.text, columns, max(4, size.rows // 2))
        else:
            lines += self._question_rows(columns, max(2, size.rows // 3))
        if (partial := self.narrator.partial_text) and (left := rows - len(lines)) > 0:
            lines = [*(("", row) for row in last_rows(partial, columns, left)), *lines]
        return [*((one[0], one[1] + "\n") for one in lines[:-1]), *lines[-1:]]

    def _question_rows(self, columns: int, rows: int) -> StyleAndTextTuples:
        """Return as much of the open question's title as fits (all of it was printed above), and its menu."""
        panel = self.questions.panel()
        if panel is None:
            return []
        title = wrap_line(printable_text(panel.title).replace("\n", " "), columns)
        if len(title) > rows:
            title = [*title[: rows - 1], fit_line("… all of it is above; v shows it again", columns)]
        lines: StyleAndTextTuples = [("class:question", row) for row in title]
        for at, row in enumerate(panel.rows):
            is_chosen = at == panel.selected
            mark = "❯ " if is_chosen else "  "
            first, *more = wrap_words(printable_text(row).replace("\n", " "), columns - 2)
            style = "class:chosen" if is_chosen else "class:choice"
            lines += [(style, mark + first), *((style, f"  {text}") for text in more)]
        return lines

    async def _redraw_loop(self) -> None:
        """Redraw changes a few times a second, and everything once a second for the elapsed times."""
        ticked = 0.0
        while True:
            await asyncio.sleep(REDRAW_S)
            now = time.monotonic()
            if self._changed or self._print_queue or now - ticked > 1.0:
                self._changed, ticked = False, now
                self._swap_draft()
                if self.conversation is not None:
                    self.conversation.update_todos()
                self._lines = self._live_lines()
                self._draw()
                self._ring_when_needed(now)
                self._changed |= self.questions.is_open and not self.questions.is_armed
            elif self._has_shrunk:
                self._draw()

    def _ring_when_needed(self, now: float) -> None:
        """Ring when a question or the end of the work begins to wait for a person who has not typed for a while."""
        waits_for = "answer" if self.questions.is_open else "" if self.is_working else "message"
        after_s = self._settings.bell_after_s
        if waits_for not in {"", self._waits_for} and after_s is not None and now - self._key_at > after_s:
            self._output.write_raw("\a")
            self._output.flush()
        self._waits_for = waits_for

    @property
    def _has_shrunk(self) -> bool:
        """True when the next frame is lower than the last one."""
        screen, size = self._app.renderer.last_rendered_screen, self._output.get_size()
        wanted = self._app.layout.container.preferred_height(size.columns, size.rows).preferred
        return screen is not None and screen.height > wanted

    def _draw(self) -> None:
        """Draw the frame: completely, when there is text to print above or the frame has shrunk, else only changes."""
        if not self._app.is_running or not (self._print_queue or self._has_shrunk):
            self._app.invalidate()
            return
        self._app.draw(self._take_printable())  # `invalidate` would hide the prompt until the loop is free

    def _queue_print(self, made: Callable[[int], str], *, spaced: bool) -> None:
        """Queue a text for printing; `spaced` puts an empty line above it."""

        def with_space(columns: int) -> str:
            gap = "" if self._after_empty_line or not spaced else "\n"
            self._after_empty_line = False
            return gap + made(columns)

        self._print_queue.append(with_space)

    def _take_printable(self) -> str:
        """Render the first queued text, and more of them while _PRINTING_S has not passed."""
        found: list[str] = []
        until = time.monotonic() + _PRINTING_S
        while self._print_queue and (not found or time.monotonic() < until):
            found.append(self._print_queue.popleft()(self._columns))
        return "".join(found).replace("\n", "\r\n")

    async def _exit_when_left(self, talk: TerminalConversation) -> None:
        await talk.left.wait()
        self._app.exit()


class ScreenLogHandler(logging.Handler):
    """Shows log warnings in the conversation: written directly to the terminal, they would break the prompt.

    Any thread may log; the event loop's thread shows the line.
    """

    def __init__(self, screen: Screen, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        text = f"! {record.getMessage()}"
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._screen.say, text, Tone.DIM)


@contextmanager
def log_to_screen(screen: Screen) -> Iterator[None]:
    lines, root = ScreenLogHandler(screen, asyncio.get_running_loop()), logging.getLogger()
    root.addHandler(lines)
    try:
        yield
    finally:
        root.removeHandler(lines)


PartnerFactory: TypeAlias = Callable[[RunObserver, PermissionAsker, Clarifier], Awaitable[Partner]]


def has_terminal(environment: Mapping[str, str]) -> bool:
    """Return True for a terminal that can move its cursor; otherwise `headless` reads line by line."""
    streams = (sys.stdin, sys.stdout)
    return environment.get("TERM") != "dumb" and all(one is not None and one.isatty() for one in streams)


async def run_terminal_chat(partner_of: PartnerFactory, setting: TerminalSettings) -> int:
    """Chat in the terminal until the person leaves, and return the exit code.

    Raises HummingbirdError if the partner cannot be created.
    """
    terminal = ChatTerminal(setting, create_keyboard(), create_output(setting.environment))
    partner = await partner_of(terminal.narrator, terminal.questions, terminal.questions)
    freeze_garbage_collector()
    composer = MessageComposer(setting.start, partner.attach, terminal.pastes, attach_image=partner.attach_image)
    talk = TerminalConversation(partner, terminal, terminal.narrator, terminal.questions, composer)
    with _leave_on_signals(talk) as received:  # until everything is closed: closing a window may send the signal twice
        try:
            if setting.greeting:
                terminal.say(setting.greeting, Tone.DIM)
            talk.begin(resumed=setting.resumed, first=setting.first)
            with log_to_screen(terminal):
                await terminal.run(talk)
        finally:
            await talk.close()
    left = partner.status()
    if left.is_kept:
        terminal.say(f"The session is kept: hummingbird chat --resume {left.session_id[:ID_CHARS]}", Tone.DIM)
    terminal.print_remaining()
    return 128 + received[0] if received else 0


@contextmanager
def _leave_on_signals(talk: TerminalConversation) -> Iterator[list[int]]:
    """Leave the chat when the window is closed or the process is terminated, so that no background process remains."""
    loop, received = asyncio.get_running_loop(), list[int]()
    signals = (signal.SIGTERM, signal.SIGHUP)

    def leave(number: int) -> None:
        received.append(number)
        talk.leave()

    for one in signals:
        loop.add_signal_handler(one, leave, one)
    try:
        yield received
    finally:
        for one in signals:
            with suppress(ValueError):
                loop.remove_signal_handler(one)
