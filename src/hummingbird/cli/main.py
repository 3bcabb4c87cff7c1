"""The `hummingbird` command. Commands import what they need when they run, so that --help is quick."""

import sys
from importlib import import_module

import click

from hummingbird import __version__
from hummingbird.cli.explain import explain
from hummingbird.cli.lab import lab
from hummingbird.cli.sandbox import sandbox


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 no useful answer, 2 bad usage, 130 interrupted.",
)
@click.version_option(__version__, prog_name="hummingbird")
def commands() -> None:
    """Hummingbird finds why a GitLab pipeline failed and says so with evidence."""


@commands.command()
@click.option(
    "--save",
    type=click.Path(file_okay=False),
    help="Keep journal.jsonl and transcript.md in this folder (default: a new temporary one).",
)
@click.option("--verbose", "-v", is_flag=True, help="Show tool results and tracebacks too.")
def demo(save: str | None, verbose: bool) -> None:
    """Investigate a built-in failed CI log on this machine: no key, no network.

    The model's turns are recorded; tools, journal, budgets and bill are the real ones.
    """
    sys.exit(import_module("hummingbird.cli.demo").run(save, verbose=verbose))


commands.add_command(explain)
commands.add_command(lab)
commands.add_command(sandbox)


def main() -> None:
    """Every error is one sentence that says what to do; -v shows where it came from."""
    try:
        commands(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the outermost border: nobody is above us to tell the person
        sys.exit(import_module("hummingbird.cli.faults").explain(error, sys.argv))
