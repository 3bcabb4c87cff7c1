"""A screen that keeps what it is given."""

from hummingbird.chat.screen import MarkdownBlock, Tone


class NotedScreen:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.blocks: list[MarkdownBlock] = []
        self.given_back: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, verbatim: bool = False) -> None:
        self.lines.append(text)

    def show_block(self, block: MarkdownBlock) -> None:
        self.blocks.append(block)

    def show_page(self, markdown: str) -> None:
        self.lines.append(markdown)

    def request_redraw(self) -> None: ...

    def restore_input(self, text: str) -> None:
        self.given_back.append(text)

    def copy(self, text: str) -> None:
        self.lines.append(f"copied {text}")
