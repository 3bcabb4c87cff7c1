"""A run that has ended, read off its journal for whoever posts it. The same for one that ended in another process."""

from collections.abc import Sequence

from hummingbird.agent.outcomes import outcome_of
from hummingbird.agent.state import RunState
from hummingbird.agent.tools.findings import from_entries
from hummingbird.assembly.first_look import judged_in
from hummingbird.assembly.models import DIGEST
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.journal import TURN, Entry, ModelAnswered, ModelSwitched, RunEnded, RunStarted
from hummingbird.domain.runs import Outcome
from hummingbird.domain.transcript import transcript
from hummingbird.service.investigating import Conducted


def conducted(
    entries: Sequence[Entry],
    outcome: Outcome | None = None,
    *,
    failures: Sequence[FailureSeen] = (),
    trouble: Sequence[str] = (),
) -> Conducted:
    """`entries`: a session up to the end of the run. `outcome`: what the run gave back, if it has just ended; a journal
    may lack its end."""
    state = RunState.of(entries)
    outcome = outcome or outcome_of(state)
    began = next((one.at for one in entries if isinstance(one, RunStarted) and one.run_id == outcome.run_id), 0.0)
    return Conducted(
        outcome=outcome,
        model=_answering(entries, outcome.run_id) or state.model,
        seconds=max(0.0, _end(entries, outcome.run_id) - began),
        transcript=transcript(entries, outcome.run_id),
        failures=tuple(failures),
        findings=from_entries(entries, outcome.run_id),
        trouble=(*_without_models(entries, state), *trouble),
        verdict=judged_in(entries, outcome.run_id),
    )


def _end(entries: Sequence[Entry], run_id: str) -> float:
    ended = next((one.at for one in entries if isinstance(one, RunEnded) and one.run_id == run_id), 0.0)
    return ended or entries[-1].at


def _answering(entries: Sequence[Entry], run_id: str) -> str:
    """The model whose answer was the last one in the run."""
    name, within = "", False
    for entry in entries:
        if isinstance(entry, RunStarted):
            within = entry.run_id == run_id
        elif within and isinstance(entry, ModelAnswered) and entry.purpose == TURN:
            name = entry.model
    return name


def _without_models(entries: Sequence[Entry], state: RunState) -> Sequence[str]:
    """That the rules alone wrote it, though a model was to, and why (L14)."""
    if state.model != DIGEST:
        return ()
    switches = [entry for entry in entries if isinstance(entry, ModelSwitched)]
    if not switches:
        return ()
    return (f"No model could be asked, so rules alone wrote this report. {switches[-1].reason}",)
