"""Which variables a configuration needs, and what for. Names alone: whoever asks looks whether they are set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hummingbird.config.configuration import Configuration, chat_variables
from hummingbird.config.faults import written
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE, orchestrator_variables, token_variable
from hummingbird.config.workflows import Workflow

SECRET_VARIABLE = "HUMMINGBIRD_WEBHOOK_SECRET"  # noqa: S105 - a name
SIGNING_VARIABLE = "HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN"
WEBHOOK_VARIABLES = (SIGNING_VARIABLE, SECRET_VARIABLE)
EVERY_PROJECT = "*"


@dataclass(frozen=True, slots=True)
class Need:
    """`variables`: the first of them that is set is used. `purpose` completes "it …"."""

    variables: tuple[str, ...]
    purpose: str

    def used(self, environment: Mapping[str, str]) -> str:
        """The variable that is used; empty if none of them is set."""
        return next((name for name in self.variables if environment.get(name, "").strip()), "")

    @property
    def usual(self) -> str:
        """The one to set if none is."""
        return self.variables[-1]


def projects(configuration: Configuration) -> tuple[str, ...]:
    """Those that have a name in the file, each once."""
    found = {path.casefold(): path for one in configuration.workflows.values() for path in one.projects}
    return tuple(path for path in found.values() if path != EVERY_PROJECT)


def needs(configuration: Configuration) -> tuple[Need, ...]:
    return (*writing(configuration), *reading(configuration), *webhook(configuration), *_chat(configuration))


def writing(configuration: Configuration) -> Iterator[Need]:
    """The tokens that notes are written with."""
    for project in projects(configuration):
        yield Need(orchestrator_variables(project), f"writes to {project}")
    if any(EVERY_PROJECT in one.projects for one in configuration.workflows.values()):
        yield Need((ORCHESTRATOR_VARIABLE,), "writes to every project that has no token of its own")


def reading(configuration: Configuration) -> Iterator[Need]:
    """The credentials of data sources, each once for a workflow."""
    for name, workflow in configuration.workflows.items():
        found = dict.fromkeys(_sources(workflow))
        yield from (Need((variable,), f"reads {source} in {name}") for source, variable in found)


def webhook(configuration: Configuration) -> Iterator[Need]:
    """Nothing where events come from a queue, which has its own ways to know who sends."""
    if not configuration.settings.sqs_queue_url:
        yield Need(WEBHOOK_VARIABLES, "proves that a webhook comes from your GitLab")


def _chat(configuration: Configuration) -> Iterator[Need]:
    for path, variable in chat_variables(configuration.chat):
        yield Need((variable,), f"is for {written(path[:3])}")


def _sources(workflow: Workflow) -> Iterator[tuple[str, str]]:
    sources = workflow.data_sources
    for source in sources.names:
        if source == "konflux":
            if sources.konflux is not None and sources.konflux.kubeconfig_env:
                yield source, sources.konflux.kubeconfig_env
            continue
        for project in workflow.projects.values():
            variable, _ = token_variable(project, workflow, source)
            if variable:
                yield source, variable
