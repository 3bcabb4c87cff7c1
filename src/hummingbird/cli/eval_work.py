"""`hummingbird eval`: progress on standard error, one line a run; the scores on standard output."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import click

from hummingbird.assembly.evaluation.cases import chosen as chosen_cases
from hummingbird.assembly.evaluation.evaluating import evaluated, planned, replayed
from hummingbird.assembly.evaluation.summary import overall
from hummingbird.assembly.evaluation.trials import Result, Setting, Trial
from hummingbird.assembly.executing import check_model
from hummingbird.assembly.models import default_model
from hummingbird.assembly.run_parts import Parts
from hummingbird.assembly.sandboxes import Chosen, check_chosen
from hummingbird.cli.eval_page import json_lines, markdown
from hummingbird.cli.lines import logged
from hummingbird.cli.printing import printed
from hummingbird.cli.progress import Progress
from hummingbird.config.configuration import Configuration
from hummingbird.config.load import find, load
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.eval_limits import FAILED_CHARS
from hummingbird.domain.text import shortened
from hummingbird.evidence.visible import visible

__all__ = ["Chosen", "Wish", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was typed."""

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


def run(wish: Wish, chosen: Chosen) -> int:
    """Raises HummingbirdError for what it cannot begin with."""
    configuration = load(find(wish.config, os.environ, Path.cwd()), None)  # of no real GitLab is a token needed
    check_chosen(configuration.settings, chosen)
    if wish.workflow and wish.workflow not in configuration.workflows:
        known = ", ".join(configuration.workflows) or "none"
        raise UsageFault(f"There is no workflow {wish.workflow!r} in {configuration.name}. There are: {known}.")
    trials = _trials(wish, configuration)
    setting = Setting(
        configuration=configuration,
        environment=os.environ,
        chosen=chosen,
        on_event=Progress(verbose=True) if wish.verbose else None,
    )
    results: list[Result] = []
    try:
        with logged(configuration, verbose=wish.verbose):
            asyncio.run(_through(trials, setting, wish, results))
    except KeyboardInterrupt:
        _tell(f"Interrupted: {len(results)} of {len(trials)} runs had ended.")
        _shown(results, wish)
        raise
    return _shown(results, wish)


def _trials(wish: Wish, configuration: Configuration) -> Sequence[Trial]:
    cases = chosen_cases(wish.cases)
    if not wish.replay:
        record = Path(wish.record) if wish.record else None
        models = list(dict.fromkeys(wish.models)) or [configuration.settings.model or default_model(os.environ)]
        for model in models:
            asyncio.run(check_model(model, Parts(configuration=configuration, environment=os.environ)))
        return planned(cases, models, workflow=wish.workflow, repeat=wish.repeat, record=record)
    folder = Path(wish.recordings) if wish.recordings else None
    trials, without = replayed(cases, folder, wish.models, workflow=wish.workflow, repeat=wish.repeat)
    if without:
        _tell(f"Without a recording, and left out: {', '.join(without)}.")
    return trials


async def _through(trials: Sequence[Trial], setting: Setting, wish: Wish, results: list[Result]) -> None:
    def told(result: Result) -> None:
        results.append(result)
        _tell(f"[{len(results)}/{len(trials)}] {_line(result)}")

    ceiling = None if wish.max_usd is None else Decimal(str(wish.max_usd))
    await evaluated(trials, setting, told, jobs=wish.jobs, max_usd=ceiling)


def _line(result: Result) -> str:
    trial = result.trial
    repeat = f" #{trial.number}" if trial.number > 1 else ""
    how = f"failed: {shortened(result.failed, FAILED_CHARS)}" if result.scores is None else _scored(result.total)
    return f"{trial.case.name}{repeat}, {trial.model}: {how}"


def _shown(results: Sequence[Result], wish: Wish) -> int:
    """The exit code that they mean."""
    if results:
        printed(json_lines(results) if wish.as_json else markdown(results))
    if all(result.scores is None for result in results):
        _tell("hummingbird: No case could be run.")
        return 1
    score = overall(results)
    if score is None:
        _tell("hummingbird: Nothing was scored: say in `expected` of a case.json what a good answer finds.")
        return int(wish.fail_under is not None)
    if wish.fail_under is not None and score < wish.fail_under:
        _tell(f"hummingbird: The score {score:.3f} is below --fail-under {wish.fail_under:g}.")
        return 1
    return 0


def _scored(total: float | None) -> str:
    return "not scored" if total is None else f"{total:.2f}"


def _tell(sentence: str) -> None:
    click.echo(visible(sentence), err=True)
