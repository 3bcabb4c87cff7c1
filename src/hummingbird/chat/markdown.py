"""Blocks of Markdown as a terminal shows them, by rich: with colours, or the same content without any.

What rich made is looked at once more before it leaves: a character reference (&#27;) becomes a control character only
when it is parsed. Hyperlinks are never made; an address stands behind its text.
"""

import io
from functools import cached_property

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from hummingbird.chat.blocks import Block, Kind
from hummingbird.chat.shown import Tone, coloured, shown
from hummingbird.evidence.visible import visible

_THEME = "ansi_dark"
_LANGUAGE_CHARS = 40


class _Heading(Heading):
    """At the left, with its marks: without colours it would not be known for one."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield Text(f"{'#' * int(self.tag[1:])} ", style="bold") + self.text


class _Markdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _Heading}  # noqa: RUF012 - declared so by rich


class Renderer:
    """`colour` False: no escape sequence at all comes out."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    @cached_property
    def _parser(self) -> MarkdownIt:
        """Without HTML: rich leaves tags out, and List<String> would lose a word."""
        return MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")

    def render(self, block: Block, columns: int) -> str:
        """Lines, the last one ended, safe to be written to a terminal of that width."""
        match block.kind:
            case Kind.FENCE:
                return self._line(visible(block.text), Tone.DIM)
            case Kind.CODE:
                return self._code(shown(block.text), block.language, columns)
            case _:
                return self._markdown(shown(block.text), columns)

    def warm(self) -> None:
        """Loads what takes long the first time."""
        self.render(Block(Kind.MARKDOWN, "| a |\n|---|\n| `b` |"), 80)
        self.render(Block(Kind.CODE, "pass", "python"), 80)

    def _line(self, text: str, tone: Tone) -> str:
        return (coloured(text, tone) if self._colour else text) + "\n"

    def _markdown(self, text: str, columns: int) -> str:
        made = _Markdown(text, hyperlinks=False)
        made.parsed = self._parser.parse(text)
        console = self._console(columns)
        return self._written(console, list(console.render(made, console.options))).strip("\n") + "\n"

    def _code(self, text: str, language: str, columns: int) -> str:
        """Lines are not broken, so that they can be copied: the terminal wraps them."""
        if not self._colour or not language:
            return f"{text}\n"
        highlit = Syntax("", language[:_LANGUAGE_CHARS], theme=_THEME, background_color="default").highlight(text)
        highlit.rstrip()
        console = self._console(columns)
        options = console.options.update(no_wrap=True, overflow="ignore", width=max(columns, len(text) + 1))
        return self._written(console, list(console.render(Text("\n").join(highlit.split("\n")), options)))

    def _console(self, columns: int) -> Console:
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

    def _written(self, console: Console, segments: list[Segment]) -> str:
        safe = [one._replace(text=shown(one.text), control=None) for one in segments]
        lines = [self._trimmed(console, line) for line in Segment.split_lines(safe)]
        return "\n".join(lines) + "\n"

    def _trimmed(self, console: Console, line: list[Segment]) -> str:
        """Without the blanks that rich fills a line with: they would be copied, and wrap when the window narrows."""
        while line and not line[-1].text.strip() and not (line[-1].style and line[-1].style.bgcolor):
            line.pop()
        if line and not (line[-1].style and line[-1].style.bgcolor):
            line[-1] = line[-1]._replace(text=line[-1].text.rstrip())
        if not self._colour:
            return "".join(one.text for one in line)
        system = console._color_system  # a style is rendered by it, and the console does not give it away
        return "".join(one.style.render(one.text, color_system=system) if one.style else one.text for one in line)
