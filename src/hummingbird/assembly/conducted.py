"""A run that has ended, read off its journal for whoever posts it. The same for one that ended in another process."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hummingbird.agent.outcomes import outcome_of
from hummingbird.agent.state import RunState
from hummingbird.agent.tools.findings import from_entries
from hummingbird.assembly.first_look import judged_in
from hummingbird.assembly.models import DIGEST
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.journal import TURN, Entry, ModelAnswered, ModelSwitched, RunEnded, RunStarted
from hummingbird.domain.runs import Outcome
from hummingbird.domain.transcript import transcript
from hummingbird.evidence.citations.checking import Checked, checked_together
from hummingbird.evidence.citations.coverage import covered
from hummingbird.evidence.citations.record import NOTHING_DIGESTED, Digested
from hummingbird.service.investigating import KNOWN_FAILURE, Conducted


def conducted(
    entries: Sequence[Entry],
    outcome: Outcome | None = None,
    *,
    failures: Sequence[FailureSeen] = (),
    trouble: Sequence[str] = (),
    known: Iterable[str] = (),
    digested: Digested = NOTHING_DIGESTED,
) -> Conducted:
    """`entries`: a session up to the end of the run. `outcome`: what the run gave back, if it has just ended; a journal
    may lack its end. `known`: addresses of the configuration. `digested`: what the run brought into its sandbox, where
    it was this process (N6)."""
    state = RunState.of(entries)
    outcome = outcome or outcome_of(state)
    reported = from_entries(entries, outcome.run_id)
    told = (outcome.text, *(finding.text for finding in reported))
    model = _answering(entries, outcome.run_id) or state.model
    ours = model == KNOWN_FAILURE
    checked = map(Checked, told) if ours else checked_together(told, entries, known=known, digested=digested)
    answer, *texts = checked
    findings = tuple(replace(one, told=text.text) for one, text in zip(reported, texts, strict=True))
    began = next((one.at for one in entries if isinstance(one, RunStarted) and one.run_id == outcome.run_id), 0.0)
    without = _without_models(entries, state)
    return Conducted(
        outcome=replace(outcome, text=answer.text),
        model=model,
        seconds=max(0.0, _end(entries, outcome.run_id) - began),
        transcript=_with_answer(transcript(entries, outcome.run_id), outcome.text, answer.text),
        failures=tuple(failures),
        findings=findings,
        trouble=(*without, *trouble),
        stopgap=bool(without),
        verdict=judged_in(entries, outcome.run_id),
        tallies=sum((text.tallies for text in texts), answer.tallies),
        coverage=covered(entries),
    )


def _with_answer(told: str, given: str, checked: str) -> str:
    """The transcript is posted too: the answer stands there as it may be read, and in the journal as it was given."""
    return told.replace(given.strip(), checked.strip()) if given.strip() and given != checked else told


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
