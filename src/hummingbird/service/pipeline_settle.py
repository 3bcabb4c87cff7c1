"""Decide whether the checks of a commit have settled, so that one report covers all of them.

The functions are pure: the time is an argument. Neither GitLab's clock nor ours is trusted. What we have seen unchanged
for long enough is settled whatever GitLab's clock says, and the cap ends every wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from hummingbird.core.limits import QUOTED_CHARS, SETTLE_LOOK_CAP_S, SETTLE_LOOK_S, SETTLE_NAMED
from hummingbird.core.orders import WorkOrder
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.write.protocol import CommitCheck

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
SHORTEST_S = 1.0  # the shortest wait, so that no order is processed in a tight loop


@dataclass(frozen=True, slots=True)
class SettledChecks:
    """The checks have settled."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleWait:
    """Look again in that many seconds; the other fields are what the order remembers until then."""

    seconds: float
    reason: str
    made_at: float
    watched: str
    watched_since: float

    def create_successor(self, order: WorkOrder) -> WorkOrder:
        return msgspec.structs.replace(
            order,
            made_at=self.made_at,
            watched=self.watched,
            watched_since=self.watched_since,
            waits=order.waits + 1,
        )


def check_settled(
    checks: Sequence[CommitCheck], order: WorkOrder, now: float, settle_s: float, cap_s: float
) -> SettledChecks | SettleWait:
    """Return whether the checks have settled, or how long to wait for that.

    They have settled when nothing runs and nothing changed for `settle_s` seconds, or when the order is `cap_s` seconds
    old.
    """
    # Another host's clock may be ahead of ours: a time in the future would make the wait longer than the cap.
    made_at = min(order.made_at, now)
    watched = _fingerprint_checks(checks)
    since = min(order.watched_since, now) if order.watched == watched else now
    running = [check.name for check in checks if check.status in PENDING]
    left = made_at + cap_s - now
    if left <= 0:
        return SettledChecks(_cap_reason(running))
    rest = _busy_pause_s(settle_s) if running else settle_s - max(_quiet_seconds(checks, now), now - since)
    if rest <= 0:
        return SettledChecks("nothing runs any more")
    return SettleWait(
        seconds=max(SHORTEST_S, min(rest, left)),
        reason=f"still running: {_quote_names(running)}" if running else "the last change is too recent",
        made_at=made_at,
        watched=watched,
        watched_since=since,
    )


def has_recovered(checks: Sequence[CommitCheck]) -> bool:
    """Return whether nothing that matters is failed any more.

    False if there are no checks: a pipeline may fail before its first job.
    """
    return bool(checks) and not any(_has_failed(check) for check in checks)


def is_green(checks: Sequence[CommitCheck]) -> bool:
    """Return whether every check has ended and nothing that matters has failed or was cancelled."""
    return bool(checks) and all(_has_passed(check) for check in checks)


def _has_failed(check: CommitCheck) -> bool:
    return check.status == FAILED and not check.allow_failure


def _has_passed(check: CommitCheck) -> bool:
    return check.status in GREEN or (check.allow_failure and check.status not in PENDING)


def _fingerprint_checks(checks: Sequence[CommitCheck]) -> str:
    """Return a fingerprint of all statuses that does not depend on their order."""
    rows = sorted((check.name, check.pipeline_id, check.status, check.changed_at) for check in checks)
    return sha256(ascii(rows).encode()).hexdigest()[:32]


def _quiet_seconds(checks: Sequence[CommitCheck], now: float) -> float:
    """Return the seconds since the last change by GitLab's clock; 0 if a check has no time."""
    changes = [check.changed_at for check in checks]
    return now - max(changes) if changes and all(changes) else 0.0


def _busy_pause_s(settle_s: float) -> float:
    return min(max(settle_s, SETTLE_LOOK_S), SETTLE_LOOK_CAP_S)


def _cap_reason(running: Sequence[str]) -> str:
    return f"waited long enough, though {_quote_names(running)} did not end" if running else "waited long enough"


def _quote_names(names: Sequence[str]) -> str:
    shown = [ascii(shorten_line(name, QUOTED_CHARS)) for name in names[:SETTLE_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
