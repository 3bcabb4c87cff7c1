"""What a reader of a note sees and what GitLab does with it. Shares no code of ours with the firewall."""

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from hummingbird.lab.gitlab.quick_actions.extracting import Command, extracted

REFERENCE = re.compile(
    r"(?<![A-Za-z0-9_])@[A-Za-z0-9_.]|[#!&$][0-9]|%[A-Za-z0-9\"]|(?<!~)~[A-Za-z0-9\"]|\bGL-[0-9]|\[(?:issue|epic):"
)
ITEM = re.compile(r"/(?:issues|merge_requests)/[0-9]")
ADDRESS = re.compile(r"https?://[A-Za-z0-9][^\s\x01>]*")
LOADING = {"img", "video", "audio", "source", "iframe", "object", "embed", "script", "style", "link", "svg", "picture"}


def html(markdown: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def commands(body: str) -> list[Command]:
    return extracted(body)[1]


class Seen(HTMLParser):
    """GitLab puts an escaped sign into a span of its own, so that it starts no reference: here, a control character."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.faults: list[str] = []
        self.comments: list[str] = []
        self._parts: list[str] = []
        parser = MarkdownIt("commonmark", {"html": True}).enable("table")
        parser.core.ruler.disable("text_join")
        tokens = parser.parse(markdown)
        for token in tokens:
            for child in token.children or ():
                if child.type == "text_special":
                    child.type = "text"
                    child.content += "\x01" * (child.info == "escape" and len(child.content) == 1)
        self.feed(parser.renderer.render(tokens, parser.options, {}))
        self.close()
        self._end_text()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_text()
        if tag in LOADING:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            self._attribute(name, value or "")
        if tag not in ("br", "hr", "wbr", "img"):
            self.stack.append(tag)

    def _attribute(self, name: str, value: str) -> None:
        if name in ("src", "srcset", "style") and not value.startswith("text-align:"):
            self.faults.append(f"{name}={value}")
        if name == "href" and (
            re.match(r"\s*(?!https?:|mailto:)[a-z]+:", value, re.IGNORECASE)
            or ITEM.search(value)
            or re.fullmatch(r"(?!https?:).*[@#!%~$&][0-9]+|@.*", value)
        ):
            self.faults.append(f"href={value}")

    def handle_endtag(self, tag: str) -> None:
        self._end_text()
        if tag in self.stack:
            del self.stack[len(self.stack) - 1 - self.stack[::-1].index(tag) :]

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        self._parts.append(data)

    def _end_text(self) -> None:
        text = "".join(self._parts)
        self._parts = []
        if not {"code", "pre", "a"} & set(self.stack):
            rest = ADDRESS.sub("", text)  # GitLab makes links of these
            self.faults += [text] if REFERENCE.search(rest) or ITEM.search("".join(ADDRESS.findall(text))) else []
