"""Render Markdown to HTML as GitLab does: with comrak, and with the options that GitLab gives it.

Some inputs cost comrak quadratic time, and a call into it cannot be interrupted: call it through `note_worker` unless
the text is short.
"""

from typing import Literal

import comrak

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
    """Return the HTML. Raw HTML in the text is passed through, as GitLab passes it to its sanitizer."""
    extension, parse, render = comrak.ExtensionOptions(), comrak.ParseOptions(), comrak.RenderOptions()
    for name in _CURRENT if dialect == "current" else _OLD:
        setattr(extension, name, True)
    parse.relaxed_autolinks = dialect == "current"
    render.unsafe_ = True
    render.full_info_string = True
    render.github_pre_lang = True
    return comrak.render_markdown(markdown, extension, parse, render)
