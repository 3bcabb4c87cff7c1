"""One line below the input: where the conversation stands. What matters least is left out first when it is narrow."""

from hummingbird.chat.partner import Standing
from hummingbird.chat.shown import fitted
from hummingbird.domain.usage import Bill
from hummingbird.evidence.visible import visible

_SESSION_CHARS = 8


def status_line(standing: Standing, columns: int, *, doing: str = "", queued: int = 0) -> str:
    parts = _parts(standing, doing, queued)
    while len(parts) > 1 and len(" · ".join(text for _, text in parts)) > columns:
        parts.remove(max(parts, key=lambda part: part[0]))
    return fitted(visible(" · ".join(text for _, text in parts)), columns)


def _parts(standing: Standing, doing: str, queued: int) -> list[tuple[int, str]]:
    """With how easily each can be missed."""
    background = len(standing.background)
    found = [
        (0, doing or "ready"),
        (1, "PLAN" if standing.plan else ""),
        (2, f"{queued} queued" if queued else ""),
        (3, standing.model),
        (4, f"context {_share(standing):.0%}"),
        (5, money(standing.bill)),
        (7, f"cache {standing.bill.cache_share:.0%}"),
        (6, f"{background} in the background" if background else ""),
        (8, standing.session_id[:_SESSION_CHARS]),
    ]
    return [(rank, text) for rank, text in found if text]


def _share(standing: Standing) -> float:
    return standing.context_tokens / standing.ceiling if standing.ceiling else 0.0


def money(bill: Bill) -> str:
    """A sum with holes is marked as one."""
    return f"${bill.known_usd:.4f}" + ("+?" if bill.cost_usd is None else "")
