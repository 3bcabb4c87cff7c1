"""What a posted note would do in GitLab, by the lab's reading, which shares no code with the sanitizer."""

import re
from html.parser import HTMLParser

import comrak

from hummingbird.lab.gitlab.markdown_html import read_note
from hummingbird.lab.gitlab.quick_actions import QuickAction, extract_commands

_TAGS = """
p h1 h2 h3 h4 h5 h6 em strong del code pre a br hr ul ol li blockquote table thead tbody tr th td input details summary
sub sup kbd ins mark
"""
QUIET_TAGS = frozenset(_TAGS.split())
ITEM = re.compile(
    r"/(?:issues|merge_requests|commit|compare|uploads)/|^//|^https?://[^/]*@|^(?!https?:|mailto:)[a-z]+:"
)
BEGINS_WITH_SLASH = re.compile(r"^(?:[^\S\n]{0,3}(?:>|(?:[-+*:~]|[0-9]{1,9}[.)])[^\S\n]))*[^\S\n]{0,3}/", re.MULTILINE)


def commands(body: str) -> list[QuickAction]:
    """The quick actions that GitLab would carry out."""
    return extract_commands(body)[1]


def html(markdown: str) -> str:
    """The page that GitLab shows, before its filters."""
    extension, parse, render = comrak.ExtensionOptions(), comrak.ParseOptions(), comrak.RenderOptions()
    for name in ("autolink", "description_lists", "footnotes", "strikethrough", "table", "tasklist", "alerts"):
        setattr(extension, name, True)
    render.unsafe_ = True
    return comrak.render_markdown(markdown, extension, parse, render)


def effects(body: str) -> list[str]:
    """Everything that a note would do besides being read."""
    shown = read_note(body)
    return [
        *(f"executes {command.name}" for command in commands(body)),
        *(f"line begins with a slash: {line!r}" for line in BEGINS_WITH_SLASH.findall(body)),
        *(f"loads {address}" for address in shown.images),
        *(f"mentions {name}" for name in shown.mentions),
        *(f"refers to {reference}" for reference in shown.references),
        *(f"links to {target}" for target in shown.links if ITEM.search(target)),
        *(f"hides {comment}" for comment in shown.comments),
        *(
            f"draws {language}"
            for language in shown.languages
            if language in ("mermaid", "plantuml", "math", "suggestion")
        ),
        *(f"has <{tag}>" for tag in shown.elements if tag not in QUIET_TAGS),
    ]


class OpenTags(HTMLParser):
    """Which elements a page leaves open at its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("br", "hr", "img", "input", "wbr"):
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.stack:
            del self.stack[len(self.stack) - 1 - self.stack[::-1].index(tag) :]
