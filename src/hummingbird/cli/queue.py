"""`hummingbird queue`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from hummingbird.cli.options import as_json as json_option
from hummingbird.cli.options import config_file, verbose

_letters = click.argument("ids", nargs=-1, metavar="[ID]...")


def _every(verb: str) -> Callable[[Any], Any]:
    return click.option("--all", "every", is_flag=True, help=f"{verb} all of them.")


@click.group()
def queue() -> None:
    """Look at work that was given up, and decide about it.

    A message of the queue that could not be done three times is put aside, so that it does not stop others. Nothing is
    lost: here you see what it was, have it done after all, or forget it.

    \b
      hummingbird queue list
      hummingbird queue retry --all
      hummingbird queue drop 3f2a8c… --yes
    """


@queue.command(name="list")
@json_option
@config_file
@verbose
def listed(as_json: bool, config: str | None) -> None:
    """Show what was given up: its id, its age and what it was about, never its text.

    \b
      hummingbird queue list --json
    """
    sys.exit(_work().listed(config, as_json=as_json))


@queue.command()
@_letters
@_every("Retry")
@config_file
@verbose
def retry(ids: tuple[str, ...], every: bool, config: str | None) -> None:
    """Have it done after all: it becomes the last of its group in the queue again.

    \b
      hummingbird queue retry 3f2a8c1e-5d0b-4a39-9c50-0c8f3e3b7c11
    """
    sys.exit(_work().retry(config, ids, every=every))


@queue.command()
@_letters
@_every("Forget")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where nobody can be asked.")
@config_file
@verbose
def drop(ids: tuple[str, ...], every: bool, yes: bool, config: str | None) -> None:
    """Forget it. This cannot be undone, so you are asked first.

    \b
      hummingbird queue drop --all --yes
    """
    sys.exit(_work().drop(config, ids, every=every, yes=yes))


def _work() -> Any:
    return import_module("hummingbird.cli.queue_work")
