"""List the environment variables that a configuration needs, and what each is for.

The functions return names. The caller checks whether the variables are set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hummingbird.config.configuration import (
    ORCHESTRATOR_VARIABLE,
    Configuration,
    find_chat_variables,
    orchestrator_variables,
    token_variable,
)
from hummingbird.config.document import format_key_path
from hummingbird.config.settings import WorkflowSettings

SECRET_VARIABLE = "HUMMINGBIRD_WEBHOOK_SECRET"  # noqa: S105 - a name
SIGNING_VARIABLE = "HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN"
WEBHOOK_VARIABLES = (SIGNING_VARIABLE, SECRET_VARIABLE)
EVERY_PROJECT = "*"


@dataclass(frozen=True, slots=True)
class EnvRequirement:
    """Alternative variables for one purpose; the first one that is set is used. `purpose` completes "it …"."""

    variables: tuple[str, ...]
    purpose: str

    def find_set_variable(self, environment: Mapping[str, str]) -> str:
        """Return the variable that is used; empty if none of them is set."""
        return next((name for name in self.variables if environment.get(name, "").strip()), "")

    @property
    def default_variable(self) -> str:
        """The variable to recommend when none is set."""
        return self.variables[-1]


def list_projects(configuration: Configuration) -> tuple[str, ...]:
    """Return the projects that the file names, without * and without duplicates (GitLab ignores case)."""
    found = {path.casefold(): path for one in configuration.workflows.values() for path in one.projects}
    return tuple(path for path in found.values() if path != EVERY_PROJECT)


def list_requirements(configuration: Configuration) -> tuple[EnvRequirement, ...]:
    """Return all variables that a configuration needs."""
    return (
        *write_token_requirements(configuration),
        *read_token_requirements(configuration),
        *webhook_requirements(configuration),
        *_chat_requirements(configuration),
    )


def write_token_requirements(configuration: Configuration) -> Iterator[EnvRequirement]:
    """Yield the tokens that notes are posted with."""
    for project in list_projects(configuration):
        yield EnvRequirement(orchestrator_variables(project), f"writes to {project}")
    if any(EVERY_PROJECT in one.projects for one in configuration.workflows.values()):
        yield EnvRequirement((ORCHESTRATOR_VARIABLE,), "writes to every project that has no token of its own")


def read_token_requirements(configuration: Configuration) -> Iterator[EnvRequirement]:
    """Yield the credentials of the data sources, each once per workflow."""
    for name, workflow in configuration.workflows.items():
        found = dict.fromkeys(_source_variables(workflow))
        yield from (EnvRequirement((variable,), f"reads {source} in {name}") for source, variable in found)


def webhook_requirements(configuration: Configuration) -> Iterator[EnvRequirement]:
    """Yield the webhook secret; nothing when events come from SQS, where AWS authenticates the sender."""
    if not configuration.settings.sqs_queue_url:
        yield EnvRequirement(WEBHOOK_VARIABLES, "proves that a webhook comes from your GitLab")


def _chat_requirements(configuration: Configuration) -> Iterator[EnvRequirement]:
    for path, variable in find_chat_variables(configuration.chat):
        yield EnvRequirement((variable,), f"is for {format_key_path(path[:3])}")


def _source_variables(workflow: WorkflowSettings) -> Iterator[tuple[str, str]]:
    sources = workflow.data_sources
    for source in sources.declared_names:
        if source == "konflux":
            if sources.konflux is not None and sources.konflux.kubeconfig_env:
                yield source, sources.konflux.kubeconfig_env
            continue
        for project in workflow.projects.values():
            variable, _ = token_variable(project, workflow, source)
            if variable:
                yield source, variable
