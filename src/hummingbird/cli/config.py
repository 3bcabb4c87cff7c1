"""`hummingbird config`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module
from typing import Any

import click

from hummingbird.cli.options import as_json as json_option
from hummingbird.cli.options import config_file, verbose


@click.group()
def config() -> None:
    """Check, describe and explain the configuration.

    It is one YAML file. Secrets are never in it: it holds the names of environment variables.

    \b
      hummingbird config check
      hummingbird config explain group/project
      hummingbird config schema > hummingbird.schema.json
    """


@config.command()
@config_file
@click.option("--no-environment", is_flag=True, help="Do not ask whether the variables are set: for CI of the file.")
@verbose
def check(config: str | None, no_environment: bool) -> None:
    """Say everything that is wrong with the configuration, at once.

    Every fault comes with its line, its path and what was expected. If there is none, you see what the file means:
    workflows, what starts them, projects, and which variables are needed and set. Values are never shown.

    \b
      hummingbird config check --config deploy/hummingbird.yaml --no-environment

    Exit code 1 means: there is something to mend.
    """
    sys.exit(_work().check(config, environment=not no_environment))


@config.command()
@verbose
def schema() -> None:
    """Print the configuration's JSON Schema, for your editor.

    \b
      hummingbird config schema > hummingbird.schema.json

    Then put this into the first line of your hummingbird.yaml:

    \b
      # yaml-language-server: $schema=hummingbird.schema.json
    """
    sys.exit(_work().schema())


@config.command()
@click.argument("project")
@click.option("--workflow", metavar="NAME", help="Only this one.")
@json_option
@config_file
@verbose
def explain(project: str, workflow: str | None, as_json: bool, config: str | None) -> None:
    """Say what holds for a project, and why.

    PROJECT is its path, like group/project. For each workflow you see every value and whether the project, the
    workflow, the settings or a default gives it; and the names of the variables that the tokens come from.

    \b
      hummingbird config explain group/project --workflow code-review
    """
    sys.exit(_work().explain(project, workflow, as_json=as_json, config=config))


def _work() -> Any:
    return import_module("hummingbird.cli.config_work")
