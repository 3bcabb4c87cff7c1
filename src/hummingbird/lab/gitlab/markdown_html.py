"""Render Markdown to HTML with comrak, the parser that GitLab uses, in the ways in which versions of GitLab do it.

comrak takes quadratic time for some inputs (`^[`, `a@b.c ` or "$`a", repeated); GitLab does so too.
"""

from collections.abc import Iterator

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
