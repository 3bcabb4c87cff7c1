"""Define the GitLab events that the service reacts to.

Every text in an event is untrusted until its author's access level was checked.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ProjectRef:
    """A GitLab project; the configuration names it by `path`."""

    id: int
    path: str


@dataclass(frozen=True, slots=True)
class GitLabUser:
    """A GitLab user."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class MergeRequestState:
    """A merge request as an event describes it.

    `head` is empty while GitLab prepares the merge request; `author_id` is 0 when the event does not name the author.
    """

    iid: int
    head: str
    source_branch: str
    target_branch: str
    draft: bool
    state: str
    author_id: int = 0


@dataclass(frozen=True, slots=True)
class PipelineChanged:
    """A pipeline has a new status.

    `sha` is the pipeline's commit, which may be a merge commit that nobody pushed. `merge_request` is 0 when the event
    names none; the pipeline may still belong to one.
    """

    project: ProjectRef
    pipeline_id: int
    status: str
    sha: str
    ref: str
    source: str
    merge_request: int
    actor: GitLabUser


@dataclass(frozen=True, slots=True)
class MergeRequestChanged:
    """A merge request was opened, updated, merged or closed.

    `action` is empty in test deliveries and in events of old servers. `pushed` says that the code changed.
    """

    project: ProjectRef
    change: MergeRequestState
    action: str
    pushed: bool
    actor: GitLabUser


@dataclass(frozen=True, slots=True)
class NoteWritten:
    """Somebody wrote or edited a note on a merge request.

    `reply` says that the note is in a thread that accepts replies; `edited` that it is an existing note with a new
    text.
    """

    project: ProjectRef
    change: MergeRequestState
    note_id: int
    discussion_id: str
    text: str
    internal: bool
    reply: bool
    edited: bool
    author: GitLabUser


@dataclass(frozen=True, slots=True)
class EmojiChanged:
    """Somebody added an emoji to a note of a merge request, or removed one.

    Which emoji it is, is not kept: the service reads the current ones from GitLab.
    """

    project: ProjectRef
    note_id: int
    actor: GitLabUser

    @property
    def reason(self) -> str:
        """Return why the event starts no run."""
        return "an emoji starts nothing"


@dataclass(frozen=True, slots=True)
class IgnoredEvent:
    """An event that the service ignores, with the reason."""

    reason: str


GitLabEvent: TypeAlias = PipelineChanged | MergeRequestChanged | NoteWritten | EmojiChanged | IgnoredEvent
