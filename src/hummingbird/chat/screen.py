"""Where a conversation is shown: a terminal, or two streams. What is given here need not be safe; what comes out is."""

from typing import Protocol

from hummingbird.chat.blocks import Block
from hummingbird.chat.shown import Tone


class Screen(Protocol):
    """Everything returns at once; what is shown keeps its order."""

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Lines of ours, or of others; control characters in them are written out."""
        ...

    def answer(self, block: Block) -> None:
        """The next block of the model's answer."""
        ...

    def page(self, markdown: str) -> None:
        """A document of its own: a summary, a list."""
        ...

    def touch(self) -> None:
        """What goes on has changed; look at it when there is time."""
        ...

    def refill(self, text: str) -> None:
        """Gives a text back to whoever typed it."""
        ...
