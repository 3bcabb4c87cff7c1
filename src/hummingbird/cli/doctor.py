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
@placed
@verbose
def doctor(config: str | None, as_json: bool, try_model: bool, **place: Any) -> None:
    """Try every part for real, and say what to do about each.

    Configuration, prompts and variables; GitLab, the tokens, their scopes and roles, and the webhook; model, sandbox,
    folders, queue and store. Nothing is left behind, tokens go nowhere but to the GitLab that is configured, and no
    value of them is shown.

    \b
      hummingbird doctor --config deploy/hummingbird.yaml
      hummingbird doctor --json | jq '.checks[] | select(.standing == "fail")'

    Exit code 1 means: something does not work yet.
    """
    agreed(**place)
    work = import_module("hummingbird.cli.doctor_work")
    sys.exit(work.run(config, as_json=as_json, try_model=try_model, **place))
