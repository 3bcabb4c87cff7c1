"""Rebuild Markdown from the parsed HTML, using only a short list of safe constructs.

The model's text is parsed once and then discarded. The result holds only paragraphs, headings, lists, quotes, tables,
code, links, emphasis and folds, each written in one way; everything else becomes text. So how the text was parsed
affects only its looks, not its safety.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from hummingbird.gitlab.write.gitlab_html import HtmlElement, read_tree
from hummingbird.gitlab.write.markdown_text import (
    code_block,
    code_span,
    escape_html_text,
    escape_line_starts,
    escape_text,
    link_target,
)

Node = HtmlElement | str

INLINE_TAGS = frozenset({"sub", "sup", "kbd", "ins", "mark"})  # kept as HTML, without attributes
_STYLES = {"em": "*", "i": "*", "strong": "**", "b": "**", "del": "~~", "s": "~~", "strike": "~~"}
_STYLE_TAGS = {"*": "em", "**": "strong", "~~": "del"}
_CODE = frozenset({"code", "tt", "samp"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CONTAINERS = frozenset({"p", "div", "section", "article", "center", "summary", "dt", "dd", "figure", "figcaption"})
_BLOCKS = (
    _CONTAINERS
    | _HEADINGS.keys()
    | {"blockquote", "ul", "ol", "li", "dl", "pre", "table", "hr", "details"}
    | {"thead", "tbody", "tfoot", "tr", "th", "td"}
)
_TRANSPARENT = frozenset({"span", "small", "u", "abbr", "q", "var", "cite", "wbr", "font"})
_KNOWN = _BLOCKS | INLINE_TAGS | _STYLES.keys() | _CODE | _TRANSPARENT | {"a", "img", "br", "input"}
_ALIGNMENTS = {"left": ":---", "center": ":---:", "right": "---:"}
_SHOWN_URL_CHARS = 200
_LEAST_PART_CHARS = 200
_GAP = "\n\n"
_LINE_BREAK = "\\\n"
CUT_NOTICE = "*This text was too long for a note and was cut here. The full text is in the session.*"


def rebuild_markdown(html: str) -> tuple[list[str], str]:
    """Return the blocks of a note, and the text that a reader will see."""
    root = read_tree(html, _KNOWN)
    return [block for block in _BlockWriter().write_blocks(root.children) if block], root.text()


def join_blocks(blocks: Sequence[str], max_chars: int, *, was_cut: bool = False) -> str:
    """Join as many blocks as fit; show the beginning of the first that does not fit as code."""
    note = _GAP.join(blocks)
    if not was_cut and len(note) <= max_chars:
        return note
    room = max_chars - len(CUT_NOTICE) - len(_GAP)
    kept: list[str] = []
    for block in blocks:
        if len(block) > room:
            kept += [fit_code(block, room)] if room > _LEAST_PART_CHARS else []
            break
        kept.append(block)
        room -= len(block) + len(_GAP)
    return _GAP.join((*kept, CUT_NOTICE))


def fit_code(text: str, max_chars: int) -> str:
    """Return the beginning of the text as a block of code of at most `max_chars` characters."""
    block = code_block(text, "text")
    while len(block) > max_chars and text:
        room = max(0, len(text) * max_chars // len(block) - 20)
        end = text.rfind("\n", room // 2, room)  # cut at the end of a line if one is nearby
        text = text[: end if end > 0 else room]
        block = code_block(text, "text")
    return block


class _BlockWriter:
    def write_blocks(self, nodes: Sequence[Node]) -> Iterator[str]:
        last_list = ""
        for is_block, group in groupby(nodes, key=lambda node: isinstance(node, HtmlElement) and node.name in _BLOCKS):
            if not is_block:
                if paragraph := self.write_paragraph(list(group)):
                    last_list = ""
                    yield paragraph
                continue
            for block in group:
                assert isinstance(block, HtmlElement), "text is not a block"
                yield from self.write_block(block, other_bullet=block.name == last_list)
                last_list = block.name if block.name in ("ul", "ol") and block.name != last_list else ""

    def write_block(self, block: HtmlElement, *, other_bullet: bool) -> Iterator[str]:
        """Write one block. `other_bullet`: it follows a list and needs another kind of bullet to start a new list."""
        name = block.name
        if name in _HEADINGS:
            line = self.write_line(block.children)
            yield f"{'#' * _HEADINGS[name]} {line}" if line else ""
        elif name == "hr":
            yield "***"  # `---` could begin front matter
        elif name == "pre":
            yield self.write_code(block)
        elif name == "blockquote" or "markdown-alert" in block.attributes.get("class", ""):
            yield _prefix_lines(self.write_quote(block), "> ", "> ")
        elif name in ("ul", "ol"):
            yield self.write_list(block, other_bullet=other_bullet)
        elif name == "table":
            yield self.write_table(block)
        elif name == "details":
            yield self.write_fold(block)
        elif name == "dt":
            line = self.write_line(block.children)
            yield f"**{line}**" if line else ""
        elif name in ("dd", "li"):
            yield _prefix_lines("\n\n".join(filter(None, self.write_blocks(block.children))), "- ", "  ")
        else:
            yield from self.write_blocks(block.children)

    def write_paragraph(self, nodes: Sequence[Node]) -> str:
        text = _InlineWriter(_LINE_BREAK).write(nodes).strip(" \t")
        while text.endswith(_LINE_BREAK):
            text = text.removesuffix(_LINE_BREAK).rstrip()
        return escape_line_starts(text.strip())

    def write_line(self, nodes: Sequence[Node], *, in_cell: bool = False) -> str:
        line = " ".join(_InlineWriter("<br>", in_cell=in_cell).write(nodes).split())
        return line if in_cell else escape_line_starts(line)

    def write_code(self, block: HtmlElement) -> str:
        language = block.attributes.get("lang", "")
        for child in block.children:
            if isinstance(child, HtmlElement) and child.name == "code":
                language = language or child.attributes.get("class", "").removeprefix("language-")
        words = language.split()
        return code_block(block.text().removesuffix("\n"), words[0] if words else "")

    def write_quote(self, block: HtmlElement) -> str:
        children: list[Node] = []
        for child in block.children:
            if isinstance(child, HtmlElement) and child.attributes.get("class") == "markdown-alert-title":
                children.append(HtmlElement("p", children=[HtmlElement("strong", children=child.children)]))
            else:
                children.append(child)
        return "\n\n".join(filter(None, self.write_blocks(children)))

    def write_list(self, block: HtmlElement, *, other_bullet: bool) -> str:
        number = block.attributes.get("start", "1")
        count = int(number) if number.isdecimal() and len(number) < 9 else 1
        items: list[str] = []
        entries = [item for item in block.children if isinstance(item, HtmlElement)]
        loose = any(isinstance(child, HtmlElement) and child.name == "p" for item in entries for child in item.children)
        for item in entries:
            box, children = _take_checkbox(item.children)
            bullet = ("*" if other_bullet else "-") if block.name == "ul" else f"{count}{')' if other_bullet else '.'}"
            parts = list(filter(None, self.write_blocks(children)))
            if box and parts and not parts[0].startswith(("`", "#", ">", "-", "|", "<", "***")):
                parts[0] = box + parts[0]
            elif box:
                parts.insert(0, box.rstrip())
            items.append(_prefix_lines(_join_item(parts, loose=loose), f"{bullet} ", " " * (len(bullet) + 1)))
            count += 1
        return ("\n\n" if loose else "\n").join(items)

    def write_table(self, table: HtmlElement) -> str:
        rows = [
            [cell for cell in row.children if isinstance(cell, HtmlElement) and cell.name in ("th", "td")]
            for row in _iter_rows(table)
        ]
        rows = [row for row in rows if row]
        if not rows:
            return ""
        width = len(rows[0])
        rules = [_ALIGNMENTS.get(cell.attributes.get("align", ""), "---") for cell in rows[0]]
        lines = [[self.write_line(cell.children, in_cell=True) for cell in row[:width]] for row in rows]
        lines = [cells + [""] * (width - len(cells)) for cells in lines]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], rules, *lines[1:]))

    def write_fold(self, fold: HtmlElement) -> str:
        title, children = "", []
        for child in fold.children:
            if isinstance(child, HtmlElement) and child.name == "summary" and not title:
                title = child.text()
            else:
                children.append(child)
        opening = "<details open>" if "open" in fold.attributes else "<details>"
        summary = f"<summary>{escape_html_text(title) or 'Details'}</summary>"
        return "\n\n".join((f"{opening}\n{summary}", *filter(None, self.write_blocks(children)), "</details>"))


@dataclass(frozen=True, slots=True)
class _InlineWriter:
    """Write the content of a paragraph, a heading or a table cell."""

    line_break: str
    in_cell: bool = False
    in_link: bool = False

    def write(self, nodes: Sequence[Node]) -> str:
        parts = _merge_text(nodes)
        written: list[str] = []
        for number, part in enumerate(parts):
            if isinstance(part, str):
                after_break = number and isinstance(before := parts[number - 1], HtmlElement) and before.name == "br"
                text = part.lstrip() if after_break else part
                written.append(escape_text(text, ends_line=number == len(parts) - 1))
            elif part.name not in _STYLES:
                written.append(self.write_element(part))
            else:
                written.append("")
        for number, part in enumerate(parts):  # emphasis depends on the characters on both sides of it
            if isinstance(part, HtmlElement) and part.name in _STYLES:
                before = written[number - 1][-1:] if number else ""
                after = "*" if number + 1 < len(parts) else ""
                if number + 1 < len(parts) and isinstance(parts[number + 1], str):
                    after = written[number + 1][:1]
                written[number] = self.write_style(part, before, after)
        return "".join(written)

    def write_style(self, element: HtmlElement, before: str, after: str) -> str:
        inner = self.write(element.children)
        text = inner.strip()
        if not text:
            return inner
        lead, tail = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
        mark = _STYLES[element.name]
        clear = _is_clear(lead[-1:] or before, text[0]) and _is_clear(tail[:1] or after, text[-1])
        if clear and not text.startswith(mark[0]) and not text.endswith(mark[0]):
            return f"{lead}{mark}{text}{mark}{tail}"
        tag = _STYLE_TAGS[mark]
        return f"{lead}<{tag}>{text}</{tag}>{tail}"

    def write_element(self, element: HtmlElement) -> str:
        name = element.name
        if name == "br":
            return self.line_break
        if "data-math-style" in element.attributes:
            return self._write_math(element)
        if name in _CODE:
            return self.write_code(element.text())
        if name == "a":
            return self.write_link(element)
        if name == "img":
            alt = element.attributes.get("alt", "") or "image"
            return self.write_address(escape_text(alt), alt, element.attributes.get("src", ""))
        if name in INLINE_TAGS:
            text = self.write(element.children).strip()
            return f"<{name}>{text}</{name}>" if text else ""
        return ""  # a checkbox outside of a list, or a block where none is possible

    def write_code(self, text: str) -> str:
        if self.in_cell and "|" in text:
            return escape_text(text, ends_line=False) if "\\" in text else code_span(text.replace("|", "\\|"))
        return code_span(text)

    def _write_math(self, element: HtmlElement) -> str:
        fence = "$$" if element.attributes["data-math-style"] == "display" else "$"
        inner = f"`{element.text()}`" if element.name == "code" else element.text()
        return escape_text(f"{fence}{inner}{fence}", ends_line=False)

    def write_link(self, element: HtmlElement) -> str:
        href = element.attributes.get("href", "")
        if "data-footnote-backref" in element.attributes:
            return ""
        if "data-footnote-ref" in element.attributes:
            return escape_text(element.text(), ends_line=False)
        if "data-wikilink" in element.attributes:
            return escape_text(f"[[{element.text()}]]", ends_line=False)
        if self.in_link:
            return self.write(element.children)
        inside = _InlineWriter(self.line_break, in_cell=self.in_cell, in_link=True)
        return self.write_address(inside.write(element.children).strip(), element.text(), href)

    def write_address(self, label: str, text: str, href: str) -> str:
        """Write a link, or its label and its address as code if the target is not allowed."""
        if href.startswith("mailto:") and href.removeprefix("mailto:") == text:
            return label
        target = link_target(href)
        if target is None or self.in_link:
            shown = self.write_code(href[:_SHOWN_URL_CHARS] + "…" * (len(href) > _SHOWN_URL_CHARS))
            return shown if text == href or not label else f"{label} ({shown})"
        if text == target and target.startswith(("https://", "http://")) and not self.in_cell:
            return f"<{target}>"
        return f"[{label or 'link'}]({target})"


def _merge_text(nodes: Sequence[Node]) -> list[Node]:
    """Replace elements without meaning here by their children, and join adjacent pieces of text."""
    parts: list[Node] = []
    for is_text, group in groupby(_open_transparent(nodes), key=lambda node: isinstance(node, str)):
        merged = list(group)
        parts += ["".join(map(str, merged))] if is_text else merged
    return parts


def _open_transparent(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        opened = not isinstance(node, str) and (node.name in _TRANSPARENT or node.name in _BLOCKS)
        if isinstance(node, HtmlElement) and opened and "data-math-style" not in node.attributes:
            if node.name in _BLOCKS:
                yield " "
            yield from _open_transparent(node.children)
        else:
            yield node


def _is_clear(outside: str, inside: str) -> bool:
    """Return whether every parser lets emphasis begin or end between these two characters."""
    return outside not in ("*", "~", "_") and (not outside or outside.isspace() or inside.isalnum())


def _take_checkbox(children: Sequence[Node]) -> tuple[str, list[Node]]:
    """Return the checkbox of a list item as Markdown (empty if none), and the rest of the item."""
    rest = list(children)
    while rest and isinstance(rest[0], str) and not rest[0].strip():
        del rest[0]
    if rest and isinstance(rest[0], HtmlElement) and rest[0].name == "p":
        box, inner = _take_checkbox(rest[0].children)
        return box, [HtmlElement("p", rest[0].attributes, inner), *rest[1:]] if box else rest
    if rest and isinstance(rest[0], HtmlElement) and rest[0].name == "input":
        return ("[x] " if "checked" in rest[0].attributes else "[ ] "), rest[1:]
    return "", rest


def _join_item(parts: Sequence[str], *, loose: bool) -> str:
    """Join the blocks of a list item, without a blank line where none is needed: one would make the list loose."""
    text = ""
    for part in parts:
        gap = "\n" if not loose and part.startswith(("```", "- ", "* ", "1. ", "1) ", "> ", "# ")) else "\n\n"
        text += (gap if text else "") + part
    return text


def _iter_rows(table: HtmlElement) -> Iterator[HtmlElement]:
    for child in table.children:
        if isinstance(child, HtmlElement):
            if child.name == "tr":
                yield child
            elif child.name in ("thead", "tbody", "tfoot"):
                yield from _iter_rows(child)


def _prefix_lines(text: str, first: str, others: str) -> str:
    lines = text.split("\n")
    rest = [(others + line).rstrip() if line or ">" in others else "" for line in lines[1:]]
    return "\n".join([(first + lines[0]).rstrip(), *rest])
