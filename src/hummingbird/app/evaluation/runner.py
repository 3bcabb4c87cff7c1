"""Runs `hummingbird eval`: prints one line per run to standard error, and the scores to standard output."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import click

from hummingbird.app.console import RunProgress, log_to_terminal, print_text
from hummingbird.app.evaluation.cases import FAILED_CHARS
from hummingbird.app.evaluation.cases import select_cases as chosen_cases
from hummingbird.app.evaluation.report import results_json_lines, results_markdown, worst_mean_score
from hummingbird.app.evaluation.trials import (
    Trial,
    TrialResult,
    TrialSettings,
    find_recordings,
    recording_path,
    run_trial,
)
from hummingbird.app.model_choice import default_model
from hummingbird.app.run import check_model
from hummingbird.app.run_request import RunEnvironment
from hummingbird.app.sandboxes import SandboxChoice, check_sandbox_choice
from hummingbird.config.configuration import Configuration
from hummingbird.config.loader import find_config, load_config
from hummingbird.core.errors import UsageError
from hummingbird.core.text import shorten_line
from hummingbird.evidence.printable import make_printable
from hummingbird.lab.case import LabCase

TrialReporter = Callable[[TrialResult], None]


async def run_trials(
    trials: Sequence[Trial],
    setting: TrialSettings,
    report: TrialReporter,
    *,
    jobs: int = 1,
    max_usd: Decimal | None = None,
) -> None:
    """Run the trials and report each when it has ended.

    All of them together spend at most `max_usd`; those for which nothing is left are reported as not run. A
    cancellation ends the active ones.
    """
    slots, purse = asyncio.Semaphore(jobs), SharedBudget(max_usd, jobs)

    async def run_one(trial: Trial) -> None:
        async with slots:
            with purse.share() as share:
                if share is not None and share <= 0:
                    report(TrialResult(trial=trial, failed="It was not run: what --max-usd allows is spent."))
                    return
                done = await run_trial(trial, setting, share)
                if trial.recording is None:
                    purse.pay(done.bill.known_usd)
                report(done)

    async with asyncio.TaskGroup() as group:
        for trial in trials:
            group.create_task(run_one(trial))


class SharedBudget:
    """A budget for parallel runs: each gets an equal part of the rest, so that together they cannot spend more."""

    def __init__(self, usd: Decimal | None, jobs: int) -> None:
        self._left, self._idle = usd, jobs

    @contextmanager
    def share(self) -> Iterator[Decimal | None]:
        """Yield the part of one run; None without a limit."""
        part = None if self._left is None else max(Decimal(0), self._left / self._idle)
        self._reserve(part, -1)
        try:
            yield part
        finally:
            self._reserve(-part if part is not None else None, 1)

    def pay(self, usd: Decimal) -> None:
        if self._left is not None:
            self._left -= usd

    def _reserve(self, part: Decimal | None, idle: int) -> None:
        self._idle += idle
        if part is not None and self._left is not None:
            self._left -= part


def plan_trials(
    cases: Sequence[LabCase], models: Sequence[str], *, workflow: str = "", repeat: int = 1, record: Path | None = None
) -> list[Trial]:
    """Return a trial for each case and model, with all models of a case next to each other.

    Raises UsageError.
    """
    return [
        Trial(
            case=case,
            model=model,
            workflow=workflow,
            number=number,
            record_to=None if record is None else recording_path(record, case, model, number),
        )
        for case in cases
        for model in models
        for number in range(1, repeat + 1)
    ]


def plan_replays(
    cases: Sequence[LabCase], folder: Path | None, models: Sequence[str], *, workflow: str = "", repeat: int = 1
) -> tuple[list[Trial], list[str]]:
    """Return a trial for each recording, and the names of the cases that have none.

    Raises UsageError if there is no recording at all.
    """
    found = [(case, find_recordings(case, folder, models)) for case in cases]
    trials = [
        Trial(case=case, model=recording.model, workflow=workflow, number=number, recording=recording)
        for case, recordings in found
        for recording in recordings
        for number in range(1, repeat + 1)
    ]
    if not trials:
        where = "in their folders" if folder is None else f"in {folder}"
        raise UsageError(f"None of these cases has a recording {where}: make one with --record DIR.")
    return trials, [case.name for case, recordings in found if not recordings]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """The arguments of `hummingbird eval`."""

    cases: tuple[str, ...] = ()
    config: str | None = None
    models: tuple[str, ...] = ()
    workflow: str = ""
    repeat: int = 1
    jobs: int = 1
    record: str | None = None
    replay: bool = False
    recordings: str | None = None
    max_usd: float | None = None
    fail_under: float | None = None
    as_json: bool = False
    verbose: bool = False


def eval_command(request: EvaluationRequest, chosen: SandboxChoice) -> int:
    """Run `hummingbird eval` and return its exit code.

    Raises HummingbirdError if it cannot start.
    """
    configuration = load_config(
        find_config(request.config, os.environ, Path.cwd()), None
    )  # of no real GitLab is a token needed
    check_sandbox_choice(configuration.settings, chosen)
    if request.workflow and request.workflow not in configuration.workflows:
        known = ", ".join(configuration.workflows) or "none"
        raise UsageError(f"There is no workflow {request.workflow!r} in {configuration.name}. There are: {known}.")
    trials = _plan_from_request(request, configuration)
    setting = TrialSettings(
        configuration=configuration,
        environment=os.environ,
        chosen=chosen,
        on_event=RunProgress(verbose=True) if request.verbose else None,
    )
    results: list[TrialResult] = []
    try:
        with log_to_terminal(configuration, verbose=request.verbose):
            asyncio.run(_run_and_report(trials, setting, request, results))
    except KeyboardInterrupt:
        _print_error(f"Interrupted: {len(results)} of {len(trials)} runs had ended.")
        _print_results(results, request)
        raise
    return _print_results(results, request)


def _plan_from_request(request: EvaluationRequest, configuration: Configuration) -> Sequence[Trial]:
    cases = chosen_cases(request.cases)
    if not request.replay:
        record = Path(request.record) if request.record else None
        models = list(dict.fromkeys(request.models)) or [configuration.settings.model or default_model(os.environ)]
        for model in models:
            asyncio.run(check_model(model, RunEnvironment(configuration=configuration, environment=os.environ)))
        return plan_trials(cases, models, workflow=request.workflow, repeat=request.repeat, record=record)
    folder = Path(request.recordings) if request.recordings else None
    trials, without = plan_replays(cases, folder, request.models, workflow=request.workflow, repeat=request.repeat)
    if without:
        _print_error(f"Without a recording, and left out: {', '.join(without)}.")
    return trials


async def _run_and_report(
    trials: Sequence[Trial], setting: TrialSettings, request: EvaluationRequest, results: list[TrialResult]
) -> None:
    def report(result: TrialResult) -> None:
        results.append(result)
        _print_error(f"[{len(results)}/{len(trials)}] {_result_line(result)}")

    ceiling = None if request.max_usd is None else Decimal(str(request.max_usd))
    await run_trials(trials, setting, report, jobs=request.jobs, max_usd=ceiling)


def _result_line(result: TrialResult) -> str:
    trial = result.trial
    repeat = f" #{trial.number}" if trial.number > 1 else ""
    how = f"failed: {shorten_line(result.failed, FAILED_CHARS)}" if result.scores is None else _score_text(result.total)
    return f"{trial.case.name}{repeat}, {trial.model}: {how}"


def _print_results(results: Sequence[TrialResult], request: EvaluationRequest) -> int:
    """Print the results and return the exit code."""
    if results:
        print_text(results_json_lines(results) if request.as_json else results_markdown(results))
    if all(result.scores is None for result in results):
        _print_error("hummingbird: No case could be run.")
        return 1
    score = worst_mean_score(results)
    if score is None:
        _print_error("hummingbird: Nothing was scored: say in `expected` of a case.json what a good answer finds.")
        return int(request.fail_under is not None)
    if request.fail_under is not None and score < request.fail_under:
        _print_error(f"hummingbird: The score {score:.3f} is below --fail-under {request.fail_under:g}.")
        return 1
    return 0


def _score_text(total: float | None) -> str:
    return "not scored" if total is None else f"{total:.2f}"


def _print_error(sentence: str) -> None:
    click.echo(make_printable(sentence), err=True)
