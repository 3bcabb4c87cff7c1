"""Hold the loaded configuration and resolve which values apply to one workflow on one project.

Everything here is plain values and pure functions. The module reads the tokens that tools use for reading from the
environment it is given; of the tokens that write it knows only the variable names.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from pydantic import Field

from hummingbird.config.defaults import EMPTY_MAPPING
from hummingbird.config.document import KeyPath
from hummingbird.config.field_types import ConfigSection, FrozenMapping, WorkflowName
from hummingbird.config.settings import ChatSettings, ProjectSettings, Settings, TriggerName, WorkflowSettings
from hummingbird.core.errors import MissingSetting
from hummingbird.core.limits import BYTES_PER_TOKEN, SOFT_SHARE
from hummingbird.core.protocols.tools import ToolToken

ORCHESTRATOR_VARIABLE = "ORCHESTRATOR_GITLAB_TOKEN"


def token_variable(project: ProjectSettings, workflow: WorkflowSettings, source: str) -> tuple[str, str]:
    """Return the variable with the token for a data source, and who names it: "project", "workflow" or "none"."""
    if own := getattr(project.tokens, source, ""):
        return own, "project"
    declared = getattr(workflow.data_sources, source, None)
    if named := getattr(declared, "token_env", ""):
        return named, "workflow"
    return "", "none"


def read_tool_token(
    project: ProjectSettings, workflow: WorkflowSettings, source: str, environment: Mapping[str, str]
) -> ToolToken | None:
    """Read the token that a data source reads with; return None when the configuration names none.

    Raises MissingSetting if the named variable is not set. Falling back to another token could show the tool data
    that this one must not see.
    """
    name, _ = token_variable(project, workflow, source)
    return read_token_variable(name, source, environment)


def read_token_variable(name: str, source: str, environment: Mapping[str, str]) -> ToolToken | None:
    """Read a token from the variable `name`; return None for an empty name. Raises MissingSetting if it is not set."""
    if not name:
        return None
    value = environment.get(name, "").strip()
    if not value:
        raise MissingSetting(f"Set {name} to the token that {source} is read with.")
    return ToolToken(value)


def orchestrator_variables(project: str) -> tuple[str, str]:
    """Return the variables that may hold the write token: the project's own first, then the one for all projects."""
    mangled = re.sub(r"[^A-Z0-9]", "_", project.upper())
    return f"{ORCHESTRATOR_VARIABLE}_{mangled}", ORCHESTRATOR_VARIABLE


class ConfigFile(ConfigSection):
    """The configuration file as written, before values are resolved for a project."""

    settings: Settings = Field(default_factory=Settings, description="What holds for every workflow.")
    workflows: FrozenMapping[WorkflowName, WorkflowSettings] = Field(
        default_factory=lambda: EMPTY_MAPPING, description="Name of a workflow → what it does."
    )
    chat: ChatSettings = Field(default_factory=ChatSettings, description="Conversations with people.")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration that was loaded without faults.

    `name` is the file's name for messages. `prompts` maps each workflow to the text of its prompt file.
    """

    name: str
    settings: Settings
    workflows: Mapping[str, WorkflowSettings]
    chat: ChatSettings
    prompts: Mapping[str, str]

    def resolve(self, workflow: str, project: str) -> "ResolvedWorkflow | None":
        """Return the values of a workflow on a project; None if the workflow does not apply to that project.

        Raises KeyError for an unknown workflow.
        """
        entry = self.workflows[workflow].find_project(project)
        return None if entry is None else _resolve_workflow(self, workflow, project, entry)

    def resolve_project(self, project: str) -> "tuple[ResolvedWorkflow, ...]":
        """Return every workflow that applies to this project, in the order of the file."""
        found = (self.resolve(name, project) for name in self.workflows)
        return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class ResolvedWorkflow:
    """One workflow on one project with every value resolved. `because` maps a value's name to its origin."""

    workflow: str
    project: str
    declared: WorkflowSettings
    entry: ProjectSettings
    prompt: str
    trigger: TriggerName | None
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

    @property
    def explains_failures(self) -> bool:
        """Tell whether the workflow is about failures, as opposed to code."""
        return not self.declared.inline_findings and self.trigger != "merge_request"


_FROM_WORKFLOW = ("model", "fallback_models", "max_iterations", "context_limit", "max_inline_size")
_FROM_PROJECT = ("max_runs_per_mr", "internal_notes")
_BUDGETS = ("usd_per_run", "seconds_per_run", "usd_per_day")


def _resolve_workflow(
    configuration: Configuration, name: str, project: str, entry: ProjectSettings
) -> ResolvedWorkflow:
    settings, workflow = configuration.settings, configuration.workflows[name]
    levels = {"project": entry, "workflow": workflow, "settings": settings}
    values = {key: _nearest_value(levels, key) for key in (*_FROM_PROJECT, *_FROM_WORKFLOW)}
    money = {"workflow": workflow.budgets, "settings": settings.budgets}
    values |= {key: _nearest_value(money, key) for key in _BUDGETS}
    values["trigger"] = resolve_trigger(settings, workflow)
    wanted, because = values["max_inline_size"]
    if (most := limit_inline_bytes(wanted, values["context_limit"][0])) < wanted:
        values["max_inline_size"] = most, f"{because} says {wanted}; more would fill the context_limit"
    return ResolvedWorkflow(
        **{key: value for key, (value, _) in values.items()},
        workflow=name,
        project=project,
        declared=workflow,
        entry=entry,
        prompt=configuration.prompts[name],
        because=MappingProxyType({key: why for key, (_, why) in values.items()}),
    )


def limit_inline_bytes(max_inline_bytes: int, context_tokens: int) -> int:
    """Return how long one result in the conversation may be: it leaves room for an answer."""
    return min(max_inline_bytes, int(context_tokens * SOFT_SHARE) * BYTES_PER_TOKEN)


def _nearest_value(levels: Mapping[str, ConfigSection], key: str) -> tuple[Any, str]:
    """Return the value written nearest to the project, and its level. A value of null leaves it to the next level."""
    for level, part in levels.items():
        if key in part.model_fields_set and getattr(part, key) is not None:
            return getattr(part, key), level
    return getattr(levels["settings"], key), "default"


def resolve_trigger(settings: Settings, workflow: WorkflowSettings) -> tuple[TriggerName | None, str]:
    """Return what starts the workflow automatically, and why.

    `auto_trigger: false` switches off pipeline triggers for all workflows.
    """
    if settings.auto_trigger is False and workflow.trigger != "merge_request":
        return None, "settings.auto_trigger is false: commands only"
    if workflow.trigger is not None:
        return workflow.trigger, "workflow"
    if settings.auto_trigger:
        return "pipeline", "settings.auto_trigger is true"
    return None, "no trigger is written: commands only"


def find_chat_variables(chat: ChatSettings) -> Iterator[tuple[KeyPath, str]]:
    """Yield every variable that is passed to an MCP server, with the key path that names it."""
    for name, server in chat.mcp_servers.items():
        before = ("chat", "mcp_servers", name)
        yield from (((*before, "env", index), variable) for index, variable in enumerate(server.env))
        yield from (((*before, "headers_env", header), variable) for header, variable in server.headers_env.items())


# The explanation that `hummingbird config explain` prints. It shows names of variables, never their values.

_RESOLVED_KEYS = (
    *("trigger", "fallback_models", "max_iterations", "context_limit", "max_inline_size", "max_runs_per_mr"),
    *("internal_notes", "usd_per_run", "seconds_per_run", "usd_per_day"),
)
_WORKFLOW_KEYS = (
    *("description", "workflow_url", "prompt", "action", "context", "nothing_found", "inline_findings", "citations"),
    *("ignore_users", "ignore_branches", "auto_resolve_on_push", "auto_resolve_on_success"),
)


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """One value as text, and where it comes from: project, workflow, settings, default, or a sentence."""

    name: str
    value: str
    because: str


@dataclass(frozen=True, slots=True)
class ProjectExplanation:
    """The workflows of a project with the origin of each value. `left_out`: workflows that do not apply to it."""

    project: str
    configuration: str
    orchestrator: tuple[str, str]
    workflows: tuple[tuple[str, tuple[ValueOrigin, ...]], ...]
    left_out: tuple[str, ...]

    def for_workflow(self, workflow: str) -> "ProjectExplanation":
        """Return a copy that covers only one workflow."""
        return replace(
            self,
            workflows=tuple(one for one in self.workflows if one[0] == workflow),
            left_out=tuple(name for name in self.left_out if name == workflow),
        )

    def to_lines(self) -> Iterator[str]:
        yield f"{self.project}, by {self.configuration}"
        yield f"writes with {self.orchestrator[0]}, else {self.orchestrator[1]}"
        for name, reasons in self.workflows:
            yield f"{name}:"
            yield from (f"  {reason.name} = {reason.value}  ({reason.because})" for reason in reasons)
        yield from (f"{name}: not for this project, because its `projects` do not list it" for name in self.left_out)


def explain_project(configuration: Configuration, project: str) -> ProjectExplanation:
    """Explain which workflows apply to a project, and where each value comes from."""
    applied = configuration.resolve_project(project)
    named = {one.workflow for one in applied}
    return ProjectExplanation(
        project,
        configuration.name,
        orchestrator_variables(project),
        tuple((one.workflow, tuple(_value_origins(one))) for one in applied),
        tuple(name for name in configuration.workflows if name not in named),
    )


def _value_origins(applied: ResolvedWorkflow) -> Iterator[ValueOrigin]:
    yield ValueOrigin("for", applied.project, _project_match_reason(applied))
    yield ValueOrigin(
        "model", applied.model or "chosen by the API key that is set, else digest", applied.because["model"]
    )
    for name in _RESOLVED_KEYS:
        yield ValueOrigin(name, _format_value(getattr(applied, name)), applied.because[name])
    for name in _WORKFLOW_KEYS:
        written = name in applied.declared.model_fields_set
        yield ValueOrigin(name, _format_value(getattr(applied.declared, name)), "workflow" if written else "default")
    for source in applied.declared.data_sources.declared_names:
        if source == "konflux":
            yield ValueOrigin(source, "credentials of its kubeconfig", "workflow")
        else:
            variable, who = token_variable(applied.entry, applied.declared, source)
            yield ValueOrigin(
                source, f"token in {variable}" if variable else "no token", who if variable else "none is named"
            )


def _project_match_reason(applied: ResolvedWorkflow) -> str:
    wanted = applied.project.casefold()
    named = any(path.casefold() == wanted for path in applied.declared.projects)
    return "it is in `projects`" if named else "`projects` has *"


def _format_value(value: object) -> str:
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
