"""What applies to a project, and why (`hummingbird config explain`). Pure; names of variables, never values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.config.tokens import orchestrator_variables, token_variable

_SHOWN = (
    *("trigger", "fallback_models", "max_iterations", "context_limit", "max_inline_size", "max_runs_per_mr"),
    *("internal_notes", "usd_per_run", "seconds_per_run", "usd_per_day"),
)
_OF_WORKFLOW = (
    *("description", "workflow_url", "prompt", "action", "context", "nothing_found", "inline_findings"),
    *("ignore_users", "ignore_branches", "auto_resolve_on_push", "auto_resolve_on_success"),
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One value, written as text, and where it comes from: project, workflow, settings, default, or a sentence."""

    name: str
    value: str
    because: str


@dataclass(frozen=True, slots=True)
class Explained:
    """`left_out`: workflows that are not for the project."""

    project: str
    configuration: str
    orchestrator: tuple[str, str]
    workflows: tuple[tuple[str, tuple[Reason, ...]], ...]
    left_out: tuple[str, ...]

    def only(self, workflow: str) -> "Explained":
        """What of it is about one workflow."""
        return replace(
            self,
            workflows=tuple(one for one in self.workflows if one[0] == workflow),
            left_out=tuple(name for name in self.left_out if name == workflow),
        )

    def lines(self) -> Iterator[str]:
        yield f"{self.project}, by {self.configuration}"
        yield f"writes with {self.orchestrator[0]}, else {self.orchestrator[1]}"
        for name, reasons in self.workflows:
            yield f"{name}:"
            yield from (f"  {reason.name} = {reason.value}  ({reason.because})" for reason in reasons)
        yield from (f"{name}: not for this project, for it is not in its `projects`" for name in self.left_out)


def explain(configuration: Configuration, project: str) -> Explained:
    applied = configuration.on(project)
    named = {one.workflow for one in applied}
    return Explained(
        project,
        configuration.name,
        orchestrator_variables(project),
        tuple((one.workflow, tuple(_reasons(one))) for one in applied),
        tuple(name for name in configuration.workflows if name not in named),
    )


def _reasons(applied: Applied) -> Iterator[Reason]:
    yield Reason("for", applied.project, _entry(applied))
    yield Reason("model", applied.model or "by the key that is set, else digest", applied.because["model"])
    for name in _SHOWN:
        yield Reason(name, _shown(getattr(applied, name)), applied.because[name])
    for name in _OF_WORKFLOW:
        written = name in applied.declared.model_fields_set
        yield Reason(name, _shown(getattr(applied.declared, name)), "workflow" if written else "default")
    for source in applied.declared.data_sources.names:
        if source == "konflux":
            yield Reason(source, "credentials of its kubeconfig", "workflow")
        else:
            variable, who = token_variable(applied.entry, applied.declared, source)
            yield Reason(
                source, f"token in {variable}" if variable else "no token", who if variable else "none is named"
            )


def _entry(applied: Applied) -> str:
    wanted = applied.project.casefold()
    named = any(path.casefold() == wanted for path in applied.declared.projects)
    return "it is in `projects`" if named else "`projects` has *"


def _shown(value: object) -> str:
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
