"""Which credential is for what (G3). Tool tokens are made here; of those that write only the names are known."""

import re
from collections.abc import Mapping

from hummingbird.config.workflows import Project, Workflow
from hummingbird.domain.errors import MissingSetting
from hummingbird.ports.source import ToolToken

ORCHESTRATOR_VARIABLE = "ORCHESTRATOR_GITLAB_TOKEN"


def token_variable(project: Project, workflow: Workflow, source: str) -> tuple[str, str]:
    """The variable with the token that a source reads with, and who names it: project, workflow, none."""
    if own := getattr(project.tokens, source, ""):
        return own, "project"
    declared = getattr(workflow.data_sources, source, None)
    if named := getattr(declared, "token_env", ""):
        return named, "workflow"
    return "", "none"


def tool_token(project: Project, workflow: Workflow, source: str, environment: Mapping[str, str]) -> ToolToken | None:
    """None if the source is read without one. Raises MissingSetting if its variable is not set: another token in its
    place might see what this one must not."""
    name, _ = token_variable(project, workflow, source)
    return variable_value(name, source, environment)


def variable_value(name: str, source: str, environment: Mapping[str, str]) -> ToolToken | None:
    """As `tool_token`, of the variable with that name; there may be none."""
    if not name:
        return None
    value = environment.get(name, "").strip()
    if not value:
        raise MissingSetting(f"Set {name} to the token that {source} is read with.")
    return ToolToken(value)


def orchestrator_variables(project: str) -> tuple[str, str]:
    """Names of the variables with the token that writes: the project's own, then the one for all."""
    mangled = re.sub(r"[^A-Z0-9]", "_", project.upper())
    return f"{ORCHESTRATOR_VARIABLE}_{mangled}", ORCHESTRATOR_VARIABLE
