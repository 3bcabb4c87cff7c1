"""Read rendered HTML into a small tree, forgivingly and in linear time.

It holds what the renderer wrote and whatever raw HTML the text had, so tags may be wrong in any way: a tag that is
not known is kept as text, a closing tag without its opening one too, and what is left open ends with its parent.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hummingbird.adapters.forge.markdown_text import strip_invisible

VOID_TAGS = frozenset({"br", "hr", "img", "input"})
_MAX_DEPTH = 30
_TOKEN = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<attributes>[\s/][^<>]*)?>|[^<]+|<")
_ATTRIBUTE = re.compile(r"([A-Za-z][A-Za-z0-9-]*+)(?:=\"([^\"]*)\"|=([^\s\"'=<>`]+))?")


@dataclass(slots=True)
class Element:
    """A tag with what is inside it."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: "list[Element | str]" = field(default_factory=list)

    def text(self) -> str:
        """Return all text below this element."""
        return "".join(_texts(self))


@dataclass(frozen=True, slots=True)
class Token:
    """A tag as it was written, or text with entities decoded, which has no `name`."""

    raw: str
    name: str = ""
    end: bool = False
    attributes: str = ""

    def read_attributes(self) -> dict[str, str]:
        """Return the attributes; one without a value has an empty one."""
        return {name.lower(): html.unescape(one or two) for name, one, two in _ATTRIBUTE.findall(self.attributes)}


def read_tokens(source: str) -> Iterator[Token]:
    """Yield tags and text in their order, without comments; what is no tag is text."""
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
            yield Token(found[0], found["name"].lower(), bool(found["end"]), found["attributes"] or "")
        else:
            yield Token(html.unescape(found[0]))


def read_tree(source: str, known_tags: frozenset[str]) -> Element:
    """Return the root of the tree. Tags that are not known are text; those nested too deeply are left out."""
    root = Element("")
    stack = [root]
    too_deep = 0
    for token in read_tokens(source):
        top = stack[-1]
        if token.name not in known_tags:
            top.children.append(strip_invisible(token.raw))  # entities may spell what the text itself has no more
        elif token.name in VOID_TAGS:
            if not token.end:
                top.children.append(Element(token.name, _read_visible(token)))
        elif not token.end:
            if len(stack) < _MAX_DEPTH:
                stack.append(Element(token.name, _read_visible(token)))
                top.children.append(stack[-1])
            else:
                too_deep += 1
        elif too_deep:
            too_deep -= 1
        elif not _close(stack, token.name):
            top.children.append(token.raw)
    return root


def _read_visible(token: Token) -> dict[str, str]:
    return {name: strip_invisible(value) for name, value in token.read_attributes().items()}


def _close(stack: list[Element], name: str) -> bool:
    for depth in range(len(stack) - 1, 0, -1):
        if stack[depth].name == name:
            del stack[depth:]
            return True
    return False


def _texts(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield child
        elif child.name == "br":
            yield "\n"
        else:
            yield from _texts(child)
