"""`hummingbird init`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module

import click

from hummingbird.cli.options import verbose


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Replace files that are in the way.")
@verbose
def init(folder: str, force: bool) -> None:
    """Write a configuration to begin with, and say what to do next.

    FOLDER (default: this one) gets hummingbird.yaml, in which every key stands with its default and its meaning, and
    the prompts of its two workflows, to be changed as you like. Nothing is overwritten unless you say --force.

    \b
      hummingbird init deploy && cd deploy && hummingbird config check
    """
    sys.exit(import_module("hummingbird.cli.init_work").run(folder, force=force))
