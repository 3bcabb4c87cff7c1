"""A screen that keeps what it is given."""

from hummingbird.chat.blocks import Block
from hummingbird.chat.shown import Tone


class NotedScreen:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.blocks: list[Block] = []
        self.given_back: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.lines.append(text)

    def answer(self, block: Block) -> None:
        self.blocks.append(block)

    def page(self, markdown: str) -> None:
        self.lines.append(markdown)

    def touch(self) -> None: ...

    def refill(self, text: str) -> None:
        self.given_back.append(text)
