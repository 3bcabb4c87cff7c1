"""The input at the bottom of the terminal: history, completion, key bindings and layout."""

import asyncio
import json
import os
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, Filter, has_completions, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from hummingbird.chat.attachments import PasteStore
from hummingbird.chat.commands import COMMANDS
from hummingbird.chat.partner import Partner
from hummingbird.chat.screen import (
    COMPLETION_ENTRIES,
    COMPLETION_S,
    COMPLETIONS,
    HISTORY_ENTRIES,
    HISTORY_ENTRY_CHARS,
    INPUT_ROWS,
    SESSIONS_PICKED,
)
from hummingbird.chat.status_text import ID_CHARS
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.text import shorten_line


class HistoryBuffer(Buffer):
    """A buffer whose Up key waits until the history is loaded.

    After each reset prompt_toolkit loads the history with the next repaint, and an earlier key would do nothing.
    """

    def history_backward(self, count: int = 1) -> None:
        self.load_history_if_not_yet_loaded()
        loading = self._load_history_task
        if loading is None or loading.done():
            super().history_backward(count)
        else:
            loading.add_done_callback(partial(self._go_back, count))

    def _go_back(self, count: int, loading: "asyncio.Future[None]") -> None:
        if not loading.cancelled():
            super().history_backward(count)


class ChatHistory(History):
    """The input history in a file that only its owner can read.

    The file has one line of JSON per entry, the newest last, appended in one write, so that two terminals can share it.
    An entry is a text, or a list of typed and pasted texts by turns: a paste is loaded as a paste again, with a new
    placeholder. If the file cannot be read or written, only the history of later sessions is lost.

    `mask` removes credentials from what is written; within this session, Up still gives the whole text. `pastes` are
    those of this conversation.
    """

    def __init__(self, path: Path | None, mask: Callable[[str], str], pastes: PasteStore | None = None) -> None:
        super().__init__()
        self._path = path
        self._mask = mask
        self._pastes = pastes or PasteStore()
        self.trouble = ""  # a sentence that says why the file cannot be used
        self.cut = ""  # a sentence that says how much of the last text was not stored

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries, newest first."""
        if self._path is None:
            return []
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            self.trouble = f"The history {self._path} cannot be read: {error.strerror}."
            return []
        kept = lines[-HISTORY_ENTRIES:]
        if len(lines) > 2 * HISTORY_ENTRIES:
            self._rewrite(kept)
        return [text for line in reversed(kept) if (text := self._decode_entry(line))]

    def store_string(self, string: str) -> None:
        self.cut = ""
        if self._path is None:
            return
        line = json.dumps(self._encode_entry(string)).encode() + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(self._path, os.O_APPEND, line)
        except OSError as error:
            self.trouble = f"The history {self._path} cannot be written: {error.strerror}."

    def _encode_entry(self, string: str) -> str | list[str]:
        """Return the entry as stored: masked, then cut, for half a credential would not be recognized.

        Very long texts are cut before masking too, so that keys do not wait for it.
        """
        parts, left, lost = [""], HISTORY_ENTRY_CHARS, 0
        for number, part in self._pastes.split_pastes(string):
            masked = self._mask(part[: 2 * HISTORY_ENTRY_CHARS])
            if (number > 0) == (len(parts) % 2 > 0):
                parts.append("")
            elif number:  # directly after another paste
                parts += ["", ""]
            parts[-1] += masked[:left]
            lost += max(0, len(masked) - left) + max(0, len(part) - 2 * HISTORY_ENTRY_CHARS)
            left = max(0, left - len(masked))
        if lost:
            self.cut = f"The history keeps {HISTORY_ENTRY_CHARS:,} characters of it; the last {lost:,} are not kept."
        return parts if len(parts) > 1 else parts[0]

    def _decode_entry(self, line: bytes) -> str:
        try:
            found = decode_lenient_json(line)
        except InvalidJson:
            return ""
        if not isinstance(found, list):
            return found if isinstance(found, str) else ""
        if not all(isinstance(part, str) for part in found):
            return ""
        return "".join(self._pastes.keep(part) if at % 2 and part else part for at, part in enumerate(found))

    def _rewrite(self, lines: list[bytes]) -> None:
        assert self._path is not None
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._write(beside, os.O_TRUNC, b"\n".join(lines) + b"\n")
            beside.replace(self._path)
        except OSError:
            beside.unlink(missing_ok=True)

    @staticmethod
    def _write(path: Path, how: int, content: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


_SKIPPED_FOLDERS = {".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv"}
_COMMAND = re.compile(r"/[A-Za-z-]*\Z")
_ARGUMENT = re.compile(r"/([A-Za-z-]+) +(\S*)\Z")
_WORDS_BY_COMMAND = {
    "compress": ("undo",),
    "undo": ("message", "files", "all", "edit"),
    "approve": ("once", "session", "always", "no"),
    "permissions": ("allow", "ask", "deny", "always", "remove"),
}
_FILE_COMMANDS = ("export", "save")
_VALUE_COMMANDS = ("model", "resume")  # the partner knows what they can be given
_ABOUT_CHARS = 80
_LISTED_S = 10.0  # that a list of models or sessions stays as it is
_MENTION_AT_CURSOR = re.compile(r'(?:^|(?<=\s))@("?)([^\s"]*)\Z')


def can_complete(document: Document) -> bool:
    """Return True when a command, what it takes, or an @path stands before the cursor. Called with each key."""
    before = document.text_before_cursor
    if found := _ARGUMENT.fullmatch(before):
        return found[1].lower() in {*_WORDS_BY_COMMAND, *_FILE_COMMANDS, *_VALUE_COMMANDS}
    return bool(_COMMAND.fullmatch(before) or _MENTION_AT_CURSOR.search(document.current_line_before_cursor))


class ChatCompleter(Completer):
    """Completes commands and what they take, with their help, and @paths below the start folder.

    `partner` returns the partner that knows models, sessions and the person's own commands; None before there is one.
    """

    def __init__(self, start: Path, partner: Callable[[], Partner | None] = lambda: None) -> None:
        self._start, self._partner = start, partner
        self._listed: tuple[str, float, list[tuple[str, str]]] = ("", 0.0, [])  # what was listed last, and when

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions; what takes long to find does not hold up the keys."""
        found, partner = _ARGUMENT.fullmatch(document.text_before_cursor), self._partner()
        if found and partner is not None and (name := found[1].lower()) in _VALUE_COMMANDS:
            with suppress(HummingbirdError):  # the command itself says what is wrong
                for value, about in await self._list_values(partner, name):
                    if found[2].casefold() in f"{value} {about}".casefold():
                        yield Completion(value, -len(found[2]), display_meta=about)
            return
        for one in await asyncio.to_thread(lambda: list(self.get_completions(document, complete_event))):
            yield one

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if _COMMAND.fullmatch(before):
            yield from _complete_command(before)
            yield from self._complete_own_command(before)
        elif found := _ARGUMENT.fullmatch(before):
            name = found[1].lower()
            words = [word for word in _WORDS_BY_COMMAND.get(name, ()) if word.startswith(found[2])]
            paths = complete_path(self._start, found[2]) if name in _FILE_COMMANDS else []
            yield from (Completion(one, -len(found[2])) for one in [*words, *paths])
        elif mention := _MENTION_AT_CURSOR.search(document.current_line_before_cursor):
            for path in complete_path(self._start, mention[2]):
                yield Completion(path, start_position=-len(mention[2]), display=path)

    async def _list_values(self, partner: Partner, command: str) -> list[tuple[str, str]]:
        """Return what a command can be given, each with a few words about it; not listed anew with each key."""
        what, at, values = self._listed
        if what == command and time.monotonic() - at < _LISTED_S:
            return values
        if command == "model":
            values = [(name, "") for name in await partner.model_names()]
        else:
            found = await partner.list_sessions(SESSIONS_PICKED)
            values = [(one.session_id[:ID_CHARS], shorten_line(one.title, _ABOUT_CHARS)) for one in found]
        self._listed = command, time.monotonic(), values
        return values

    def _complete_own_command(self, before: str) -> Iterator[Completion]:
        partner = self._partner()
        with suppress(HummingbirdError):  # one of them cannot be read
            for name, about in partner.own_commands().items() if partner else ():
                if f"/{name}".startswith(before.lower()) and name not in COMMANDS:
                    yield Completion(f"/{name} ", -len(before), display_meta=shorten_line(about, _ABOUT_CHARS))


def _complete_command(before: str) -> Iterator[Completion]:
    for one in COMMANDS.values():
        if f"/{one.name}".startswith(before.lower()):
            gap = " " if one.argument else ""
            yield Completion(f"/{one.name}{gap}", start_position=-len(before), display_meta=one.help)


def complete_path(start: Path, typed: str) -> list[str]:
    """Return paths that start with what was typed, then files further below whose names contain it.

    Examines at most COMPLETION_ENTRIES entries for at most COMPLETION_S.
    """
    folder, _, beginning = typed.rpartition("/")
    if folder.startswith("/") or ".." in folder.split("/"):
        return []
    prefix = f"{folder}/" if folder else ""
    here = [name for name in _list_folder(start / folder) if name.lower().startswith(beginning.lower())]
    found = [prefix + name for name in sorted(here)[:COMPLETIONS]]
    if beginning and len(found) < COMPLETIONS:
        known = set(found)
        found += [path for path in _search_below(start, prefix, beginning) if path not in known]
    return found[:COMPLETIONS]


def _list_folder(folder: Path) -> Iterator[str]:
    """Yield names, folders with a trailing slash; skip names that are not printable or that @path cannot express."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(COMPLETION_ENTRIES), entries, strict=False):
                if entry.name in _SKIPPED_FOLDERS or not entry.name.isprintable() or set(entry.name) & set(' "'):
                    continue
                yield entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
    except OSError:
        return


def _search_below(start: Path, prefix: str, part: str) -> Iterator[str]:
    until, left = time.monotonic() + COMPLETION_S, COMPLETION_ENTRIES
    folders = deque([prefix])
    found = 0
    while folders:
        folder = folders.popleft()
        for name in _list_folder(start / folder):
            left -= 1
            if left < 0 or time.monotonic() > until or found >= COMPLETIONS:
                return
            if part.lower() in name.lower():
                found += 1
                yield folder + name
            if name.endswith("/") and not name.startswith("."):
                folders.append(folder + name)


class KeyHandler(Protocol):
    """What the key bindings call; ChatTerminal implements it."""

    @property
    def buffer(self) -> Buffer: ...
    @property
    def is_question_open(self) -> bool:
        """True when a question accepts an answer now."""
        ...

    @property
    def is_menu_open(self) -> bool:
        """True when keys choose from the menu of a question, because nothing is typed."""
        ...

    def submit(self) -> None: ...
    def interrupt_or_leave(self) -> None:
        """Handle Ctrl-C."""
        ...

    @property
    def is_working(self) -> bool:
        """True while a run or a command goes on."""
        ...

    def interrupt_run(self) -> None:
        """Handle Esc while something goes on."""
        ...

    def leave(self) -> None:
        """Handle Ctrl-D."""
        ...

    def paste(self, text: str) -> None: ...
    def paste_image(self) -> None:
        """Handle Ctrl-V."""
        ...

    @property
    def has_queued(self) -> bool:
        """True while messages wait for the end of a run."""
        ...

    def take_back_queued(self) -> None:
        """Handle Up in an empty input while messages wait."""
        ...

    def stash(self) -> None:
        """Handle Ctrl-S."""
        ...

    def choose_from(self, command: str) -> None:
        """Run a command that shows a list, without losing what is typed."""
        ...

    def decline(self) -> None: ...
    @property
    def is_picker_open(self) -> bool: ...
    def move_in_picker(self, step: int) -> None: ...
    def close_picker(self, *, choose: bool) -> None: ...
    def show_newest_result(self) -> None:
        """Handle Ctrl-O."""
        ...

    def cycle_mode(self) -> None:
        """Handle Shift-Tab."""
        ...

    def press_menu_key(self, key: str) -> None: ...
    def move_selection(self, step: int) -> None: ...
    def choose_selected(self) -> None: ...


def key_bindings(typed: KeyHandler) -> KeyBindings:
    keys = KeyBindings()
    here = has_focus(typed.buffer)
    at_question = Condition(lambda: typed.is_question_open or typed.is_picker_open)

    @keys.add("enter", filter=here)
    def _send(_: KeyPressEvent) -> None:
        state = typed.buffer.complete_state
        if state and state.current_completion:
            typed.buffer.complete_state = None
        elif typed.buffer.document.text_before_cursor.endswith("\\"):
            typed.buffer.delete_before_cursor()
            typed.buffer.newline(copy_margin=False)
        else:
            typed.submit()

    @keys.add("escape", "enter", filter=here)
    @keys.add("c-j", filter=here)
    def _new_line(_: KeyPressEvent) -> None:
        typed.buffer.newline(copy_margin=False)

    @keys.add("c-c")
    @keys.add(Keys.SIGINT)
    def _break(_: KeyPressEvent) -> None:
        typed.interrupt_or_leave()

    @keys.add("c-d", filter=here & Condition(lambda: not typed.buffer.text))
    def _end(_: KeyPressEvent) -> None:
        typed.leave()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add(Keys.BracketedPaste, filter=here)
    def _paste(event: KeyPressEvent) -> None:
        typed.paste(event.data)

    @keys.add("c-v", filter=here)
    def _paste_image(_: KeyPressEvent) -> None:
        typed.paste_image()

    @keys.add("up", filter=here & ~at_question & Condition(lambda: not typed.buffer.text and typed.has_queued))
    def _edit_queued(_: KeyPressEvent) -> None:
        typed.take_back_queued()

    @keys.add("c-s", filter=here & ~at_question)
    def _stash(_: KeyPressEvent) -> None:
        typed.stash()

    @keys.add("escape", "p", filter=here & ~at_question)
    def _choose_model(_: KeyPressEvent) -> None:
        typed.choose_from("/model")

    @keys.add("escape", "escape", filter=here & ~at_question & ~has_completions & ~Condition(lambda: typed.is_working))
    def _rewind(_: KeyPressEvent) -> None:
        if typed.buffer.text:
            typed.buffer.reset(append_to_history=True)
        else:
            typed.choose_from("/rewind")

    @keys.add("c-x", "c-e", filter=here)
    @keys.add("c-g", filter=here)
    def _edit(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()

    @keys.add("c-o")
    def _expand(_: KeyPressEvent) -> None:
        typed.show_newest_result()

    @keys.add("s-tab", filter=here & ~has_completions)
    def _cycle(_: KeyPressEvent) -> None:
        typed.cycle_mode()

    @keys.add("escape", filter=here & ~has_completions & Condition(lambda: typed.is_working))
    def _interrupt(_: KeyPressEvent) -> None:
        typed.interrupt_run()

    @keys.add("escape", filter=here & Condition(lambda: typed.is_question_open))
    def _decline(_: KeyPressEvent) -> None:
        typed.decline()

    _add_picker_keys(keys, typed, here & Condition(lambda: typed.is_picker_open))
    _add_menu_keys(keys, typed, here & Condition(lambda: typed.is_menu_open))
    return keys


def _add_picker_keys(keys: KeyBindings, typed: KeyHandler, open_picker: Filter) -> None:
    """Let arrows move in an open list; what is typed goes to the input, which filters the list."""

    for key, step in (("up", -1), ("down", 1), ("pageup", -10), ("pagedown", 10)):
        keys.add(key, filter=open_picker)(partial(_move_in_picker, typed, step))

    @keys.add("enter", filter=open_picker)
    def _choose(_: KeyPressEvent) -> None:
        typed.close_picker(choose=True)

    @keys.add("escape", filter=open_picker)
    @keys.add("c-c", filter=open_picker)
    def _cancel(_: KeyPressEvent) -> None:
        typed.close_picker(choose=False)


def _move_in_picker(typed: KeyHandler, step: int, _: KeyPressEvent) -> None:
    typed.move_in_picker(step)


def _add_menu_keys(keys: KeyBindings, typed: KeyHandler, open_menu: Filter) -> None:
    """Let numbers, letters and arrows choose from the menu of a question; they come before all other bindings."""

    @keys.add("up", filter=open_menu)
    def _up(_: KeyPressEvent) -> None:
        typed.move_selection(-1)

    @keys.add("down", filter=open_menu)
    def _down(_: KeyPressEvent) -> None:
        typed.move_selection(1)

    @keys.add("enter", filter=open_menu)
    def _choose(_: KeyPressEvent) -> None:
        typed.choose_selected()

    @keys.add(Keys.Any, filter=open_menu)
    def _press(event: KeyPressEvent) -> None:
        typed.press_menu_key(event.data)


TextSource = Callable[[], StyleAndTextTuples]
_MENU_ROWS = 8

PLAIN_STYLE = Style([])
COLOURED_STYLE = Style.from_dict(
    {
        "live": "fg:ansigray",
        "queued": "fg:ansiyellow",
        "question": "bold fg:ansiyellow",
        "choice": "",
        "chosen": "bold fg:ansicyan",
        "prompt": "bold fg:ansigreen",
        "status": "fg:ansibrightblack",
    }
)


def build_layout(buffer: Buffer, live: TextSource, prompt: Callable[[], str], status: TextSource) -> Layout:
    """Build the lower end of the terminal: live text (as high as it has lines), input, search bar and status line."""
    search = SearchToolbar()
    control = BufferControl(buffer, search_buffer_control=search.control, preview_search=True)

    def prefix(line: int, wraps: int) -> StyleAndTextTuples:
        return [("class:prompt", prompt() if not line and not wraps else "  ")]

    def height() -> Dimension:
        menu = buffer.complete_state is not None and buffer.complete_state.completions
        return Dimension(min=_MENU_ROWS + 1 if menu else 1, max=INPUT_ROWS)

    typed = Window(control, height=height, wrap_lines=True, dont_extend_height=True, get_line_prefix=prefix)
    going_on = Window(FormattedTextControl(live), dont_extend_height=True)
    rows = HSplit(
        [
            Window(height=Dimension(min=0, preferred=1)),  # a gap that fills the space when the rest becomes lower
            ConditionalContainer(going_on, Condition(lambda: bool(live()))),
            typed,
            search,
            Window(FormattedTextControl(status), height=1, dont_extend_height=True),
        ]
    )
    menu = Float(CompletionsMenu(max_height=_MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
    return Layout(FloatContainer(rows, [menu]), focused_element=typed)
