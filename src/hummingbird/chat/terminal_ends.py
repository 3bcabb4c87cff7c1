"""Both ends of a terminal, as prompt_toolkit has them, with what a chat needs beside: megabytes may be pasted, and much
is printed above a prompt that stays.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import Input
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

_END = "\x1b[201~"
_CHUNK_BYTES = 64 * 1024
_REFLOWING = {"iTerm.app", "Apple_Terminal", "WezTerm", "vscode", "ghostty", "tmux"}


class PatientParser(Vt100Parser):
    """Looks at each piece of a paste once. prompt_toolkit's own looks through all of it again with each piece, which
    for ten megabytes takes longer than anybody waits."""

    _pieces: list[str]
    _seam = ""  # the end of the last piece, in which the mark may have begun

    def reset(self, request: bool = False) -> None:
        self._pieces = []
        super().reset(request)

    def feed(self, data: str) -> None:
        if not self._in_bracketed_paste:
            super().feed(data)
            return
        self._pieces.append(data)
        seam = self._seam + data
        if _END in seam:
            self._finish(len(data))
        else:
            self._seam = seam[1 - len(_END) :]

    def _finish(self, last: int) -> None:
        whole = "".join(self._pieces)
        at = whole.index(_END, max(0, len(whole) - last - len(_END)))
        self._pieces, self._seam = [], ""
        self._in_bracketed_paste = False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, whole[:at]))
        self.feed(whole[at + len(_END) :])


class _WideReader(PosixStdinReader):
    def read(self, count: int = _CHUNK_BYTES) -> str:
        return super().read(count)


def keyboard() -> Input:
    made = Vt100Input(sys.stdin)
    made.stdin_reader = _WideReader(sys.stdin.fileno(), encoding=sys.stdin.encoding)
    made.vt100_parser = PatientParser(made.vt100_parser.feed_key_callback)
    return made


class HeldOutput(Vt100_Output):
    """While it is held nothing is flushed, so that what is erased and drawn again is one write: nothing flickers, and
    there is no moment in which a paste would not be bracketed."""

    _held = False

    @contextmanager
    def held(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.flush()

    def drop(self) -> None:
        """Forget what was to be written."""
        self._buffer = []

    def flush(self) -> None:
        if not self._held:
            super().flush()

    def disable_bracketed_paste(self) -> None:
        if not self._held:
            super().disable_bracketed_paste()


def display(environment: Mapping[str, str]) -> HeldOutput:
    """Never asks where its cursor is: the answers come between the keys, and nothing here depends on them."""
    made = HeldOutput.from_pty(sys.stdout, term=environment.get("TERM"))
    assert isinstance(made, HeldOutput)
    made.enable_cpr = False
    return made


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether this terminal breaks lines anew when it becomes narrower. Where nobody knows, it is said not to: what is
    left over is uglier than what is missing, and better."""
    named = {environment.get("TERM_PROGRAM", ""), "tmux" if environment.get("TMUX") else ""}
    return bool(named & _REFLOWING or {"VTE_VERSION", "KITTY_WINDOW_ID"} & set(environment))


def pushed_down(widths: list[int], cursor: int, size: Size) -> int:
    """How many rows the cursor's row has moved down since these rows were drawn and broken anew at this width."""
    columns = max(1, size.columns)
    above = sum(max(0, -(-width // columns) - 1) for width in widths)
    return above + cursor // columns
