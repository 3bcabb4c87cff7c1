"""Renders Markdown blocks for a terminal with rich, with or without colours.

Rich's output is sanitized again, because a character reference (&#27;) becomes a control character only when it is
parsed. There are no terminal hyperlinks; the address is printed after the link's text.
"""

import io
from functools import cached_property

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from hummingbird.chat.screen import BlockKind, MarkdownBlock, Tone, colour_lines, printable_text
from hummingbird.evidence.printable import make_printable

_THEME = "ansi_dark"
_LANGUAGE_CHARS = 40


class LeftHeading(Heading):
    """A left-aligned heading with its # marks: without colours it would not look like a heading."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield Text(f"{'#' * int(self.tag[1:])} ", style="bold") + self.text


class ChatMarkdown(Markdown):
    """Rich's Markdown with our headings."""

    elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - declared so by rich


class BlockRenderer:
    """Renders blocks; without `colour`, the output has no escape sequences at all."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    @cached_property
    def _parser(self) -> MarkdownIt:
        """The parser, with HTML off: rich drops tags, and List<String> would lose a word."""
        return MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")

    def render(self, block: MarkdownBlock, columns: int) -> str:
        """Return the block as lines, each with a newline, safe to write to a terminal of that width."""
        match block.kind:
            case BlockKind.FENCE:
                return self._render_line(make_printable(block.text), Tone.DIM)
            case BlockKind.CODE:
                return self._render_code(printable_text(block.text), block.language, columns)
            case _:
                return self._render_markdown(printable_text(block.text), columns)

    def warm(self) -> None:
        """Render samples once, to load what takes long the first time."""
        self.render(MarkdownBlock(BlockKind.MARKDOWN, "| a |\n|---|\n| `b` |"), 80)
        self.render(MarkdownBlock(BlockKind.CODE, "pass", "python"), 80)

    def _render_line(self, text: str, tone: Tone) -> str:
        return (colour_lines(text, tone) if self._colour else text) + "\n"

    def _render_markdown(self, text: str, columns: int) -> str:
        made = ChatMarkdown(text, hyperlinks=False)
        made.parsed = self._parser.parse(text)
        console = self._create_console(columns)
        return self._join_segments(console, list(console.render(made, console.options))).strip("\n") + "\n"

    def _render_code(self, text: str, language: str, columns: int) -> str:
        """Render code without breaking lines, so that they can be copied; the terminal wraps them."""
        if not self._colour or not language:
            return f"{text}\n"
        highlit = Syntax("", language[:_LANGUAGE_CHARS], theme=_THEME, background_color="default").highlight(text)
        highlit.rstrip()
        console = self._create_console(columns)
        options = console.options.update(no_wrap=True, overflow="ignore", width=max(columns, len(text) + 1))
        return self._join_segments(console, list(console.render(Text("\n").join(highlit.split("\n")), options)))

    def _create_console(self, columns: int) -> Console:
        return Console(
            file=io.StringIO(),
            width=max(20, columns),
            color_system="256" if self._colour else None,
            force_terminal=self._colour,
            no_color=not self._colour,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            _environ={},
        )

    def _join_segments(self, console: Console, segments: list[Segment]) -> str:
        safe = [one._replace(text=printable_text(one.text), control=None) for one in segments]
        lines = [self._trim_line(console, line) for line in Segment.split_lines(safe)]
        return "\n".join(lines) + "\n"

    def _trim_line(self, console: Console, line: list[Segment]) -> str:
        """Remove the blanks that rich pads a line with: they would be copied, and wrap in a narrower window."""
        while line and not line[-1].text.strip() and not (line[-1].style and line[-1].style.bgcolor):
            line.pop()
        if line and not (line[-1].style and line[-1].style.bgcolor):
            line[-1] = line[-1]._replace(text=line[-1].text.rstrip())
        if not self._colour:
            return "".join(one.text for one in line)
        system = console._color_system  # needed to render a style, and not public
        return "".join(one.style.render(one.text, color_system=system) if one.style else one.text for one in line)
