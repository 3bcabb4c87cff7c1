"""`hummingbird eval`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module

import click

from hummingbird.cli.options import config_file
from hummingbird.cli.placing import agreed, placed
from hummingbird.domain.eval_limits import EVAL_JOBS, EVAL_REPEATS


@click.command("eval")
@click.argument("cases", nargs=-1, metavar="[CASES]…")
@config_file
@click.option("--model", "models", multiple=True, metavar="NAME", help="Model to try; several: side by side.")
@click.option("--workflow", default="", metavar="NAME", help="Workflow to run (default: by the event of the case).")
@click.option("--repeat", type=click.IntRange(1, EVAL_REPEATS), default=1, show_default=True, help="Runs of each case.")
@click.option("--jobs", type=click.IntRange(1, EVAL_JOBS), default=1, show_default=True, help="Runs at once.")
@click.option("--record", type=click.Path(file_okay=False), metavar="DIR", help="Keep sessions in DIR/CASE/MODEL.")
@click.option("--replay", is_flag=True, help="Play recordings in place of models: no network, no key.")
@click.option(
    "--recordings",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="For --replay: what --record has filled (default: `recordings` in the folder of each case).",
)
@click.option("--max-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Ceiling for all runs.")
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 1),
    metavar="SCORE",
    help="Exit code 1 if the mean score of any model is lower, from 0 to 1.",
)
@placed
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each run, then one for each model.")
@click.option("--verbose", "-v", is_flag=True, help="Show what runs do, and tracebacks.")
def evaluate(
    *,
    cases: tuple[str, ...],
    config: str | None,
    models: tuple[str, ...],
    workflow: str,
    repeat: int,
    jobs: int,
    record: str | None,
    replay: bool,
    recordings: str | None,
    max_usd: float | None,
    fail_under: float | None,
    sandbox: str | None,
    context: str,
    namespace: str,
    as_json: bool,
    verbose: bool,
) -> None:
    """Run workflows over cases whose truth is known, and score the answers.

    CASES are names of built-in cases, folders with a case.json, or folders of such folders; without any, all built-in
    ones. Each is served by the lab on this machine and looked at as `hummingbird run` would: nothing is posted, no
    session is kept. Without --model it is the configured model, else the one of the key that is set, else rules.

    Scored are verdict, cause, evidence, findings and false claims; docs/eval.md says how. Ctrl-C gives what there is so
    far.

    \b
    Examples:
      hummingbird eval
      hummingbird eval compiler-error flaky-test --model digest
      hummingbird eval --model anthropic:claude-sonnet-5-5 --model gemini:gemini-3.8-flash --max-usd 5 --record runs
      hummingbird eval --replay --recordings runs --fail-under 0.8

    Exit code 1 means: a score below --fail-under, or that no case could be run at all.
    """
    agreed(sandbox, context, namespace)
    _agreed(record=record, replay=replay, recordings=recordings, max_usd=max_usd)
    work = import_module("hummingbird.cli.eval_work")
    wish = work.Wish(
        cases=cases,
        config=config,
        models=models,
        workflow=workflow,
        repeat=repeat,
        jobs=jobs,
        record=record,
        replay=replay,
        recordings=recordings,
        max_usd=max_usd,
        fail_under=fail_under,
        as_json=as_json,
        verbose=verbose,
    )
    sys.exit(work.run(wish, work.Chosen(sandbox or "", context, namespace)))


def _agreed(*, record: str | None, replay: bool, recordings: str | None, max_usd: float | None) -> None:
    if replay and record is not None:
        raise click.UsageError("--record and --replay exclude each other: a recording is made of a model's answers.")
    if recordings is not None and not replay:
        raise click.UsageError("--recordings is for --replay: add it, or leave this out.")
    if replay and max_usd is not None:
        raise click.UsageError("--max-usd is for models that are asked: what is replayed costs nothing.")
