"""The commands of `hummingbird config`. They print names of environment variables, never their values."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from hummingbird.app.model_choice import default_model, missing_model_credentials
from hummingbird.cli.options import complete_workflow, config_option, json_option, verbose_option
from hummingbird.config.configuration import Configuration, ProjectExplanation, resolve_trigger
from hummingbird.config.configuration import explain_project as explained
from hummingbird.config.document import unknown_key_message
from hummingbird.config.env_requirements import EVERY_PROJECT, list_requirements
from hummingbird.config.field_types import PROJECT
from hummingbird.config.loader import EMBEDDED_NAME, examine_config, find_config, load_config
from hummingbird.config.settings import WorkflowSettings
from hummingbird.config.validation import json_schema as made_schema
from hummingbird.core.errors import ConfigurationError, UsageError
from hummingbird.core.text import shorten_line


@click.group()
def config() -> None:
    """Check, describe and explain the configuration.

    The configuration is one YAML file. It contains no secrets, only the names of environment variables that do.

    \b
      hummingbird config check
      hummingbird config explain group/project
      hummingbird config schema > hummingbird.schema.json
    """


@config.command()
@config_option
@click.option("--no-environment", is_flag=True, help="Do not check whether the variables are set; useful in CI.")
@verbose_option
def check(config: str | None, no_environment: bool) -> None:
    """List everything that is wrong with the configuration.

    Each error comes with its line, its path and what was expected. If there is none, check prints a summary: the
    workflows, what starts them, their projects, and which variables are needed and set. It never prints their values.

    \b
      hummingbird config check --config deploy/hummingbird.yaml --no-environment

    Exit code 1: the configuration has errors.
    """
    sys.exit(print_check(config, environment=not no_environment))


@config.command()
@verbose_option
def schema() -> None:
    """Print the configuration's JSON Schema, for your editor.

    \b
      hummingbird config schema > hummingbird.schema.json

    Then make this the first line of your hummingbird.yaml:

    \b
      # yaml-language-server: $schema=hummingbird.schema.json
    """
    sys.exit(print_schema())


@config.command()
@click.argument("project")
@click.option("--workflow", metavar="NAME", shell_complete=complete_workflow, help="Explain only this workflow.")
@json_option
@config_option
@verbose_option
def explain(project: str, workflow: str | None, as_json: bool, config: str | None) -> None:
    """Show the settings of a project, and where each comes from.

    PROJECT is its path, like group/project. For each workflow, explain prints every value and whether it comes from the
    project, the workflow, the settings or a default; and the names of the variables that hold the tokens.

    \b
      hummingbird config explain group/project --workflow code-review
    """
    sys.exit(print_explanation(project, workflow, as_json=as_json, config=config))


_MAX_NAMES = 3  # names in one line
_TRIGGER_TEXTS = {"pipeline": "on failed pipelines", "merge_request": "on merge requests", None: "by commands only"}


def print_check(option: str | None, *, environment: bool) -> int:
    known = os.environ if environment else None
    path = find_config(option, os.environ, Path.cwd())
    try:
        configuration = examine_config(path, known).get_configuration()
    except ConfigurationError as error:
        count = "one thing" if len(error.faults) == 1 else f"{len(error.faults)} things"
        click.echo("\n".join([f"Fix {count} in {path or EMBEDDED_NAME}:", *_indent(error.faults)]))
        return 1
    click.echo("\n".join(_summary_lines(configuration, known)))
    return 0


def print_schema() -> int:
    click.echo(json.dumps(made_schema(), indent=2))
    return 0


def print_explanation(project: str, workflow: str | None, *, as_json: bool, config: str | None) -> int:
    path = find_config(config, os.environ, Path.cwd())
    configuration = load_config(
        path, None if path else os.environ
    )  # without a file, the environment names GitLab's token
    _check_names(configuration, project, workflow)
    found = explained(configuration, project)
    if workflow is not None:
        found = found.for_workflow(workflow)
    writer = next((name for name in found.orchestrator if os.environ.get(name, "").strip()), "")
    click.echo(_explanation_json(found, writer) if as_json else "\n".join(_explanation_lines(found, writer)))
    return 0


def _check_names(configuration: Configuration, project: str, workflow: str | None) -> None:
    """Raise UsageError for a malformed project path or an unknown workflow."""
    if not PROJECT.fullmatch(project):
        raise UsageError(f"{shorten_line(project, 80)!r} is not the path of a project: write it like group/project.")
    if workflow is not None and workflow not in configuration.workflows:
        sentence = unknown_key_message(workflow, configuration.workflows).replace(
            "no such key here", "no such workflow"
        )
        raise UsageError(f"In {configuration.name} {sentence}.")


def _explanation_lines(found: ProjectExplanation, writer: str) -> Iterator[str]:
    for number, line in enumerate(found.to_lines()):
        yield line
        if number == 1:
            yield f"  {writer} is set and used" if writer else "  neither is set here"


def _explanation_json(found: ProjectExplanation, writer: str) -> str:
    workflows = {
        name: {reason.name: {"value": reason.value, "because": reason.because} for reason in reasons}
        for name, reasons in found.workflows
    }
    document = {
        "project": found.project,
        "configuration": found.configuration,
        "writes_with": {"variables": list(found.orchestrator), "used": writer or None},
        "workflows": workflows,
        "left_out": list(found.left_out),
    }
    return json.dumps(document, indent=2)


def _summary_lines(configuration: Configuration, environment: Mapping[str, str] | None) -> Iterator[str]:
    from hummingbird.app.sandboxes import choose_for_service, sandbox_sentence

    name = configuration.name
    yield "The embedded defaults are sound." if name == EMBEDDED_NAME else f"{name} is sound."
    yield ""
    yield "Workflows" if configuration.workflows else "There is no workflow in it, so nothing will ever run."
    for workflow, declared in configuration.workflows.items():
        starts, _ = resolve_trigger(configuration.settings, declared)
        yield f"  {workflow}: {_TRIGGER_TEXTS[starts]}; {_projects_text(declared)}; {_sources_text(declared)}"
    yield ""
    yield f"Model: {_model_text(configuration, environment)}"
    yield f"Sandbox of serve: {sandbox_sentence(configuration.settings, choose_for_service(environment or {}))}"
    yield from () if environment is None else missing_model_credentials(configuration, environment)
    lines = list(_variable_lines(configuration, environment))
    if lines:
        yield ""
        yield "Variables"
        yield from lines


def _model_text(configuration: Configuration, environment: Mapping[str, str] | None) -> str:
    if configuration.settings.model:
        return configuration.settings.model
    if environment is None:
        return "by the key that is set, else digest"
    return f"{default_model(environment)}, by the keys that are set"


def _projects_text(workflow: WorkflowSettings) -> str:
    named = [path for path in workflow.projects if path != EVERY_PROJECT]
    if EVERY_PROJECT in workflow.projects:
        return f"every project ({_join_some(named)} with values of their own)" if named else "every project"
    return f"for {_join_some(named)}" if named else "for no project yet: add some to `projects`"


def _sources_text(workflow: WorkflowSettings) -> str:
    names = workflow.data_sources.declared_names
    return f"reads {', '.join(names)}" if names else "reads no data source"


def _variable_lines(configuration: Configuration, environment: Mapping[str, str] | None) -> Iterator[str]:
    """Yield one line per environment variable, with everything that it is used for."""
    purposes: dict[tuple[str, str], list[str]] = {}
    for need in list_requirements(configuration):
        used = need.find_set_variable(environment or {})
        standing = "" if environment is None else "set" if used else "not set"
        purposes.setdefault((used or need.default_variable, standing), []).append(need.purpose)
    width = max((len(name) for name, _ in purposes), default=0)
    for (name, standing), whats in purposes.items():
        yield f"  {name:<{width}}  {standing + '  ' if standing else ''}{_join_some(list(dict.fromkeys(whats)))}"


def _join_some(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _indent(lines: tuple[str, ...]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
