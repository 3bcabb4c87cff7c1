"""How long to wait before a read is tried again (D8). Pure: it neither waits nor looks at a clock."""

from hummingbird.domain.limits import (
    SOURCE_ATTEMPTS,
    SOURCE_DELAY_S,
    SOURCE_RETRY_AFTER_CAP_S,
    SOURCE_SILENT_ATTEMPTS,
    SOURCE_WAIT_S,
)

_NEVER_BETTER = frozenset({501, 505})


def passing(status: int) -> bool:
    """Whether the same read may go well a little later."""
    return status == 429 or (500 <= status < 600 and status not in _NEVER_BETTER)


def pause_s(
    attempt: int, waited_s: float, asked_s: float | None, chance: float, *, silent: bool = False
) -> float | None:
    """Seconds to wait after attempt number `attempt` (from 1); None to give up.

    `asked_s` is what Retry-After says. More than we have is not shortened: a server that says when to come back means
    it. `chance` is between 0 and 1, so that many of us do not come back at the same moment. `silent`: the source said
    nothing at all, which costs a whole timeout each time.
    """
    if attempt >= (SOURCE_SILENT_ATTEMPTS if silent else SOURCE_ATTEMPTS):
        return None
    wait = asked_s if asked_s is not None else SOURCE_DELAY_S * 2 ** (attempt - 1) * (0.5 + chance)
    return wait if wait <= SOURCE_RETRY_AFTER_CAP_S and waited_s + wait <= SOURCE_WAIT_S else None
