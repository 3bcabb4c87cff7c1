"""The options of `hummingbird doctor`. app.doctor.runner does the work and is imported only when the command runs."""

import sys
from typing import Any

import click

from hummingbird.cli.options import check_sandbox_options, config_option, json_option, sandbox_options, verbose_option


@click.command()
@config_option
@json_option
@click.option("--try-model", is_flag=True, help="Also ask each model for one word. This costs almost nothing.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that `serve` will listen on.")
@sandbox_options
@verbose_option
def doctor(config: str | None, as_json: bool, try_model: bool, host: str, **place: Any) -> None:
    """Test every part of the setup and say how to fix what fails.

    Doctor tests the configuration, prompts and environment variables; GitLab, the tokens with their scopes and roles,
    and the webhook; model, sandbox, folders, queue, session store, index and ledgers; Konflux, KubeArchive, Testing
    Farm and MCP servers if they are configured; dashboard access, traces and Sentry. It leaves nothing behind, sends
    each token only to the server that it is configured for, and never prints a token.

    \b
      hummingbird doctor --config deploy/hummingbird.yaml
      hummingbird doctor --json | jq '.checks[] | select(.standing == "fail")'

    Exit code 1: at least one check failed.
    """
    check_sandbox_options(**place)
    from hummingbird.app.doctor.runner import doctor_command

    sys.exit(doctor_command(config, as_json=as_json, try_model=try_model, host=host, **place))
