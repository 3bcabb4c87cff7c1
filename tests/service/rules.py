"""A configuration and events for tests of decisions: three workflows for every project, nothing read from a file."""

from types import MappingProxyType
from typing import Any

from hummingbird.config.chat import ChatSettings
from hummingbird.config.configuration import Applied, Configuration
from hummingbird.config.settings import Settings
from hummingbird.config.workflows import Project, Workflow
from hummingbird.domain.incoming import (
    Change,
    MergeRequestChanged,
    NoteWritten,
    Person,
    PipelineChanged,
    ProjectRef,
)

PROJECT = "acme/widgets"
BOT = 99
BOTS = frozenset({BOT, 98})
ADA = Person(11, "ada")
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
    everywhere = {path: Project() for path in projects}
    made = {
        name: Workflow(**{"prompt": "look.md", "projects": everywhere, **values})
        for name, values in (WORKFLOWS if workflows is None else workflows).items()
    }
    chosen = {"models_allowed": ("fast", "vendor:large"), **settings}
    prompts = MappingProxyType(dict.fromkeys(made, "Look."))
    return Configuration("test", Settings(**chosen), MappingProxyType(made), ChatSettings(), prompts)


def applied(name: str, configuration: Configuration | None = None) -> Applied:
    found = (configuration or configured()).applied(name, PROJECT)
    assert found is not None
    return found


def pipeline(status: str = "failed", *, actor: Person = ADA, ref: str = "topic", iid: int = 7) -> PipelineChanged:
    return PipelineChanged(ProjectRef(101, PROJECT), 9001, status, HEAD, ref, "merge_request_event", iid, actor)


def change(*, draft: bool = False, state: str = "opened", branch: str = "topic", head: str = HEAD) -> Change:
    return Change(7, head, branch, "main", draft, state, 11)


def merge_request(
    action: str = "update", *, pushed: bool = False, actor: Person = ADA, about: Change | None = None
) -> MergeRequestChanged:
    return MergeRequestChanged(ProjectRef(101, PROJECT), about or change(), action, pushed, actor)


def note(
    text: str, *, reply: bool = False, edited: bool = False, author: Person = ADA, discussion_id: str = "d" * 40
) -> NoteWritten:
    return NoteWritten(ProjectRef(101, PROJECT), change(), 77, discussion_id, text, False, reply, edited, author)
