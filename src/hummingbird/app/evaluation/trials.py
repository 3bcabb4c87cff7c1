"""Runs one trial: serves a case on this machine, runs a workflow on it like `hummingbird run`, and scores the answer.

Nothing is posted, and the session is deleted unless it is recorded. A trial that cannot be run has a result, too, with
the reason.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import msgspec

from hummingbird.agent.tools.results import fence_untrusted
from hummingbird.app.evaluation.cases import CASE_BYTES, CASE_FILE, RECORDING_BYTES, parse_expected
from hummingbird.app.evaluation.scores import TrialScores, count_claims, score_answer
from hummingbird.app.investigation import result_from_journal
from hummingbird.app.run import run_orders
from hummingbird.app.run_request import FinishedRun, NothingToRun, RunEnvironment, RunRequest
from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.app.stores import HOME_VARIABLE
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, Configuration
from hummingbird.config.env_requirements import SECRET_VARIABLE
from hummingbird.config.loader import READ_VARIABLE
from hummingbird.config.settings import (
    DataSourceSettings,
    GitLabSourceSettings,
    KonfluxSourceSettings,
    ProjectSettings,
    TestingFarmSourceSettings,
    WorkflowSettings,
)
from hummingbird.core.errors import HummingbirdError, SessionUnreadable, UsageError
from hummingbird.core.journal import (
    TURN,
    JournalEntry,
    ModelAnswered,
    ModelFailed,
    ModelSwitched,
    ToolFinished,
    dump_entry,
    load_entry,
)
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.sessions import JOURNAL
from hummingbird.core.usage import Bill, sum_charges
from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab.case_loader import BrokenCase
from hummingbird.lab.konflux.world import UnservableObject
from hummingbird.lab.scene import Scene
from hummingbird.storage.journals import read_journal

# A recording is a journal in which the addresses of the stand-ins are placeholders. It is in `recordings/MODEL/` of the
# case's folder, or in `CASE/MODEL/` of a folder that somebody named. Recordings are never overwritten.


RECORDINGS_FOLDER = "recordings"
PLAYED_FILE = "played.jsonl"
_FENCED_RESULT = re.compile(
    r'<untrusted tool="(?P<tool>[^"\n]*)" id="(?P<mark>[0-9a-f]{16})">\n(?P<content>.*?)\n</untrusted id="(?P=mark)">',
    re.DOTALL,
)
_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True, slots=True)
class TrialRecording:
    """The recorded answers of a model; `turns` counts them."""

    journal: Path
    model: str
    entries: Sequence[JournalEntry]

    @property
    def turns(self) -> int:
        return len(model_answers(self.entries))

    def write_playable_copy(self, addresses: Mapping[str, str], folder: Path) -> Path:
        """Write a copy with the current addresses and with the fences that belong to them; return its path."""
        text = self.journal.read_text(encoding="utf-8")
        for name, address in addresses.items():
            text = text.replace("{{" + name + "}}", address)
        lines = enumerate(filter(None, text.split("\n")), 1)
        target = folder / PLAYED_FILE
        target.write_bytes(
            b"".join(dump_entry(_renew_fences(load_entry(line.encode(), number))) for number, line in lines)
        )
        return target


def _renew_fences(entry: JournalEntry) -> JournalEntry:
    """Replace the marks of fences, which are digests of their content."""
    if not isinstance(entry, ToolFinished):
        return entry
    text = _FENCED_RESULT.sub(lambda found: fence_untrusted(found["content"], found["tool"]), entry.text)
    return msgspec.structs.replace(entry, text=text)


def model_answers(entries: Sequence[JournalEntry]) -> list[ModelAnswered]:
    return [entry for entry in entries if isinstance(entry, ModelAnswered) and entry.purpose == TURN]


def find_recordings(case: LabCase, folder: Path | None, models: Sequence[str]) -> list[TrialRecording]:
    """Return the recordings of a case, for these models or for all.

    Raises UsageError for a recording that cannot be read.
    """
    place = case.folder / RECORDINGS_FOLDER if folder is None else folder / case.name
    found = [_load_recording(journal) for journal in sorted(place.glob(f"*/{JOURNAL}"))]
    return [one for one in found if not models or one.model in models]


def _load_recording(journal: Path) -> TrialRecording:
    try:
        if journal.stat().st_size > RECORDING_BYTES:
            raise SessionUnreadable(f"it is larger than {RECORDING_BYTES:,} bytes.")
        entries = read_journal(journal)
    except (HummingbirdError, OSError) as error:
        raise UsageError(f"The recording {journal} cannot be played: {error} Record it again.") from error
    if not (spoken := model_answers(entries)):
        raise UsageError(f"The recording {journal} holds no model answer: record it again.")
    return TrialRecording(journal, spoken[-1].model, entries)


def recording_path(folder: Path, case: LabCase, model: str, number: int) -> Path:
    """Return where to save a recording.

    Raises UsageError if there is one already.
    """
    name = _NOT_IN_NAMES.sub("_", model) + (f"-{number}" if number > 1 else "")
    target = folder / case.name / name / JOURNAL
    if target.exists():
        raise UsageError(f"{target} was recorded before: remove it, or name another folder for --record.")
    return target


def save_recording(journal: Path, target: Path, addresses: Mapping[str, str]) -> None:
    """Save a recording.

    Raises UsageError.
    """
    try:
        text = journal.read_text(encoding="utf-8")
        for name, address in addresses.items():
            text = text.replace(address, "{{" + name + "}}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The recording {target} cannot be written: {error.strerror}. Name another folder.") from error


# A trial keeps the prompts, models, limits and prices of the configuration and replaces addresses, tokens and stores.
# It removes fallback models: otherwise nobody would know which model was scored.


KUBECONFIG_VARIABLE = "EVAL_KUBECONFIG"


def point_at_scene(configuration: Configuration, scene: Scene, most_usd: Decimal | None = None) -> Configuration:
    """Return the configuration with the lab's addresses; no run may spend more than `most_usd`."""
    usual = configuration.settings.budgets
    workflows = {
        name: _point_workflow(workflow, scene, usual.usd_per_run, most_usd)
        for name, workflow in configuration.workflows.items()
    }
    changed = {
        "session_store": "",
        "s3_session_bucket": "",
        "gitlab_url": scene.url("gitlab"),
        "budgets": usual.model_copy(update={"usd_per_day": None}),  # what the service spends is its own
    }
    settings = configuration.settings.model_copy(update=changed)
    return replace(configuration, settings=settings, workflows=MappingProxyType(workflows))


def _point_workflow(
    workflow: WorkflowSettings, scene: Scene, usual: Decimal | None, most_usd: Decimal | None
) -> WorkflowSettings:
    ceilings = [one for one in (workflow.budgets.usd_per_run or usual, most_usd) if one is not None]
    spending = {"usd_per_run": min(ceilings, default=None), "usd_per_day": None}
    changed = {
        "data_sources": _scene_sources(scene),
        "projects": {"*": ProjectSettings()},
        "fallback_models": (),
        "budgets": workflow.budgets.model_copy(update=spending),
    }
    return workflow.model_copy(update=changed)


def _scene_sources(scene: Scene) -> DataSourceSettings:
    gitlab = GitLabSourceSettings(token_env=READ_VARIABLE)
    if not scene.case.list_files("konflux"):
        return DataSourceSettings(gitlab=gitlab)
    konflux = KonfluxSourceSettings(
        cluster_url=scene.cluster_url, kubeconfig_env=KUBECONFIG_VARIABLE, kubearchive_url=scene.url("kubearchive")
    )
    farm = TestingFarmSourceSettings(
        api_url=scene.url("testing_farm"), artifacts=(f"{scene.url('artifacts')}/",), private_addresses=True
    )
    return DataSourceSettings(gitlab=gitlab, konflux=konflux, testing_farm=farm)


def trial_environment(environment: Mapping[str, str], scene: Scene, folder: Path) -> dict[str, str]:
    """Return the environment of a trial, in which nothing belongs to a real GitLab."""
    kept = {name: value for name, value in environment.items() if not name.startswith(ORCHESTRATOR_VARIABLE)}
    kept.pop(SECRET_VARIABLE, None)
    return kept | {
        HOME_VARIABLE: str(folder),
        ORCHESTRATOR_VARIABLE: scene.write_token,
        READ_VARIABLE: scene.read_token,
        KUBECONFIG_VARIABLE: str(scene.write_kubeconfig(folder / "kubeconfig")),
    }


def find_workflow(configuration: Configuration, kind: str) -> str:
    """Return the first workflow that such an event would start; reviews may start by command only.

    Raises UsageError.
    """
    for name, workflow in configuration.workflows.items():
        reviews = workflow.trigger == "merge_request" or (workflow.inline_findings and workflow.trigger is None)
        if (kind == "merge_request" and reviews) or (kind == "pipeline" and workflow.trigger == "pipeline"):
            return name
    known = ", ".join(configuration.workflows) or "none"
    raise UsageError(
        f"No workflow of {configuration.name} begins with a {kind}: name one with --workflow. There are: {known}."
    )


SESSION_FOLDER = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run to score.

    `model` is its name in tables. With a `recording`, its answers are replayed instead of asking the model. `kept` is
    where to record the session. `number` counts repeats from 1.
    """

    case: LabCase
    model: str
    workflow: str = ""
    number: int = 1
    recording: TrialRecording | None = None
    record_to: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of a trial. If it could not be run, `scores` is None and `failed` says why.

    Cost and seconds of a replay are those of the recorded session.
    """

    trial: Trial
    workflow: str = ""
    scores: TrialScores | None = None
    failed: str = ""
    bill: Bill = field(default_factory=lambda: sum_charges(()))
    seconds: float = 0.0
    turns: int = 0

    @property
    def total(self) -> float | None:
        return 0.0 if self.scores is None else self.scores.total


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettings:
    """What all trials of an evaluation share. `environment` is complete; runs get less of it."""

    configuration: Configuration
    environment: Mapping[str, str]
    chosen: SandboxChoice = field(default_factory=SandboxChoice)
    on_event: RunObserver | None = None


async def run_trial(trial: Trial, setting: TrialSettings, most_usd: Decimal | None = None) -> TrialResult:
    """Run a trial. It does not raise for a broken case, model or sandbox; a cancellation leaves nothing behind."""
    with tempfile.TemporaryDirectory(prefix="hummingbird-eval-") as made:
        try:
            return await _run_in_folder(trial, setting, Path(made), most_usd)
        except HummingbirdError as error:
            return TrialResult(trial=trial, workflow=trial.workflow, failed=str(error))


async def _run_in_folder(trial: Trial, setting: TrialSettings, folder: Path, most_usd: Decimal | None) -> TrialResult:
    expected = parse_expected(trial.case.name, _read_case_file(trial.case))
    workflow = trial.workflow or find_workflow(setting.configuration, _event_kind(trial.case))
    journal = folder / SESSION_FOLDER / JOURNAL
    with _serve_case(trial.case) as scene:
        ran = await _run_workflow(trial, workflow, setting, scene, folder=folder, most_usd=most_usd)
        entries = read_journal(journal)
        failed = _failure_reason(trial, ran, entries)
        if trial.record_to is not None and not failed:
            save_recording(journal, trial.record_to, scene.addresses)
    done = ran.result
    then = done if trial.recording is None else result_from_journal(trial.recording.entries)
    result = TrialResult(
        trial=trial,
        workflow=workflow,
        failed=_name_recording(failed, trial, folder),
        bill=then.outcome.bill,
        seconds=then.seconds,
        turns=done.outcome.iterations,
    )
    if failed:
        return result
    reported = [(finding.path, finding.line) for finding in done.findings]
    claims, answer = count_claims(done.tallies), done.outcome.text
    return replace(result, scores=score_answer(expected, answer, reported, claims=claims, verdict=done.verdict))


def _name_recording(sentence: str, trial: Trial, folder: Path) -> str:
    """Name the recording itself in the sentence, not the copy that was replayed."""
    if trial.recording is None or not sentence:
        return sentence
    named = sentence.replace(f"replay:{folder / PLAYED_FILE}", str(trial.recording.journal))
    return f"{named} Record it again with --record."


async def _run_workflow(
    trial: Trial, workflow: str, setting: TrialSettings, scene: Scene, *, folder: Path, most_usd: Decimal | None
) -> FinishedRun:
    """Run the workflow on the scene.

    Raises HummingbirdError.
    """
    model = trial.model
    if trial.recording is not None:
        model = f"replay:{trial.recording.write_playable_copy(scene.addresses, folder)}"
    parts = RunEnvironment(
        configuration=point_at_scene(setting.configuration, scene, most_usd),
        environment=trial_environment(setting.environment, scene, folder),
        chosen=setting.chosen,
        on_event=setting.on_event,
    )
    project = scene.worlds.gitlab.project.path
    request = RunRequest(
        workflow=workflow, project=project, event=_event_option(scene), save=str(folder / SESSION_FOLDER), model=model
    )
    reported: list[FinishedRun | NothingToRun] = []
    await run_orders(parts, request, None, reported.append)
    (done,) = reported
    if isinstance(done, NothingToRun):
        raise UsageError(done.sentence)
    return done


def _event_option(scene: Scene) -> str:
    """Return what would be the value of `--event`."""
    request = scene.worlds.gitlab.merge_request
    fields = {
        "iid": request.iid,
        "sha": request.sha,
        "pipeline_id": scene.case.description["event"].get("pipeline"),
        "target_branch": request.target_branch,
    }
    return json.dumps({name: value for name, value in fields.items() if value})


def _failure_reason(trial: Trial, ran: FinishedRun, entries: Sequence[JournalEntry]) -> str:
    """Return why the answer is not the model's own; empty if it is."""
    outcome = ran.result.outcome
    if switched := next((one for one in entries if isinstance(one, ModelSwitched)), None):
        return f"{trial.model} could not be asked: {switched.reason}"
    if not outcome.answered:
        said = [entry.sentence for entry in entries if isinstance(entry, ModelFailed)]
        return said[-1] if said else outcome.sentence
    if trial.recording is not None and (left := trial.recording.turns - len(model_answers(entries))) > 0:
        return f"The run ended {left} turns before its recording did."
    return ""


def _read_case_file(case: LabCase) -> Mapping[str, object]:
    """Return the content of case.json.

    Raises UsageError.
    """
    try:
        if (case.folder / CASE_FILE).stat().st_size > CASE_BYTES:
            raise UsageError(f"case.json of {case.name} is larger than {CASE_BYTES:,} bytes. Fix it.")
        found = case.read_json(CASE_FILE)
    except (ValueError, OSError) as error:
        raise UsageError(f"The case {case.name} cannot be read: {error}") from error
    missing = [key for key in ("event", "now") if not isinstance(found, dict) or key not in found]
    if missing:
        raise UsageError(f"case.json of {case.name} says no {missing[0]}. Add it.")
    return found  # type: ignore[no-any-return]


def _event_kind(case: LabCase) -> str:
    event = case.description["event"]
    kind = event.get("kind") if isinstance(event, dict) else None
    if kind not in ("pipeline", "merge_request"):
        raise UsageError(f"case.json of {case.name}: event.kind is neither pipeline nor merge_request. Fix it.")
    return str(kind)


@contextmanager
def _serve_case(case: LabCase) -> Iterator[Scene]:
    """Serve the case while the block runs; errors inside the block are not translated.

    Raises UsageError for a case that cannot be served.
    """
    scene = Scene(case)
    try:
        scene.__enter__()
    except (BrokenCase, UnservableObject, ValueError, OSError) as error:
        raise UsageError(f"The case {case.name} cannot be served: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"The case {case.name} cannot be served: something is missing in it ({error!r}).") from error
    try:
        yield scene
    finally:
        scene.__exit__(None, None, None)
