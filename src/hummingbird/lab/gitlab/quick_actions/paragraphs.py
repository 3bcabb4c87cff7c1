"""Find the paragraphs of a note in which GitLab looks for quick actions: those at the top level of the rendered note.

GitLab renders the note, takes the lines of each such paragraph from the HTML and searches these lines of the source.
Its versions differ in their options for the parser, and in whether raw HTML reaches that search. What any version
takes for a paragraph is one here.
"""

import re
from collections.abc import Iterator

from hummingbird.lab.gitlab.markdown_html import render_markdown

CONTAINER_OR_PARAGRAPH = re.compile(
    r'<(?:(?P<end>/)?(?:blockquote|dl|div|ol|section|ul)\b|p data-sourcepos="(?P<first>\d+):\d+-(?P<last>\d+):)'
)


def find_paragraphs(text: str) -> list[range]:
    """Return the numbers of the lines (from nought) of each paragraph that may hold quick actions, without repeats.

    Paragraphs overlap where the versions of GitLab divide the text differently.
    """
    line_count = text.count("\n") + 1
    found: dict[range, None] = {}
    without_raw = render_markdown(text, raw_html=False, line_numbers=True)
    with_raw = render_markdown(text, raw_html=True, line_numbers=True)
    for safe, unsafe in zip(without_raw, with_raw, strict=True):
        if unsafe.lower().count("data-sourcepos") > safe.lower().count("data-sourcepos"):
            # Raw HTML names lines of its own choice, and GitLab believes it.
            found[range(line_count)] = None
            found.update((range(number, number + 1), None) for number in range(line_count))
        # A raw end tag may close the list or the quote around a paragraph.
        nested_too = unsafe.count("</") > safe.count("</")
        for lines in _paragraphs_in(safe, nested_too=nested_too):
            found[range(lines.start, min(lines.stop, line_count))] = None
    return [lines for lines in found if lines]


def _paragraphs_in(html: str, *, nested_too: bool) -> Iterator[range]:
    depth = 0
    for tag in CONTAINER_OR_PARAGRAPH.finditer(html):
        if tag["first"] is None:
            depth += -1 if tag["end"] else 1
        elif depth == 0 or nested_too:
            yield range(int(tag["first"]) - 1, int(tag["last"]))
