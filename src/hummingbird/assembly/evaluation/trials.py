"""One trial: a case served on this machine, a workflow run on it as `hummingbird run` would, and its answer scored.

Nothing is posted, and the session is gone afterwards unless it is recorded. What fails to run is a result as well, with
the sentence that says why.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from hummingbird.adapters.stores.journal import read
from hummingbird.assembly.asking import Nothing
from hummingbird.assembly.conducted import conducted as conducted_of
from hummingbird.assembly.evaluation.cases import CASE_FILE
from hummingbird.assembly.evaluation.claims import claims_of
from hummingbird.assembly.evaluation.expected import expected_of
from hummingbird.assembly.evaluation.pointing import environment_of, pointed, workflow_for
from hummingbird.assembly.evaluation.recordings import PLAYED, Recording, answers, keep
from hummingbird.assembly.evaluation.scores import Scores, scores
from hummingbird.assembly.run_parts import Parts, Ran, Wish
from hummingbird.assembly.running import run
from hummingbird.assembly.sandboxes import Chosen
from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import HummingbirdError, UsageFault
from hummingbird.domain.eval_limits import CASE_BYTES
from hummingbird.domain.journal import Entry, ModelFailed, ModelSwitched
from hummingbird.domain.sessions import JOURNAL
from hummingbird.domain.usage import Bill, total
from hummingbird.lab.case import Case
from hummingbird.lab.gitlab.loading import BrokenCase
from hummingbird.lab.konflux.objects import Unplayable
from hummingbird.lab.scene import Scene
from hummingbird.ports.observer import Observer

SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """`model`: as it is told in tables. `recording`: whose answers are played; without one the model is asked.
    `kept`: the journal that it leaves, if it is to leave one. `number`: the first repeat is 1."""

    case: Case
    model: str
    workflow: str = ""
    number: int = 1
    recording: Recording | None = None
    kept: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`scores` None: it could not be run, and `failed` says why. The bill and the seconds of a recording are those
    of the session that was recorded."""

    trial: Trial
    workflow: str = ""
    scores: Scores | None = None
    failed: str = ""
    bill: Bill = field(default_factory=lambda: total(()))
    seconds: float = 0.0
    turns: int = 0

    @property
    def total(self) -> float | None:
        return 0.0 if self.scores is None else self.scores.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all trials of an evaluation have in common. `environment` is the whole one; runs are given less."""

    configuration: Configuration
    environment: Mapping[str, str]
    chosen: Chosen = field(default_factory=Chosen)
    on_event: Observer | None = None


async def tried(trial: Trial, setting: Setting, most_usd: Decimal | None = None) -> Result:
    """Never raises for what is wrong with a case, a model or a sandbox. Cancelling it leaves nothing behind."""
    with tempfile.TemporaryDirectory(prefix="hummingbird-eval-") as made:
        try:
            return await _tried(trial, setting, Path(made), most_usd)
        except HummingbirdError as error:
            return Result(trial=trial, workflow=trial.workflow, failed=str(error))


async def _tried(trial: Trial, setting: Setting, folder: Path, most_usd: Decimal | None) -> Result:
    expected = expected_of(trial.case.name, _about(trial.case))
    workflow = trial.workflow or workflow_for(setting.configuration, _kind(trial.case))
    journal = folder / SESSION / JOURNAL
    with _served(trial.case) as scene:
        ran = await _ran(trial, workflow, setting, scene, folder=folder, most_usd=most_usd)
        entries = read(journal)
        failed = _why_not(trial, ran, entries)
        if trial.kept is not None and not failed:
            keep(journal, trial.kept, scene.addresses)
    done = ran.conducted
    then = done if trial.recording is None else conducted_of(trial.recording.entries)
    result = Result(
        trial=trial,
        workflow=workflow,
        failed=_named(failed, trial, folder),
        bill=then.outcome.bill,
        seconds=then.seconds,
        turns=done.outcome.iterations,
    )
    if failed:
        return result
    reported = [(finding.path, finding.line) for finding in done.findings]
    claims, answer = claims_of(done.tallies), done.outcome.text
    return replace(result, scores=scores(expected, answer, reported, claims=claims, verdict=done.verdict))


def _named(sentence: str, trial: Trial, folder: Path) -> str:
    """A recording is told by its own place, not by that of the copy that was played."""
    if trial.recording is None or not sentence:
        return sentence
    told = sentence.replace(f"replay:{folder / PLAYED}", str(trial.recording.journal))
    return f"{told} Record it again with --record."


async def _ran(
    trial: Trial, workflow: str, setting: Setting, scene: Scene, *, folder: Path, most_usd: Decimal | None
) -> Ran:
    """Raises HummingbirdError."""
    model = trial.model
    if trial.recording is not None:
        model = f"replay:{trial.recording.placed(scene.addresses, folder)}"
    parts = Parts(
        configuration=pointed(setting.configuration, scene, most_usd),
        environment=environment_of(setting.environment, scene, folder),
        chosen=setting.chosen,
        on_event=setting.on_event,
    )
    project = scene.worlds.gitlab.project.path
    wish = Wish(workflow=workflow, project=project, event=_event(scene), save=str(folder / SESSION), model=model)
    told: list[Ran | Nothing] = []
    await run(parts, wish, None, told.append)
    (done,) = told
    if isinstance(done, Nothing):
        raise UsageFault(done.sentence)
    return done


def _event(scene: Scene) -> str:
    """What `--event` would say."""
    request = scene.worlds.gitlab.merge_request
    told = {
        "iid": request.iid,
        "sha": request.sha,
        "pipeline_id": scene.case.about["event"].get("pipeline"),
        "target_branch": request.target_branch,
    }
    return json.dumps({name: value for name, value in told.items() if value})


def _why_not(trial: Trial, ran: Ran, entries: Sequence[Entry]) -> str:
    """Why this answer is not the model's own; empty if it is."""
    outcome = ran.conducted.outcome
    if switched := next((one for one in entries if isinstance(one, ModelSwitched)), None):
        return f"{trial.model} could not be asked: {switched.reason}"
    if not outcome.answered:
        said = [entry.sentence for entry in entries if isinstance(entry, ModelFailed)]
        return said[-1] if said else outcome.sentence
    if trial.recording is not None and (left := trial.recording.turns - len(answers(entries))) > 0:
        return f"The run ended {left} turns before its recording did."
    return ""


def _about(case: Case) -> Mapping[str, object]:
    """Raises UsageFault."""
    try:
        if (case.folder / CASE_FILE).stat().st_size > CASE_BYTES:
            raise UsageFault(f"case.json of {case.name} is larger than {CASE_BYTES:,} bytes. Mend it.")
        found = case.json(CASE_FILE)
    except (ValueError, OSError) as error:
        raise UsageFault(f"The case {case.name} cannot be read: {error}") from error
    missing = [key for key in ("event", "now") if not isinstance(found, dict) or key not in found]
    if missing:
        raise UsageFault(f"case.json of {case.name} says no {missing[0]}. Add it.")
    return found  # type: ignore[no-any-return]


def _kind(case: Case) -> str:
    event = case.about["event"]
    kind = event.get("kind") if isinstance(event, dict) else None
    if kind not in ("pipeline", "merge_request"):
        raise UsageFault(f"case.json of {case.name}: event.kind is neither pipeline nor merge_request. Mend it.")
    return str(kind)


@contextmanager
def _served(case: Case) -> Iterator[Scene]:
    """Raises UsageFault for a case that cannot be served; what happens inside is not translated."""
    scene = Scene(case)
    try:
        scene.__enter__()
    except (BrokenCase, Unplayable, ValueError, OSError) as error:
        raise UsageFault(f"The case {case.name} cannot be served: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageFault(f"The case {case.name} cannot be served: something is missing in it ({error!r}).") from error
    try:
        yield scene
    finally:
        scene.__exit__(None, None, None)
