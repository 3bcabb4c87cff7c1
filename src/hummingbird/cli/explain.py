"""`hummingbird explain`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module

import click

from hummingbird.domain.limits import EXCERPT_BYTES


@click.command()
@click.argument("file", required=False, type=click.Path())
@click.option("--baseline", metavar="FILE", type=click.Path(), help="A green log of the same job: what is new counts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (docs/explain.md tells its shape).")
@click.option(
    "--budget",
    type=int,
    default=EXCERPT_BYTES,
    show_default=True,
    metavar="N",
    help="Show at most N bytes of excerpts.",
)
@click.option(
    "--color/--no-color", default=None, help="Colours or none (default: on a terminal, unless NO_COLOR is set)."
)
@click.option("--verbose", "-v", is_flag=True, expose_value=False, help="Show tracebacks too.")
def explain(file: str | None, baseline: str | None, as_json: bool, budget: int, color: bool | None) -> None:
    """Say what failed in a log, where, and what is to blame. No model, no network.

    FILE is a log of any size, a test report (JUnit, Testing Farm) or Tekton objects in JSON; also packed with gzip, xz
    or bzip2. Without FILE, or with -, it is read from standard input.

    \b
    Examples:
      hummingbird explain job.log
      kubectl logs build-pod | hummingbird explain --baseline last-green.log.gz

    Exit code 1 means: nothing in it looks like a failure.
    """
    work = import_module("hummingbird.cli.explain_work")
    sys.exit(work.run(file, baseline, as_json=as_json, budget=budget, colour=color))
