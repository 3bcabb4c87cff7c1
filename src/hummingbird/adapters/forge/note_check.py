"""Look at a note as GitLab will show it, and say what in it could act.

This is the second lock: it shares with the code that writes notes only the rules for references and addresses. It
renders the final text with GitLab's parser and accepts a short list of elements and attributes; all else is a fault.
"""

import re
from collections.abc import Iterator, Sequence

from hummingbird.adapters.forge.gitlab_markdown import DIALECTS, render_html
from hummingbird.adapters.forge.html_tree import VOID_TAGS, Token, read_tokens
from hummingbird.adapters.forge.markdown_text import (
    LANGUAGES,
    has_invisible,
    has_reference,
    has_slash_first,
    link_target,
)

_ALLOWED: dict[str, frozenset[str]] = {
    **{
        name: frozenset()
        for name in (
            *("p", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "del", "code", "br", "hr", "ul", "li"),
            *("blockquote", "table", "thead", "tbody", "tr", "summary", "sub", "sup", "kbd", "ins", "mark"),
        )
    },
    "a": frozenset({"href"}),
    "pre": frozenset({"lang"}),
    "ol": frozenset({"start"}),
    "th": frozenset({"align"}),
    "td": frozenset({"align"}),
    "details": frozenset({"open"}),
    "input": frozenset({"type", "checked", "disabled"}),
}
_NO_TAG = re.compile(r"<(?!/?[a-z][a-z0-9]{0,15}[\s/>])")  # comrak writes no `<` of the text itself


def find_fault(markdown: str) -> str | None:
    """Return what could act in this part of a note, as a short phrase for the log; None if nothing could."""
    if has_slash_first(markdown):
        return "a line that begins with a slash"
    if has_invisible(markdown):
        return "a character that nobody can see"
    pages = (render_html(markdown, dialect) for dialect in DIALECTS)
    return next((fault for page in pages for fault in _find_faults(page)), None)


def keeps_apart(parts: Sequence[str], joined: str) -> bool:
    """Tell whether GitLab reads the joined text as it reads its parts one by one, so that none reaches into another."""
    return all(
        render_html(joined, dialect) == "".join(render_html(part, dialect) for part in parts) for dialect in DIALECTS
    )


def _find_faults(html: str) -> Iterator[str]:
    if _NO_TAG.search(html):
        yield "a comment, a declaration or a strange tag"
    open_tags: list[str] = []
    for token in read_tokens(html):
        if not token.name:
            if not {"code", "pre", "a"} & set(open_tags) and has_reference(token.raw):
                yield "a reference"
            if not open_tags and token.raw.strip():
                yield "text outside of any element"
        elif token.end:
            if not open_tags or open_tags.pop() != token.name:
                yield f"</{token.name}> without its beginning"
        else:
            yield from _find_tag_faults(token)
            if token.name not in VOID_TAGS:
                open_tags.append(token.name)
    if open_tags:
        yield f"<{open_tags[-1]}> without its end"


def _find_tag_faults(token: Token) -> Iterator[str]:
    allowed = _ALLOWED.get(token.name)
    if allowed is None:
        yield f"<{token.name}>"
        return
    attributes = token.read_attributes()
    if not attributes.keys() <= allowed:
        yield f"<{token.name}> with {', '.join(sorted(attributes.keys() - allowed))}"
    if token.name == "a" and link_target(href := attributes.get("href", "")) != href:
        yield "a link to a place that is not allowed"
    if token.name == "pre" and attributes.get("lang", "text") not in LANGUAGES:
        yield "a block of code that GitLab may draw"
    if token.name == "input" and attributes.get("type") != "checkbox":
        yield "an input"
