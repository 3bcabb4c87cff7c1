"""A whole configuration, and what of it holds for one workflow on one project. Values and pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from pydantic import Field

from hummingbird.config.chat import ChatSettings
from hummingbird.config.defaults import NOTHING
from hummingbird.config.faults import KeyPath
from hummingbird.config.kinds import Names, Part, WorkflowName
from hummingbird.config.settings import Settings
from hummingbird.config.workflows import Project, Trigger, Workflow


class Written(Part):
    """The file as it is written."""

    settings: Settings = Field(default_factory=Settings, description="What holds for every workflow.")
    workflows: Names[WorkflowName, Workflow] = Field(
        default_factory=lambda: NOTHING, description="Name of a workflow → what it does."
    )
    chat: ChatSettings = Field(default_factory=ChatSettings, description="Conversations with people.")


@dataclass(frozen=True, slots=True)
class Configuration:
    """`name` is for messages. `prompts` are the texts of the workflows' files."""

    name: str
    settings: Settings
    workflows: Mapping[str, Workflow]
    chat: ChatSettings
    prompts: Mapping[str, str]

    def applied(self, workflow: str, project: str) -> "Applied | None":
        """What holds for that workflow on that project; None if it is not for it. Raises KeyError for its name."""
        entry = self.workflows[workflow].entry(project)
        return None if entry is None else _applied(self, workflow, project, entry)

    def on(self, project: str) -> "tuple[Applied, ...]":
        """Every workflow that is for this project, in the order of the file."""
        found = (self.applied(name, project) for name in self.workflows)
        return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class Applied:
    """One workflow on one project, with nothing left open. `because`: name of a value → where it comes from."""

    workflow: str
    project: str
    declared: Workflow
    entry: Project
    prompt: str
    trigger: Trigger | None
    model: str
    fallback_models: tuple[str, ...]
    max_iterations: int
    context_limit: int
    max_inline_size: int
    max_runs_per_mr: int
    internal_notes: bool
    usd_per_run: Decimal | None
    seconds_per_run: float | None
    usd_per_day: Decimal | None
    because: Mapping[str, str]


_FROM_WORKFLOW = ("model", "fallback_models", "max_iterations", "context_limit", "max_inline_size")
_FROM_PROJECT = ("max_runs_per_mr", "internal_notes")
_BUDGETS = ("usd_per_run", "seconds_per_run", "usd_per_day")


def _applied(configuration: Configuration, name: str, project: str, entry: Project) -> Applied:
    settings, workflow = configuration.settings, configuration.workflows[name]
    levels = {"project": entry, "workflow": workflow, "settings": settings}
    values = {key: _nearest(levels, key) for key in (*_FROM_PROJECT, *_FROM_WORKFLOW)}
    money = {"workflow": workflow.budgets, "settings": settings.budgets}
    values |= {key: _nearest(money, key) for key in _BUDGETS}
    values["trigger"] = trigger(settings, workflow)
    return Applied(
        **{key: value for key, (value, _) in values.items()},
        workflow=name,
        project=project,
        declared=workflow,
        entry=entry,
        prompt=configuration.prompts[name],
        because=MappingProxyType({key: why for key, (_, why) in values.items()}),
    )


def _nearest(levels: Mapping[str, Part], key: str) -> tuple[Any, str]:
    """The value that is written nearest to the project; what is written as null leaves it to the next level."""
    for level, part in levels.items():
        if key in part.model_fields_set and getattr(part, key) is not None:
            return getattr(part, key), level
    return getattr(levels["settings"], key), "default"


def trigger(settings: Settings, workflow: Workflow) -> tuple[Trigger | None, str]:
    """What starts the workflow by itself, and why (G9). `auto_trigger: false` switches pipelines off for all."""
    if settings.auto_trigger is False and workflow.trigger != "merge_request":
        return None, "settings.auto_trigger is false: commands only"
    if workflow.trigger is not None:
        return workflow.trigger, "workflow"
    if settings.auto_trigger:
        return "pipeline", "settings.auto_trigger is true"
    return None, "no trigger is written: commands only"


def chat_variables(chat: ChatSettings) -> Iterator[tuple[KeyPath, str]]:
    """Every variable that the servers of tools are given, and where."""
    for name, server in chat.mcp_servers.items():
        before = ("chat", "mcp_servers", name)
        yield from (((*before, "env", index), variable) for index, variable in enumerate(server.env))
        yield from (((*before, "headers_env", header), variable) for header, variable in server.headers_env.items())
