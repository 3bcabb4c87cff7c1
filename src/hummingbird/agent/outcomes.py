"""What a run gave back, read off its journal: the same whether it has just ended or ended in another process (L2)."""

from collections.abc import Sequence

from hummingbird.agent.state import RunState
from hummingbird.domain.journal import Entry, RunEnded
from hummingbird.domain.runs import Outcome


def outcome_of(state: RunState, undelivered: tuple[str, ...] = ()) -> Outcome:
    """Of the run that ended last; there must be one."""
    ended = state.ended
    assert ended is not None
    return Outcome(
        session_id=state.conversation.session_id,
        run_id=ended.run_id,
        reason=ended.reason,
        text=ended.text,
        answered=ended.answered,
        sentence=ended.sentence,
        messages=tuple(state.conversation.whole()),
        iterations=state.iterations,
        bill=state.ledger.bill(),
        undelivered=undelivered,
    )


def upto_end(entries: Sequence[Entry], run_id: str) -> Sequence[Entry]:
    """The session as it was when that run ended; nothing if it has not."""
    for at, entry in enumerate(entries):
        if isinstance(entry, RunEnded) and entry.run_id == run_id:
            return entries[: at + 1]
    return ()
