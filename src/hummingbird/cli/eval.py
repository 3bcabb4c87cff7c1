"""The options of `hummingbird eval`. app.evaluation.runner does the work and is imported only when the command runs."""

import sys

import click

from hummingbird.app.evaluation.cases import EVAL_JOBS, EVAL_REPEATS
from hummingbird.cli.options import (
    check_sandbox_options,
    complete_case,
    complete_model,
    complete_workflow,
    config_option,
    sandbox_options,
)


@click.command("eval")
@click.argument("cases", nargs=-1, metavar="[CASES]…", shell_complete=complete_case)
@config_option
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_model,
    help="Model to evaluate; repeat the option to compare several.",
)
@click.option(
    "--workflow",
    default="",
    metavar="NAME",
    shell_complete=complete_workflow,
    help="Workflow to run (default: the one that the case's event starts).",
)
@click.option(
    "--repeat", type=click.IntRange(1, EVAL_REPEATS), default=1, show_default=True, help="How often to run each case."
)
@click.option(
    "--jobs", type=click.IntRange(1, EVAL_JOBS), default=1, show_default=True, help="How many runs may go on at once."
)
@click.option("--record", type=click.Path(file_okay=False), metavar="DIR", help="Save sessions to DIR/CASE/MODEL.")
@click.option("--replay", is_flag=True, help="Replay recorded answers instead of asking models: no network, no key.")
@click.option(
    "--recordings",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="For --replay: a folder written by --record (default: `recordings` in the folder of each case).",
)
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Spend at most this much on all runs together.",
)
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 1),
    metavar="SCORE",
    help="Exit with code 1 if any model's mean score is below SCORE (0 to 1).",
)
@sandbox_options
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per run, then one per model.")
@click.option("--verbose", "-v", is_flag=True, help="Show what the runs do, and tracebacks.")
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
    """Run workflows on cases with known answers and score them.

    CASES are names of built-in cases, folders with a case.json, or folders of such folders; the default is all built-in
    cases. The lab serves each case on this machine, and eval runs it like `hummingbird run`: it posts nothing and keeps
    no session. Without --model, eval uses the configured model, else the model of the API key that is set, else
    built-in rules.

    Eval scores verdict, cause, evidence, findings and false claims; docs/eval.md explains how. Ctrl-C stops and prints
    the results so far.

    \b
    Examples:
      hummingbird eval
      hummingbird eval compiler-error flaky-test --model digest
      hummingbird eval --model anthropic:claude-sonnet-5-5 --model gemini:gemini-3.8-flash --max-usd 5 --record runs
      hummingbird eval --replay --recordings runs --fail-under 0.8

    Exit code 1: a score is below --fail-under, or no case could be run.
    """
    check_sandbox_options(sandbox, context, namespace)
    _check_options(record=record, replay=replay, recordings=recordings, max_usd=max_usd)
    from hummingbird.app.evaluation.runner import EvaluationRequest, eval_command
    from hummingbird.app.sandboxes import SandboxChoice

    request = EvaluationRequest(
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
    sys.exit(eval_command(request, SandboxChoice(sandbox or "", context, namespace)))


def _check_options(*, record: str | None, replay: bool, recordings: str | None, max_usd: float | None) -> None:
    if replay and record is not None:
        raise click.UsageError("--record and --replay exclude each other: a recording is made of a model's answers.")
    if recordings is not None and not replay:
        raise click.UsageError("--recordings is for --replay: add it, or leave this out.")
    if replay and max_usd is not None:
        raise click.UsageError("--max-usd is for models that are asked: what is replayed costs nothing.")
