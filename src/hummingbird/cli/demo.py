"""`hummingbird demo`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module

import click

DEFAULT_CASE = "failing-test"


@click.command()
@click.option("--case", default=DEFAULT_CASE, show_default=True, metavar="NAME", help="`hummingbird lab` lists them.")
@click.option(
    "--save",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Keep configuration, journal and transcript in this empty folder (default: a new temporary one).",
)
@click.option("--timeout", type=click.FloatRange(min=1), metavar="S", help="Give up after so many seconds.")
@click.option("--verbose", "-v", is_flag=True, help="Show tool results and tracebacks too.")
def demo(case: str, save: str | None, timeout: float | None, verbose: bool) -> None:
    """See the whole path on this machine: webhook, queue, sandbox, analysis, note.

    GitLab is a stand-in that plays a real failed pipeline; everything else is what `hummingbird serve` runs. No key and
    no network are needed: without a key, rules in place of a model read the logs. With a key in the environment
    (ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENAI_API_KEY …) that provider's model does.

    \b
    Examples:
      hummingbird demo
      hummingbird demo --case konflux-build-and-test
    """
    sys.exit(import_module("hummingbird.cli.demo_work").run(case, save, timeout=timeout, verbose=verbose))
