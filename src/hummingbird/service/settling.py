"""Whether the checks of a commit have come to rest, so that one report covers all of them (R1).

Pure: the time is an argument. Two clocks are looked at, GitLab's and ours, and neither is believed to be right: what
we have seen unchanged for long enough is at rest whatever GitLab's clock says, and the cap ends every waiting.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from hummingbird.domain.limits import QUOTED_CHARS, SETTLE_LOOK_CAP_S, SETTLE_LOOK_S, SETTLE_NAMED
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.text import shortened
from hummingbird.ports.forge import Check

PENDING = frozenset(
    {
        "created",
        "waiting_for_resource",
        "preparing",
        "waiting_for_callback",
        "pending",
        "running",
        "canceling",
    }
)
FAILED = "failed"
GREEN = frozenset({"success", "skipped", "manual", "scheduled"})
SHORTEST_S = 1.0  # that anybody waits: no order goes round and round


@dataclass(frozen=True, slots=True)
class Settled:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Look again in that many seconds; the rest is what the order has to remember until then."""

    seconds: float
    reason: str
    made_at: float
    watched: str
    watched_since: float

    def successor(self, order: WorkOrder) -> WorkOrder:
        return msgspec.structs.replace(
            order,
            made_at=self.made_at,
            watched=self.watched,
            watched_since=self.watched_since,
            waits=order.waits + 1,
        )


def settled(checks: Sequence[Check], order: WorkOrder, now: float, settle_s: float, cap_s: float) -> Settled | Wait:
    # Another host's clock may be ahead of ours: a time to come would make the waiting longer than the cap.
    made_at = min(order.made_at, now)
    watched = _seen(checks)
    since = min(order.watched_since, now) if order.watched == watched else now
    running = [check.name for check in checks if check.status in PENDING]
    left = made_at + cap_s - now
    if left <= 0:
        return Settled(_capped(running))
    rest = _busy(settle_s) if running else settle_s - max(_quiet_there(checks, now), now - since)
    if rest <= 0:
        return Settled("nothing runs any more")
    return Wait(
        seconds=max(SHORTEST_S, min(rest, left)),
        reason=f"still running: {_names(running)}" if running else "the last change is too recent",
        made_at=made_at,
        watched=watched,
        watched_since=since,
    )


def recovered(checks: Sequence[Check]) -> bool:
    """Nothing that matters is failed any more. A pipeline without any check may have failed before its first job."""
    return bool(checks) and not any(_failed(check) for check in checks)


def green(checks: Sequence[Check]) -> bool:
    """All of it is over, and nothing that matters has failed or was cancelled."""
    return bool(checks) and all(_passed(check) for check in checks)


def _failed(check: Check) -> bool:
    return check.status == FAILED and not check.allow_failure


def _passed(check: Check) -> bool:
    return check.status in GREEN or (check.allow_failure and check.status not in PENDING)


def _seen(checks: Sequence[Check]) -> str:
    """The same for the same statuses, in whatever order they come."""
    rows = sorted((check.name, check.pipeline_id, check.status, check.changed_at) for check in checks)
    return sha256(ascii(rows).encode()).hexdigest()[:32]


def _quiet_there(checks: Sequence[Check], now: float) -> float:
    """Seconds since the last change by GitLab's clock; 0 if it does not tell of every check."""
    changes = [check.changed_at for check in checks]
    return now - max(changes) if changes and all(changes) else 0.0


def _busy(settle_s: float) -> float:
    return min(max(settle_s, SETTLE_LOOK_S), SETTLE_LOOK_CAP_S)


def _capped(running: Sequence[str]) -> str:
    return f"waited long enough, though {_names(running)} did not end" if running else "waited long enough"


def _names(names: Sequence[str]) -> str:
    shown = [ascii(shortened(name, QUOTED_CHARS)) for name in names[:SETTLE_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
