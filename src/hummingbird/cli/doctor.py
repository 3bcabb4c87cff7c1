"""`hummingbird doctor`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module
from typing import Any

import click

from hummingbird.cli.options import as_json as json_option
from hummingbird.cli.options import config_file, verbose
from hummingbird.cli.placing import agreed, placed


@click.command()
@config_file
@json_option
@click.option("--try-model", is_flag=True, help="Ask each model for one word, too. This costs next to nothing.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address that `serve` will listen on.")
@placed
@verbose
def doctor(config: str | None, as_json: bool, try_model: bool, host: str, **place: Any) -> None:
    """Try every part for real, and say what to do about each.

    Configuration, prompts and variables; GitLab, the tokens, their scopes and roles, and the webhook; model, sandbox,
    folders, queue, store, the index and the ledgers; Konflux, KubeArchive, Testing Farm and MCP servers where they are
    named; the dashboard's door, traces and Sentry. Nothing is left behind, each token goes to the server that it is
    configured for and nowhere else, and no value of them is shown.

    \b
      hummingbird doctor --config deploy/hummingbird.yaml
      hummingbird doctor --json | jq '.checks[] | select(.standing == "fail")'

    Exit code 1 means: something does not work yet.
    """
    agreed(**place)
    work = import_module("hummingbird.cli.doctor_work")
    sys.exit(work.run(config, as_json=as_json, try_model=try_model, host=host, **place))
