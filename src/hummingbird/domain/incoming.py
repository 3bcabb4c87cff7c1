"""What happened on GitLab, as far as anything is decided by it. The nouns alone: how GitLab says it, intake knows.

Texts in here are outsiders' words unless their author was checked.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ProjectRef:
    """`path` is what configuration knows a project by."""

    id: int
    path: str


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Change:
    """A merge request. `head` is empty while GitLab prepares it; `author_id` 0 where the event does not say."""

    iid: int
    head: str
    source_branch: str
    target_branch: str
    draft: bool
    state: str
    author_id: int = 0


@dataclass(frozen=True, slots=True)
class PipelineChanged:
    """`sha` is the pipeline's, which may be a merge commit that nobody pushed. `merge_request` 0: the event names none,
    which is not to say that there is none."""

    project: ProjectRef
    pipeline_id: int
    status: str
    sha: str
    ref: str
    source: str
    merge_request: int
    actor: Person


@dataclass(frozen=True, slots=True)
class MergeRequestChanged:
    """`action` may be empty: test deliveries and old servers have none. `pushed`: the code changed."""

    project: ProjectRef
    change: Change
    action: str
    pushed: bool
    actor: Person


@dataclass(frozen=True, slots=True)
class NoteWritten:
    """`reply`: it stands in a thread that can go on. `edited`: it is an old note with a new text."""

    project: ProjectRef
    change: Change
    note_id: int
    discussion_id: str
    text: str
    internal: bool
    reply: bool
    edited: bool
    author: Person


@dataclass(frozen=True, slots=True)
class EmojiChanged:
    """Somebody put an emoji on a note of a merge request, or took it away. Which one, GitLab is asked."""

    project: ProjectRef
    note_id: int
    actor: Person

    @property
    def reason(self) -> str:
        """Why nothing is begun."""
        return "an emoji starts nothing"


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing of ours, and why."""

    reason: str


Incoming: TypeAlias = PipelineChanged | MergeRequestChanged | NoteWritten | EmojiChanged | Ignored
