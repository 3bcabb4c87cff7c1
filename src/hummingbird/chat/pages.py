"""What commands show, as text: sessions, tools, costs, the list of what is to be done. Pure."""

import time
from collections.abc import Sequence
from itertools import groupby

from hummingbird.chat.partner import Offered, Preview, Standing
from hummingbird.chat.status_line import money
from hummingbird.domain.sessions import Summary
from hummingbird.domain.text import shortened
from hummingbird.domain.todos import Todo, TodoState
from hummingbird.ports.session_index import MATCH_BEGINS, MATCH_ENDS, Hit

_MARKS = {
    TodoState.PENDING: "[ ]",
    TodoState.IN_PROGRESS: "[>]",
    TodoState.COMPLETED: "[x]",
    TodoState.CANCELLED: "[-]",
}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_SHOWN = 60
_ID_CHARS = 12  # by which a session is known well enough


def todo_page(todos: Sequence[Todo]) -> str:
    if not todos:
        return "Nothing is on the list."
    return "\n".join(f"{_MARKS[one.state]} {one.number}. {one.text}" for one in todos)


def session_page(found: Sequence[Summary], now: float) -> str:
    return "\n".join(session_line(one, now) for one in found) or "There is no such session."


def session_line(one: Summary, now: float) -> str:
    what = shortened(one.title or one.model or "nothing was said", _SHOWN)
    old = _age(now - one.changed_at)
    return f"{one.session_id[:_ID_CHARS]}  {old:>4} ago  {one.state:<12}  {one.answers:>3} answers  {what}"


def hit_page(hits: Sequence[Hit]) -> str:
    def words(hit: Hit) -> str:
        return hit.snippet.replace(MATCH_BEGINS, "»").replace(MATCH_ENDS, "«")

    return "\n".join(
        f"{hit.summary.session_id[:_ID_CHARS]}  {hit.who}: {shortened(words(hit), _SHOWN)}" for hit in hits
    )


def tool_page(tools: Sequence[Offered]) -> str:
    lines: list[str] = []
    ordered = sorted(tools, key=lambda one: (one.toolset, one.name))
    for toolset, members in groupby(ordered, key=lambda one: one.toolset):
        lines.append(toolset)
        lines += [f"  {one.name:<24} {one.action:<5}  {shortened(one.summary, _SHOWN)}" for one in members]
    return "\n".join(lines) or "No tools are offered: start with --toolsets to choose some."


def cost_page(standing: Standing) -> str:
    share = standing.context_tokens / standing.ceiling if standing.ceiling else 0.0
    return (
        f"{standing.bill}\n{standing.context_tokens:,} of {standing.ceiling:,} tokens of context ({share:.0%}) "
        f"with {standing.model}; {money(standing.bill)} in this session"
    )


def preview_page(preview: Preview) -> str:
    saved = 1 - preview.tokens_after / preview.tokens_before if preview.tokens_before else 0.0
    return (
        f"{preview.messages:,} messages would become a summary: {preview.tokens_before:,} → "
        f"{preview.tokens_after:,} tokens ({saved:.0%} less)."
    )


def now() -> float:
    return time.time()


def _age(seconds: float) -> str:
    for worth, unit in _UNITS:
        if seconds >= worth:
            return f"{int(seconds // worth)}{unit}"
    return "0s"
