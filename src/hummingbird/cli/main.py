"""The `hummingbird` command. Commands import what they need when they run, so that --help is quick."""

import os
import sys
from importlib import import_module

import click

from hummingbird import __version__
from hummingbird.cli.acp import acp
from hummingbird.cli.chat import chat
from hummingbird.cli.config import config
from hummingbird.cli.demo import demo
from hummingbird.cli.doctor import doctor
from hummingbird.cli.eval import evaluate
from hummingbird.cli.explain import explain
from hummingbird.cli.init import init
from hummingbird.cli.lab import lab
from hummingbird.cli.queue import queue
from hummingbird.cli.run import run
from hummingbird.cli.sandbox import sandbox
from hummingbird.cli.serve import serve
from hummingbird.cli.sessions import sessions


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 no useful answer, 2 bad usage, 130 interrupted.",
)
@click.version_option(__version__, prog_name="hummingbird")
def commands() -> None:
    """Hummingbird finds why a GitLab pipeline failed and says so with evidence."""


for each in (acp, chat, config, demo, doctor, evaluate, explain, init, lab, queue, run, sandbox, serve, sessions):
    commands.add_command(each)


def _plain() -> bool:
    """Whether colours are unwanted even on a terminal."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _written_out() -> None:
    """Now, since what fails when the interpreter ends is told by a traceback."""
    if sys.stdout is not None:
        sys.stdout.flush()


def main() -> None:
    """Every error is one sentence that says what to do; -v shows where it came from."""
    try:
        try:
            commands(standalone_mode=False, color=False if _plain() else None)
        finally:
            _written_out()
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
