"""Parse, rebuild and check a note within a limit of CPU time.

Neither comrak nor a regular expression releases the interpreter lock while it works, so a hostile text could block the
whole service even from a thread. Short texts are harmless; longer ones are handled in a child process that is killed
when its time is up. The child gets no credentials.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hummingbird.gitlab.write.gitlab_html import DIALECTS, VOID_TAGS, HtmlToken, read_tokens, render_html
from hummingbird.gitlab.write.markdown_rebuild import join_blocks, rebuild_markdown
from hummingbird.gitlab.write.markdown_text import LANGUAGES, has_invisible, has_reference, has_slash_first, link_target

# Check a finished note as GitLab will render it, and name anything in it that could have an effect.
#
# This is the second line of defence: it shares with the code that writes notes only the rules for references and
# addresses. It renders the final text with GitLab's parser and accepts a short list of elements and attributes.


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
_STRANGE_TAG = re.compile(r"<(?!/?[a-z][a-z0-9]{0,15}[\s/>])")  # comrak escapes every `<` that is text


def find_fault(markdown: str) -> str | None:
    """Return what could have an effect in this part of a note, as a phrase for the log; None if nothing could."""
    if has_slash_first(markdown):
        return "a line that begins with a slash"
    if has_invisible(markdown):
        return "a character that nobody can see"
    pages = (render_html(markdown, dialect) for dialect in DIALECTS)
    return next((fault for page in pages for fault in _find_faults(page)), None)


def keeps_apart(parts: Sequence[str], joined: str) -> bool:
    """Return whether GitLab renders the joined text just like its parts, so that no part affects another."""
    return all(
        render_html(joined, dialect) == "".join(render_html(part, dialect) for part in parts) for dialect in DIALECTS
    )


def _find_faults(html: str) -> Iterator[str]:
    if _STRANGE_TAG.search(html):
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


def _find_tag_faults(token: HtmlToken) -> Iterator[str]:
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


CPU_LIMIT_S = 1
_MEMORY_LIMIT_BYTES = 2 * 1024**3
_SHORT_CHARS = 4 * 1024  # the worst text of this length takes about 0.2 s
_WALL_LIMIT_S = 120.0  # on a busy machine one second of CPU time may take much longer
_CHILD_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT")
OUT_OF_TIME = "no end within its time"


class RebuiltNote(NamedTuple):
    """A rebuilt note.

    `visible_text` is what a reader sees. `fault` says what could still have an effect; it is empty if nothing could.
    """

    markdown: str
    visible_text: str
    fault: str


def rebuild_note(markdown: str, max_chars: int, *, was_cut: bool = False) -> RebuiltNote:
    """Parse, rebuild and check the text of a note. `was_cut`: the caller has already shortened it."""
    if len(markdown) <= _SHORT_CHARS:
        return _rebuild(markdown, max_chars, was_cut)
    answer = _run_child("rebuild", markdown, max_chars, was_cut)
    return RebuiltNote(*map(str, answer)) if answer is not None else RebuiltNote("", "", OUT_OF_TIME)


def parts_keep_apart(parts: Sequence[str], joined: str) -> bool:
    """Return whether no part of a note affects how another is read; False if the check takes too long."""
    if len(joined) <= _SHORT_CHARS:
        return keeps_apart(parts, joined)
    return _run_child("keeps_apart", list(parts), joined) == [True]


def _rebuild(markdown: str, max_chars: int, was_cut: bool) -> RebuiltNote:
    blocks, visible_text = rebuild_markdown(render_html(markdown))
    note = join_blocks(blocks, max_chars, was_cut=was_cut)
    return RebuiltNote(note, visible_text, find_fault(note) or "")


def _run_child(*request: object) -> list[object] | None:
    environment = {name: value for name in _CHILD_VARIABLES if (value := os.environ.get(name)) is not None}
    try:
        child = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=_WALL_LIMIT_S,
            check=True,
            env=environment,
        )
    except (subprocess.SubprocessError, OSError):
        return None
    answer: list[object] = json.loads(child.stdout)
    return answer


def _answer_parent() -> None:
    import resource  # noqa: PLC0415 - only the child needs it, and Windows does not have it

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    operation, *arguments = json.load(sys.stdin)
    answer: Sequence[object] = [keeps_apart(*arguments)] if operation == "keeps_apart" else _rebuild(*arguments)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _answer_parent()
