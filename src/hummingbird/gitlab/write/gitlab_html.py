"""Render Markdown to HTML as GitLab does, and read that HTML into a small tree in linear time.

The HTML also holds whatever raw HTML the text had, so tags may be wrong in any way: an unknown tag is kept as text, as
is a closing tag without its opening one, and an element that is never closed ends with its parent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import comrak

from hummingbird.gitlab.write.markdown_text import decode_entities, strip_invisible

Dialect = Literal["current", "old"]
DIALECTS: tuple[Dialect, ...] = ("current", "old")

_OLD = ("autolink", "footnotes", "multiline_block_quotes", "strikethrough", "table", "tasklist")
_CURRENT = (
    *_OLD,
    "alerts",
    "cjk_friendly_emphasis",
    "description_lists",
    "inline_footnotes",
    "math_code",
    "math_dollars",
    "wikilinks_title_before_pipe",
)


def render_html(markdown: str, dialect: Dialect = "current") -> str:
    """Return the HTML that comrak makes of the text with GitLab's options.

    Raw HTML in the text is passed through, as GitLab passes it to its sanitizer. Some inputs cost comrak quadratic
    time, and a call into it cannot be interrupted: call this through `note_worker` unless the text is short.
    """
    extension, parse, render = comrak.ExtensionOptions(), comrak.ParseOptions(), comrak.RenderOptions()
    for name in _CURRENT if dialect == "current" else _OLD:
        setattr(extension, name, True)
    parse.relaxed_autolinks = dialect == "current"
    render.unsafe_ = True
    render.full_info_string = True
    render.github_pre_lang = True
    return comrak.render_markdown(markdown, extension, parse, render)


VOID_TAGS = frozenset({"br", "hr", "img", "input"})
_MAX_DEPTH = 30
_TOKEN = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<attributes>[\s/][^<>]*)?>|[^<]+|<")
_ATTRIBUTE = re.compile(r"([A-Za-z][A-Za-z0-9-]*+)(?:=\"([^\"]*)\"|=([^\s\"'=<>`]+))?")


@dataclass(slots=True)
class HtmlElement:
    """An HTML element with its children."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: "list[HtmlElement | str]" = field(default_factory=list)

    def text(self) -> str:
        """Return all text below this element."""
        return "".join(_iter_texts(self))


@dataclass(frozen=True, slots=True)
class HtmlToken:
    """A tag as it was written, or text with its entities decoded; text has no `name`."""

    raw: str
    name: str = ""
    end: bool = False
    attributes: str = ""

    def read_attributes(self) -> dict[str, str]:
        """Return the attributes; one without a value maps to an empty text."""
        return {name.lower(): decode_entities(one or two) for name, one, two in _ATTRIBUTE.findall(self.attributes)}


def read_tokens(source: str) -> Iterator[HtmlToken]:
    """Yield tags and text in order, without comments; everything that is not a tag is text."""
    at = 0
    comments_end = True
    while at < len(source):
        if comments_end and source.startswith("<!--", at):
            closed = source.find("-->", at + 4)
            if closed >= 0:
                at = closed + 3
                continue
            comments_end = False
        found = _TOKEN.match(source, at)
        assert found is not None, "every character matches one alternative"
        at = found.end()
        if found["name"]:
            yield HtmlToken(found[0], found["name"].lower(), bool(found["end"]), found["attributes"] or "")
        else:
            yield HtmlToken(decode_entities(found[0]))


def read_tree(source: str, known_tags: frozenset[str]) -> HtmlElement:
    """Return the root of the tree. Unknown tags become text; tags nested too deeply are left out."""
    root = HtmlElement("")
    stack = [root]
    too_deep = 0
    for token in read_tokens(source):
        top = stack[-1]
        if token.name not in known_tags:
            top.children.append(strip_invisible(token.raw))  # entities may encode characters already stripped before
        elif token.name in VOID_TAGS:
            if not token.end:
                top.children.append(HtmlElement(token.name, _visible_attributes(token)))
        elif not token.end:
            if len(stack) < _MAX_DEPTH:
                stack.append(HtmlElement(token.name, _visible_attributes(token)))
                top.children.append(stack[-1])
            else:
                too_deep += 1
        elif too_deep:
            too_deep -= 1
        elif not _close_element(stack, token.name):
            top.children.append(token.raw)
    return root


def _visible_attributes(token: HtmlToken) -> dict[str, str]:
    return {name: strip_invisible(value) for name, value in token.read_attributes().items()}


def _close_element(stack: list[HtmlElement], name: str) -> bool:
    for depth in range(len(stack) - 1, 0, -1):
        if stack[depth].name == name:
            del stack[depth:]
            return True
    return False


def _iter_texts(element: HtmlElement) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield child
        elif child.name == "br":
            yield "\n"
        else:
            yield from _iter_texts(child)
