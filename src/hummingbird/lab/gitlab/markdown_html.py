"""Render Markdown to HTML with comrak, the parser that GitLab uses, and tell what GitLab would make of a note.

comrak takes quadratic time for some inputs (`^[`, `a@b.c ` or "$`a", repeated); GitLab does so too.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from html import unescape

import comrak

OLDER = ("autolink", "footnotes", "multiline_block_quotes", "strikethrough", "table")
CURRENT = (
    *OLDER,
    "alerts",
    "cjk_friendly_emphasis",
    "description_lists",
    "inline_footnotes",
    "math_code",
    "math_dollars",
    "wikilinks_title_before_pipe",
)
FRONT_MATTER_LANGUAGES = {"---": "yaml", "+++": "toml", ";;;": "json"}


def render_markdown(text: str, *, raw_html: bool, line_numbers: bool = False) -> list[str]:
    """Return the HTML with the options of GitLab 18 and of older versions; both again if there is front matter to hide.

    Args:
        text: Markdown.
        raw_html: Pass raw HTML through; without it, comrak writes a comment in its place.
        line_numbers: Say in `data-sourcepos` from where to where in the text each element reaches.
    """
    text = text.encode(errors="replace").decode()  # comrak refuses lone surrogates
    rendered = []
    for variant in _hide_front_matter(text):
        for extensions in (CURRENT, OLDER):
            extension, parse, render = comrak.ExtensionOptions(), comrak.ParseOptions(), comrak.RenderOptions()
            for name in extensions:
                setattr(extension, name, True)
            parse.relaxed_autolinks = extensions is CURRENT
            render.unsafe_, render.sourcepos = raw_html, line_numbers
            render.github_pre_lang = render.full_info_string = True
            rendered.append(comrak.render_markdown(variant, extension, parse, render))
    return rendered


def _hide_front_matter(text: str) -> Iterator[str]:
    """Yield the text, and what remains for the parser if GitLab takes its beginning for front matter.

    GitLab makes a block of code of it, which a fence inside ends early; to drop it altogether is the other reading.
    Every line keeps its number.
    """
    yield text
    lines = text.removeprefix("\ufeff").split("\n")
    for first in (1, 0) if "coding:" in lines[0] else (0,):  # a line that names an encoding may precede it
        opening = next((number for number in range(first, len(lines)) if lines[number].strip()), None)
        mark = "" if opening is None else lines[opening][:3]
        if opening is None or mark not in FRONT_MATTER_LANGUAGES:
            continue
        closings = (mark, "...")
        closing = next(
            (number for number in range(opening + 1, len(lines)) if lines[number].rstrip() in closings), None
        )
        if closing is not None:
            language = lines[opening][3:].strip() or FRONT_MATTER_LANGUAGES[mark]
            hidden = lines[opening + 1 : closing]
            fenced = [f"```{language}:frontmatter", *hidden, "```"]
            rest = lines[closing + 1 :]
            yield "\n".join([""] * opening + fenced + rest)
            yield "\n".join([""] * (closing + 1) + rest)
            return


TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*)(?P<attributes>(?>[^>"'=]+|=\s*"[^"]*"|=\s*'[^']*'|[="'])*+)>"""
)
ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>][^\s>]*)))?""")
ELEMENT = re.compile(r"<([a-zA-Z][a-zA-Z0-9-]*)")
IMAGE_ADDRESS = re.compile(r"\.(?:apng|avif|bmp|gif|ico|jpe?g|png|svg|tiff?|webp)(?:[?#]|$)", re.IGNORECASE)

MENTION = re.compile(r"(?<![A-Za-z0-9_])@([A-Za-z0-9_.][A-Za-z0-9_./-]*)")
REFERENCE = re.compile(
    r"""
    [#!$&][0-9]+
    | %(?:"[^"\n]+"|\w+)
    | (?<!~)~(?:"[^"\n]+"|[\w?&][\w?&.:-]*)
    | \*iteration:[\w"]+
    | \[(?:cadence|contact|epic|feature_flag|issue|iteration|vulnerability|wiki_page|work_item):[^\[\]\n]+\]
    | (?<![A-Za-z0-9_])[A-Z][A-Z0-9_]+-[0-9]+   # another tracker's issue
    | GL-[0-9]+   # an issue, within words too
    | [A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+>   # a project
    | (?<![A-Za-z0-9_])[0-9a-fA-F]{7,64}(?![A-Za-z0-9_])   # a commit
    """,
    re.VERBOSE,
)
ITEM_ADDRESS = re.compile(
    r"/(?:commit|compare|epics|issues|incidents|merge_requests|milestones|snippets|work_items)/[\w.-]*\w"
)
LOADED = frozenset({"background", "data", "poster", "src", "srcset"})  # attributes with addresses
NO_REFERENCES = frozenset({"a", "code", "pre"})
NO_LINKS = frozenset({"a", "code", "kbd", "pre", "script", "style"})
COMRAK_COMMENT = " raw HTML omitted "


@dataclass(slots=True)
class RenderedNote:
    """What GitLab makes of a note; nothing is listed twice.

    Attributes:
        images: Addresses that a reader's browser loads: pictures, films, sounds and other embedded things.
        links: Targets of links.
        mentions: Names of people and groups, without the `@`.
        references: Issues, merge requests, labels, commits and so on, as they are written or as addresses.
        comments: HTML comments and declarations, without their delimiters.
        elements: Names of raw HTML elements.
        languages: First words behind the fences of code blocks; `mermaid` and `suggestion:-0+0` do more than colours.
    """

    images: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    mentions: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    elements: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)


def read_note(body: str) -> RenderedNote:
    """Return everything that some version of GitLab would make of the body of a note, apart from quick actions.

    For tests that judge whether a note is harmless. GitLab's versions differ, so the note is read as the newer and the
    older ones render it, with and without its raw HTML, and whatever one of them would do counts. A backslash before a
    mention or a reference is not honoured: newer versions do, older ones did not.
    """
    note = RenderedNote()
    without_raw, with_raw = render_markdown(body, raw_html=False), render_markdown(body, raw_html=True)
    for safe, unsafe in zip(without_raw, with_raw, strict=True):
        note.elements += Counter(ELEMENT.findall(unsafe.lower())) - Counter(ELEMENT.findall(safe.lower()))
        spaced_links = [*_read_html(safe, note), *_read_html(unsafe, note)]
        # GitLab renders each of these anew. As paragraphs of one text, they cost two calls.
        for html in render_markdown("\n\n".join(dict.fromkeys(spaced_links)), raw_html=True):
            _read_html(html, note)
    note.comments = [comment for comment in note.comments if comment != COMRAK_COMMENT]
    return RenderedNote(*(list(dict.fromkeys(getattr(note, each.name))) for each in fields(note)))


def _read_html(html: str, note: RenderedNote) -> list[str]:
    """Add what is in the HTML to the note; return the links with spaces in it, as Markdown without these spaces."""
    spaced_links: list[str] = []
    opened: Counter[str] = Counter()
    at = 0
    while at < len(html):
        start = html.find("<", at)
        start = len(html) if start < 0 else start
        _read_text(unescape(html[at:start]), +opened, note, spaced_links)
        tag = TAG.match(html, start)
        if tag is not None:
            at = tag.end()
            name = tag["name"].lower()
            if name in NO_LINKS | NO_REFERENCES:
                opened[name] = max(0, opened[name] + (-1 if tag["end"] else 1))
            if not tag["end"]:
                _read_attributes(name, tag["attributes"], note)
        elif html.startswith(("<!", "<?"), start):
            opening, closing = ("<!--", "-->") if html.startswith("<!--", start) else (html[start : start + 2], ">")
            end = html.find(closing, start + len(opening))
            end = len(html) if end < 0 else end
            note.comments.append(html[start + len(opening) : end])
            at = end + len(closing)
        elif ELEMENT.match(html, start):
            break  # a tag without an end: browsers drop the rest
        else:
            at = start + 1
    return spaced_links


def _read_text(text: str, opened: Counter[str], note: RenderedNote, spaced_links: list[str]) -> None:
    if not NO_REFERENCES & opened.keys():
        note.mentions += (name for each in MENTION.findall(text) if (name := each.rstrip("./-")))
        note.references += (each[0] for each in REFERENCE.finditer(text))
    if not NO_LINKS & opened.keys():
        for line in text.split("\n"):
            spaced_links += _find_spaced_links(line)


def _find_spaced_links(line: str) -> Iterator[str]:
    """Yield what looks like a link or an image and was none to the parser, mostly for spaces in its address."""
    at = 0
    while True:
        start = line.find("[", at)
        middle = line.find("](", start + 2)
        end = line.find(")", middle + 3)
        if min(start, middle, end) < 0:
            return
        address, quote, title = line[middle + 2 : end].partition(' "')
        mark = "!" if line[max(at, start - 1) : start] == "!" else ""
        yield f"{mark}{line[start:middle]}]({address.replace(' ', '%20')}{quote}{title})"
        at = end + 1


def _read_attributes(element: str, text: str, note: RenderedNote) -> None:
    attributes: dict[str, str] = {}
    for name, *values in ATTRIBUTE.findall(text):
        attributes.setdefault(name.lower(), unescape("".join(values)))
    for name in LOADED & attributes.keys():
        note.images.append(attributes[name])
    if element == "pre" and attributes.get("lang"):
        note.languages.append(attributes["lang"].split()[0])
    target = attributes.get("href")
    if target is None:
        return
    note.links.append(target)
    if "data-wikilink" in attributes and IMAGE_ADDRESS.search(target):
        note.images.append(target)
    # A link to nothing but a mention or a reference is one, and so is the address of an item.
    if mention := MENTION.fullmatch(target):
        note.mentions.append(mention[1])
    if REFERENCE.fullmatch(target) or ITEM_ADDRESS.search(target):
        note.references.append(target)
