"""How the lower end of the terminal is divided: what goes on, a question, the input, the status line."""

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
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

from hummingbird.chat.limits import INPUT_ROWS

Text = Callable[[], StyleAndTextTuples]
_MENU_ROWS = 8

PLAIN = Style([])
COLOURED = Style.from_dict(
    {
        "live": "fg:ansigray",
        "queued": "fg:ansiyellow",
        "question": "bold fg:ansiyellow",
        "prompt": "bold fg:ansigreen",
        "status": "fg:ansibrightblack",
    }
)


def divided(buffer: Buffer, live: Text, prompt: Callable[[], str], status: Text) -> Layout:
    """`live` is as high as it has lines."""
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
            Window(height=Dimension(min=0, preferred=1)),  # a gap; takes what is left while the rest has become lower
            ConditionalContainer(going_on, Condition(lambda: bool(live()))),
            typed,
            search,
            Window(FormattedTextControl(status), height=1, dont_extend_height=True),
        ]
    )
    menu = Float(CompletionsMenu(max_height=_MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
    return Layout(FloatContainer(rows, [menu]), focused_element=typed)
