"""The options of `hummingbird demo`. app.demo does the work and is imported only when the command runs."""

import sys

import click

from hummingbird.cli.options import complete_case

DEFAULT_CASE = "failing-test"


@click.command()
@click.option(
    "--case",
    default=DEFAULT_CASE,
    show_default=True,
    metavar="NAME",
    shell_complete=complete_case,
    help="Case to play; `hummingbird lab` lists them.",
)
@click.option(
    "--save",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Save configuration, journal and transcript to this empty folder (default: a new temporary folder).",
)
@click.option("--timeout", type=click.FloatRange(min=1), metavar="S", help="Give up after this many seconds.")
@click.option("--verbose", "-v", is_flag=True, help="Also show tool results and tracebacks.")
def demo(case: str, save: str | None, timeout: float | None, verbose: bool) -> None:
    """Show the whole service on this machine, from webhook to note.

    A stand-in for GitLab plays back a real failed pipeline; everything else is what `hummingbird serve` runs. The demo
    needs no API key and no network: without a key, built-in rules read the logs instead of a model. With a key in the
    environment (ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENAI_API_KEY …) it asks that provider's model.

    \b
    Examples:
      hummingbird demo
      hummingbird demo --case konflux-build-and-test
    """
    from hummingbird.app.demo import demo_command

    sys.exit(demo_command(case, save, timeout=timeout, verbose=verbose))
