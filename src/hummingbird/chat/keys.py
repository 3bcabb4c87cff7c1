"""What keys do. Each is a line here; what happens is the terminal's business."""

from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys


class Typed(Protocol):
    @property
    def buffer(self) -> Buffer: ...
    @property
    def asked(self) -> bool:
        """Whether a question takes an answer now."""
        ...

    def sent(self) -> None: ...
    def broke(self) -> None:
        """Ctrl-C."""
        ...

    def ended(self) -> None:
        """Ctrl-D."""
        ...

    def pasted(self, text: str) -> None: ...
    def declined(self) -> None: ...


def key_bindings(typed: Typed) -> KeyBindings:
    keys = KeyBindings()
    here = has_focus(typed.buffer)

    @keys.add("enter", filter=here)
    def _send(_: KeyPressEvent) -> None:
        state = typed.buffer.complete_state
        if state and state.current_completion:
            typed.buffer.complete_state = None
        else:
            typed.sent()

    @keys.add("escape", "enter", filter=here)
    @keys.add("c-j", filter=here)
    def _new_line(_: KeyPressEvent) -> None:
        typed.buffer.newline(copy_margin=False)

    @keys.add("c-c")
    @keys.add(Keys.SIGINT)
    def _break(_: KeyPressEvent) -> None:
        typed.broke()

    @keys.add("c-d", filter=here & Condition(lambda: not typed.buffer.text))
    def _end(_: KeyPressEvent) -> None:
        typed.ended()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add(Keys.BracketedPaste, filter=here)
    def _paste(event: KeyPressEvent) -> None:
        typed.pasted(event.data)

    @keys.add("escape", filter=here & Condition(lambda: typed.asked))
    def _decline(_: KeyPressEvent) -> None:
        typed.declined()

    return keys
