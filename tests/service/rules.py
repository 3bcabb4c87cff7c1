"""A configuration and events for tests of decisions: three workflows for every project, nothing read from a file."""

from types import MappingProxyType
from typing import Any

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.settings import ChatSettings, ProjectSettings, Settings, WorkflowSettings
from hummingbird.gitlab.webhook_events import (
    GitLabUser,
    MergeRequestChanged,
    MergeRequestState,
    NoteWritten,
    PipelineChanged,
    ProjectRef,
)

PROJECT = "acme/widgets"
BOT = 99
BOTS = frozenset({BOT, 98})
ADA = GitLabUser(11, "ada")
HEAD = "a" * 40
WORKFLOWS: dict[str, dict[str, Any]] = {
    "analyze-failures": {
        "trigger": "pipeline",
        "description": "Finds out why a pipeline failed",
        "auto_resolve_on_push": True,
        "auto_resolve_on_success": True,
        "model": "own-model",
        "fallback_models": ("spare-model",),
    },
    "code-review": {"trigger": "merge_request", "description": "Reviews it", "auto_resolve_on_push": True},
    "code-style": {"auto_resolve_on_success": True, "max_iterations": 50},
}


def configured(
    workflows: dict[str, dict[str, Any]] | None = None, projects: tuple[str, ...] = ("*",), **settings: Any
) -> Configuration:
    everywhere = {path: ProjectSettings() for path in projects}
    made = {
        name: WorkflowSettings(**{"prompt": "look.md", "projects": everywhere, **values})
        for name, values in (WORKFLOWS if workflows is None else workflows).items()
    }
    chosen = {"models_allowed": ("fast", "vendor:large"), **settings}
    prompts = MappingProxyType(dict.fromkeys(made, "Look."))
    return Configuration("test", Settings(**chosen), MappingProxyType(made), ChatSettings(), prompts)


def applied(name: str, configuration: Configuration | None = None) -> ResolvedWorkflow:
    found = (configuration or configured()).resolve(name, PROJECT)
    assert found is not None
    return found


def pipeline(status: str = "failed", *, actor: GitLabUser = ADA, ref: str = "topic", iid: int = 7) -> PipelineChanged:
    return PipelineChanged(ProjectRef(101, PROJECT), 9001, status, HEAD, ref, "merge_request_event", iid, actor)


def change(*, draft: bool = False, state: str = "opened", branch: str = "topic", head: str = HEAD) -> MergeRequestState:
    return MergeRequestState(7, head, branch, "main", draft, state, 11)


def merge_request(
    action: str = "update", *, pushed: bool = False, actor: GitLabUser = ADA, about: MergeRequestState | None = None
) -> MergeRequestChanged:
    return MergeRequestChanged(ProjectRef(101, PROJECT), about or change(), action, pushed, actor)


def note(
    text: str, *, reply: bool = False, edited: bool = False, author: GitLabUser = ADA, discussion_id: str = "d" * 40
) -> NoteWritten:
    return NoteWritten(ProjectRef(101, PROJECT), change(), 77, discussion_id, text, False, reply, edited, author)
