"""Texts of the status line and of the commands: sessions, tools, costs, to-do list."""

import time
from collections.abc import Sequence
from itertools import groupby

from hummingbird.agent.todo_list import Todo, TodoState
from hummingbird.chat.partner import ChatPermissions, ChatStatus, ChatToolInfo, CompactionPreview
from hummingbird.chat.screen import fit_line
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS, SearchHit
from hummingbird.core.sessions import SessionSummary
from hummingbird.core.text import shorten_line
from hummingbird.core.usage import Bill
from hummingbird.evidence.printable import make_printable

_SESSION_CHARS = 8
MODE_LABELS = {
    PermissionMode.ASK: "",
    PermissionMode.ACCEPT_EDITS: "ACCEPTS EDITS",
    PermissionMode.PLAN: "PLAN",
}


MODE_SENTENCES = {
    PermissionMode.ASK: "ask before anything that changes or sends",
    PermissionMode.ACCEPT_EDITS: "edit files of the workspace without asking; ask before the rest",
    PermissionMode.PLAN: "only read and plan; refuse whatever changes or sends",
}


def build_status_line(standing: ChatStatus, columns: int, *, doing: str = "", queued: int = 0) -> str:
    """Return the line below the input; in a narrow terminal the least important parts are left out."""
    parts = _status_parts(standing, doing, queued)
    while len(parts) > 1 and len(" · ".join(text for _, text in parts)) > columns:
        parts.remove(max(parts, key=lambda part: part[0]))
    return fit_line(make_printable(" · ".join(text for _, text in parts)), columns)


def _status_parts(standing: ChatStatus, doing: str, queued: int) -> list[tuple[int, str]]:
    """Return the parts of the line with their rank; the part with the highest rank is left out first."""
    background = len(standing.background)
    found = [
        (0, doing or "ready"),
        (1, MODE_LABELS[standing.mode]),
        (2, f"{queued} queued" if queued else ""),
        (3, standing.model),
        (4, f"context {_context_share(standing):.0%}"),
        (5, cost_text(standing.bill)),
        (7, f"cache {standing.bill.cache_share:.0%}"),
        (6, f"{background} in the background" if background else ""),
        (8, standing.session_id[:_SESSION_CHARS]),
    ]
    return [(rank, text) for rank, text in found if text]


def _context_share(standing: ChatStatus) -> float:
    return standing.context_tokens / standing.context_limit if standing.context_limit else 0.0


def cost_text(bill: Bill) -> str:
    """Return the cost, with "+?" when the price of some calls is unknown."""
    return f"${bill.known_usd:.4f}" + ("+?" if bill.cost_usd is None else "")


_TODO_MARKS = {
    TodoState.PENDING: "[ ]",
    TodoState.IN_PROGRESS: "[>]",
    TodoState.COMPLETED: "[x]",
    TodoState.CANCELLED: "[-]",
}
_TIME_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_SHOWN_CHARS = 60
_TITLE_CHARS = 48
_BAR_CELLS = 24
ID_CHARS = 12  # enough to identify a session


def permission_page(found: ChatPermissions, grants: Sequence[str]) -> str:
    personal = [f"  {number}. {line}  ({scope})" for number, (line, scope) in enumerate(found.personal, 1)]
    parts = [
        [f"Mode: {found.mode.value}; Shift-Tab changes it."],
        ["Your rules (/permissions remove N takes one away):", *personal] if personal else [],
        ["Rules of the configuration:", *(f"  {line}" for line in found.configured)] if found.configured else [],
        ["Allowed for exactly one call:", *(f"  {line}" for line in grants)] if grants else [],
        ["Add one: /permissions allow terminal(git diff *), /permissions always deny file_read(secrets/*)"],
    ]
    return "\n".join(line for part in parts for line in part)


def context_page(parts: Sequence[tuple[str, int]]) -> str:
    """Return a bar for each part of the context."""
    whole = max(1, sum(tokens for _, tokens in parts))
    rows = []
    for name, tokens in parts:
        filled = round(_BAR_CELLS * tokens / whole)
        bar = ("░" if name == "free" else "█") * filled
        rows.append(f"{name:<17} {bar:<{_BAR_CELLS}} {tokens:>9,}  {tokens / whole:>4.0%}")
    return "\n".join(rows)


def todo_page(todos: Sequence[Todo]) -> str:
    if not todos:
        return "Nothing is on the list."
    return "\n".join(f"{_TODO_MARKS[one.state]} {one.number}. {one.text}" for one in todos)


def session_page(found: Sequence[SessionSummary], now: float) -> str:
    return "\n".join(session_line(one, now) for one in found) or "There is no such session."


def session_line(one: SessionSummary, now: float) -> str:
    what = shorten_line(one.title or one.model or "nothing was said", _SHOWN_CHARS)
    old = _age_text(now - one.changed_at)
    return f"{one.session_id[:ID_CHARS]}  {old:>4} ago  {one.state:<12}  {one.answers:>3} answers  {what}"


def session_row(one: SessionSummary, now: float, here: str) -> str:
    """Return the session as a row of a list: title, age, folder, last words."""
    title = shorten_line(one.title or "nothing was said", _TITLE_CHARS)
    where = "here" if one.about.folder == here else one.about.folder or one.about.project or "elsewhere"
    row = f"{title} · {_age_text(now - one.changed_at)} ago · {where}"
    return f"{row} · {one.last_words}" if one.last_words else row


def hit_page(hits: Sequence[SearchHit]) -> str:
    def words(hit: SearchHit) -> str:
        return hit.snippet.replace(MATCH_BEGINS, "»").replace(MATCH_ENDS, "«")

    return "\n".join(
        f"{hit.summary.session_id[:ID_CHARS]}  {hit.who}: {shorten_line(words(hit), _SHOWN_CHARS)}" for hit in hits
    )


def tool_page(tools: Sequence[ChatToolInfo]) -> str:
    lines: list[str] = []
    ordered = sorted(tools, key=lambda one: (one.toolset, one.name))
    for toolset, members in groupby(ordered, key=lambda one: one.toolset):
        lines.append(toolset)
        lines += [f"  {one.name:<24} {one.action:<5}  {shorten_line(one.summary, _SHOWN_CHARS)}" for one in members]
    return "\n".join(lines) or "No tools are offered: start with --toolsets to choose some."


def cost_page(standing: ChatStatus, folder: str) -> str:
    share = standing.context_tokens / standing.context_limit if standing.context_limit else 0.0
    return (
        f"Session {standing.session_id[:ID_CHARS]} in {folder}; {MODE_SENTENCES[standing.mode]}.\n"
        f"{standing.bill}\n{standing.context_tokens:,} of {standing.context_limit:,} tokens of context ({share:.0%}) "
        f"with {standing.model}; {cost_text(standing.bill)} in this session"
    )


def preview_page(preview: CompactionPreview) -> str:
    saved = 1 - preview.tokens_after / preview.tokens_before if preview.tokens_before else 0.0
    return (
        f"{preview.messages:,} messages became a summary: {preview.tokens_before:,} → "
        f"{preview.tokens_after:,} tokens ({saved:.0%} less)."
    )


def current_time() -> float:
    return time.time()


def _age_text(seconds: float) -> str:
    for worth, unit in _TIME_UNITS:
        if seconds >= worth:
            return f"{int(seconds // worth)}{unit}"
    return "0s"
