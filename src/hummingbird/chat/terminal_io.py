"""Input and output of the terminal: prompt_toolkit's classes, adapted to large pastes and printing above the prompt."""

import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from hummingbird.core.errors import UsageError

_CLIPBOARD_S = 5.0
_PASTE_END = "\x1b[201~"
_CHUNK_BYTES = 64 * 1024
_REFLOWING_TERMINALS = {"iTerm.app", "Apple_Terminal", "WezTerm", "vscode", "ghostty", "tmux"}


class PasteParser(Vt100Parser):
    """A parser that scans each piece of a paste once.

    prompt_toolkit's parser scans the whole paste again with each piece, which is far too slow for ten megabytes.
    """

    _pieces: list[str]
    _seam = ""  # the end of the last piece, where the end mark may have started

    def reset(self, request: bool = False) -> None:
        self._pieces = []
        super().reset(request)

    def feed(self, data: str) -> None:
        if not self._in_bracketed_paste:
            super().feed(data)
            return
        self._pieces.append(data)
        seam = self._seam + data
        if _PASTE_END in seam:
            self._end_paste(len(data))
        else:
            self._seam = seam[1 - len(_PASTE_END) :]

    def _end_paste(self, last: int) -> None:
        whole = "".join(self._pieces)
        at = whole.index(_PASTE_END, max(0, len(whole) - last - len(_PASTE_END)))
        self._pieces, self._seam = [], ""
        self._in_bracketed_paste = False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, whole[:at]))
        self.feed(whole[at + len(_PASTE_END) :])


class LargeChunkReader(PosixStdinReader):
    """Reads 64 KiB at a time instead of 1 KiB, for large pastes.

    With `typed_ahead`, the next text was typed before the terminal was in raw mode, which turned each Enter into a line
    feed. They are turned back into Enter, so that the lines stay separate messages.
    """

    typed_ahead = False

    def read(self, count: int = _CHUNK_BYTES) -> str:
        text = super().read(count)
        if self.typed_ahead:
            self.typed_ahead = False
            return text.replace("\n", "\r")
        return text


class KeyboardInput(Vt100Input):
    """A keyboard that notices what was typed before it was listened to."""

    @contextmanager
    def raw_mode(self) -> Iterator[None]:
        if isinstance(self.stdin_reader, LargeChunkReader):
            self.stdin_reader.typed_ahead = bool(select.select([self.fileno()], [], [], 0)[0])
        with super().raw_mode():
            yield


_SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")  # as terminals send it that tell it from Enter


def create_keyboard() -> Input:
    for sequence in _SHIFT_ENTER:
        ANSI_SEQUENCES[sequence] = Keys.ControlJ  # a new line
    made = KeyboardInput(sys.stdin)
    made.stdin_reader = LargeChunkReader(sys.stdin.fileno(), encoding=sys.stdin.encoding)
    made.vt100_parser = PasteParser(made.vt100_parser.feed_key_callback)
    return made


class BufferedOutput(Vt100_Output):
    """An output that can hold back flushes, so that erasing and redrawing are one write.

    Nothing flickers then, and bracketed paste is never off in between.
    """

    _held = False

    @contextmanager
    def hold(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.flush()

    def discard(self) -> None:
        """Discard what is not written yet."""
        self._buffer = []

    def flush(self) -> None:
        if not self._held:
            super().flush()

    def disable_bracketed_paste(self) -> None:
        if not self._held:
            super().disable_bracketed_paste()


def create_output(environment: Mapping[str, str]) -> BufferedOutput:
    """Create the output, without cursor position requests: their replies would arrive between the keys."""
    made = BufferedOutput.from_pty(sys.stdout, term=environment.get("TERM"))
    assert isinstance(made, BufferedOutput)
    made.enable_cpr = False
    return made


_CLIPBOARDS = (  # what must be set, and the command that prints the image
    ("WAYLAND_DISPLAY", ("wl-paste", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)


def read_clipboard_image(environment: Mapping[str, str]) -> bytes:
    """Return the image in the clipboard of this machine. Blocks. Raises UsageError if there is none."""
    found = False
    for needed, (program, *options) in _CLIPBOARDS:
        path = shutil.which(program, path=environment.get("PATH"))
        if path is None or (needed and not environment.get(needed)):
            continue
        found = True
        with suppress(OSError, subprocess.TimeoutExpired):
            command = [path, *options]
            ran = subprocess.run(command, capture_output=True, check=False, timeout=_CLIPBOARD_S)  # noqa: S603 - ours
            if ran.returncode == 0 and ran.stdout:
                return ran.stdout
    if found:
        raise UsageError("There is no image in the clipboard.")
    raise UsageError(
        "The clipboard cannot be read: install wl-paste, xclip or pngpaste, or name an image's file with @."
    )


def terminal_reflows(environment: Mapping[str, str]) -> bool:
    """Return True for a terminal that is known to rewrap its lines when it becomes narrower.

    For an unknown terminal it returns False: leftover lines are ugly, but better than erased ones.
    """
    named = {environment.get("TERM_PROGRAM", ""), "tmux" if environment.get("TMUX") else ""}
    return bool(named & _REFLOWING_TERMINALS or {"VTE_VERSION", "KITTY_WINDOW_ID"} & set(environment))


def rows_pushed_down(widths: list[int], cursor: int, size: Size) -> int:
    """Return how many rows the cursor's row moved down when the terminal rewrapped these rows at this width."""
    columns = max(1, size.columns)
    above = sum(max(0, -(-width // columns) - 1) for width in widths)
    return above + cursor // columns


class ResizingApplication(Application[None]):
    """An application whose frames always fit the size that the terminal has when they are written.

    A terminal may change its size at any moment, and the signal comes later. Many terminals then rewrap their lines,
    which moves the last frame; prompt_toolkit erases as if they did not. A frame made for another size would erase
    lines above it, or leave parts of the last frame behind.
    """

    reflows_lines = False
    _drawn_for: Size | None = None

    def draw(self, above: str | None = None) -> None:
        """Draw what has changed.

        With `above`, or after a resize, erase the last frame, print `above` in its place and draw everything below it.
        If the size changes meanwhile, write nothing and start again.
        """
        if not self._is_running or self._running_in_terminal:
            return
        output, renderer = self.output, self.renderer
        assert isinstance(output, BufferedOutput)
        output.flush()
        while True:
            size, written = output.get_size(), (renderer._last_screen, renderer._cursor_pos)
            with output.hold():
                if above is not None or size != self._drawn_for:
                    self._erase(size)
                    output.write_raw(above or "")
                super()._redraw()
                if output.get_size() == size:
                    self._drawn_for = size
                    return
                output.discard()
            renderer._last_screen, renderer._cursor_pos = written

    def _erase(self, size: Size) -> None:
        screen = self.renderer.last_rendered_screen
        if self.reflows_lines and screen is not None:
            cursor = screen.get_cursor_position(self.layout.current_window)
            rows = [screen.data_buffer[row] for row in range(cursor.y)]
            widths = [max((at + 1 for at, cell in row.items() if cell.char != " "), default=0) for row in rows]
            self.output.cursor_up(rows_pushed_down(widths, cursor.x, size))
        self.renderer.erase(leave_alternate_screen=False)

    def _redraw(self, render_as_done: bool = False) -> None:
        if render_as_done:
            super()._redraw(render_as_done)
        else:
            self.draw()

    def _on_resize(self) -> None:
        self.draw("")
