"""The agent's own notes as it may read them again (D3): without transcript, footer and marker. Pure.

A transcript quotes logs and files, so outsiders have a say in where its folding seems to end: everything from the first
fold to the last one goes.
"""

import re

_FOLD = re.compile(r"<details\b", re.IGNORECASE)
_FOLD_END = re.compile(r"</details\s*>", re.IGNORECASE)
_RULE = re.compile(r"^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$", re.MULTILINE)
_FOOTER_CHARS = 2_000  # what stands below a rule and is longer is no footer
CUT = "[The transcript of the run stood here.]"


def report_of(body: str, marker_prefix: str) -> str:
    """What the note told people."""
    text = _without_footer(_without_folds(_without_markers(body, marker_prefix)))
    return text.strip()


def _without_markers(body: str, prefix: str) -> str:
    """One that is cut off in the middle takes what is behind it along."""
    return re.sub(rf"<!--\s*{re.escape(prefix)}.*?(?:-->|\Z)", "", body, flags=re.DOTALL)


def _without_folds(body: str) -> str:
    opened = _FOLD.search(body)
    if opened is None:
        return body
    closed = [found.end() for found in _FOLD_END.finditer(body, opened.end())]
    return body[: opened.start()] + CUT + (body[closed[-1] :] if closed else "")


def _without_footer(body: str) -> str:
    """Below the last rule, if that is short enough for one. GitLab takes text right above dashes for a heading."""
    rules = [found for found in _RULE.finditer(body) if body.endswith("\n\n", 0, found.start())]
    if not rules or len(body) - rules[-1].end() > _FOOTER_CHARS:
        return body
    above, below = body[: rules[-1].start()], body[rules[-1].end() :]
    return above + below[below.index(CUT) :] if CUT in below else above
