"""What the `config` commands do and print. Outcomes on standard output; of variables the names, never the values."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from hummingbird.assembly.models import default_model
from hummingbird.config.configuration import Configuration, trigger
from hummingbird.config.explaining import Explained
from hummingbird.config.explaining import explain as explained
from hummingbird.config.faults import unknown
from hummingbird.config.kinds import PROJECT
from hummingbird.config.load import EMBEDDED, examine, find, load
from hummingbird.config.needed import EVERY_PROJECT, needs
from hummingbird.config.schema import schema as made_schema
from hummingbird.config.workflows import Workflow
from hummingbird.domain.errors import ConfigurationBroken, UsageFault
from hummingbird.domain.text import shortened

_LISTED = 3  # names in one line
_STARTS = {"pipeline": "on failed pipelines", "merge_request": "on merge requests", None: "by commands only"}


def check(option: str | None, *, environment: bool) -> int:
    known = os.environ if environment else None
    path = find(option, os.environ, Path.cwd())
    try:
        configuration = examine(path, known).sound()
    except ConfigurationBroken as error:
        count = "one thing" if len(error.faults) == 1 else f"{len(error.faults)} things"
        click.echo("\n".join([f"Mend {count} in {path or EMBEDDED}:", *_indented(error.faults)]))
        return 1
    click.echo("\n".join(_summary(configuration, known)))
    return 0


def schema() -> int:
    click.echo(json.dumps(made_schema(), indent=2))
    return 0


def explain(project: str, workflow: str | None, *, as_json: bool, config: str | None) -> int:
    path = find(config, os.environ, Path.cwd())
    configuration = load(path, None if path else os.environ)  # without a file, the environment names GitLab's token
    _check_names(configuration, project, workflow)
    found = explained(configuration, project)
    if workflow is not None:
        found = found.only(workflow)
    writer = next((name for name in found.orchestrator if os.environ.get(name, "").strip()), "")
    click.echo(_document(found, writer) if as_json else "\n".join(_page(found, writer)))
    return 0


def _check_names(configuration: Configuration, project: str, workflow: str | None) -> None:
    """Raises UsageFault."""
    if not PROJECT.fullmatch(project):
        raise UsageFault(f"{shortened(project, 80)!r} is no project's path: write it like group/project.")
    if workflow is not None and workflow not in configuration.workflows:
        sentence = unknown(workflow, configuration.workflows).replace("no such key here", "no such workflow")
        raise UsageFault(f"In {configuration.name} {sentence}.")


def _page(found: Explained, writer: str) -> Iterator[str]:
    for number, line in enumerate(found.lines()):
        yield line
        if number == 1:
            yield f"  {writer} is set and used" if writer else "  neither is set here"


def _document(found: Explained, writer: str) -> str:
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


def _summary(configuration: Configuration, environment: Mapping[str, str] | None) -> Iterator[str]:
    name = configuration.name
    yield "The embedded defaults are sound." if name == EMBEDDED else f"{name} is sound."
    yield ""
    yield "Workflows" if configuration.workflows else "There is no workflow in it, so nothing will ever run."
    for workflow, declared in configuration.workflows.items():
        starts, _ = trigger(configuration.settings, declared)
        yield f"  {workflow}: {_STARTS[starts]}; {_projects(declared)}; {_sources(declared)}"
    yield ""
    yield f"Model: {_model(configuration, environment)}"
    lines = list(_variables(configuration, environment))
    if lines:
        yield ""
        yield "Variables"
        yield from lines


def _model(configuration: Configuration, environment: Mapping[str, str] | None) -> str:
    if configuration.settings.model:
        return configuration.settings.model
    if environment is None:
        return "by the key that is set, else digest"
    return f"{default_model(environment)}, by the keys that are set"


def _projects(workflow: Workflow) -> str:
    named = [path for path in workflow.projects if path != EVERY_PROJECT]
    if EVERY_PROJECT in workflow.projects:
        return f"every project ({_some(named)} with values of their own)" if named else "every project"
    return f"for {_some(named)}" if named else "for no project yet: add some to `projects`"


def _sources(workflow: Workflow) -> str:
    names = workflow.data_sources.names
    return f"reads {', '.join(names)}" if names else "reads no data source"


def _variables(configuration: Configuration, environment: Mapping[str, str] | None) -> Iterator[str]:
    """One line a variable, with everything that it is for."""
    purposes: dict[tuple[str, str], list[str]] = {}
    for need in needs(configuration):
        used = need.used(environment or {})
        standing = "" if environment is None else "set" if used else "not set"
        purposes.setdefault((used or need.usual, standing), []).append(need.purpose)
    width = max((len(name) for name, _ in purposes), default=0)
    for (name, standing), whats in purposes.items():
        yield f"  {name:<{width}}  {standing + '  ' if standing else ''}{_some(list(dict.fromkeys(whats)))}"


def _some(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _indented(lines: tuple[str, ...]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
