"""Data types of the GitLab stand-in: one plain record for each noun of the API.

Records hold what cannot be computed; `entities` adds addresses, avatars and durations. They refer to people by id,
never by a copy. Times are strings as the API prints them (`2026-03-02T10:00:00.000Z`); None means that it has not
happened.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Raw = dict[str, Any]

DISCUSSION_NOTE = "DiscussionNote"
DIFF_NOTE = "DiffNote"


@dataclass(slots=True)
class User:
    """A person or a bot; `state` is active or blocked."""

    id: int
    username: str
    name: str
    state: str = "active"
    bot: bool = False
    public_email: str = ""


@dataclass(slots=True)
class Member:
    """A membership; `inherited` ones come from a group, and only members/all shows them."""

    user_id: int
    access_level: int
    inherited: bool = False
    expires_at: str | None = None


@dataclass(slots=True)
class AccessToken:
    """A token; `state` is active or expired, `kind` is personal or job (sent as JOB-TOKEN), `expires_on` is a day."""

    value: str
    user_id: int
    scopes: tuple[str, ...]
    state: str = "active"
    kind: str = "personal"
    job_id: int | None = None
    expires_on: str | None = None


@dataclass(slots=True)
class LabProject:
    """A project; `visibility` is private, internal or public. Without `public_jobs` only Reporters and above see CI."""

    id: int
    path: str
    name: str
    description: str = ""
    default_branch: str = "main"
    visibility: str = "private"
    forked_from_id: int | None = None
    all_threads_must_be_resolved: bool = False
    public_jobs: bool = True
    created_at: str = "2020-01-01T00:00:00.000Z"
    members: dict[int, Member] = field(default_factory=dict)


@dataclass(slots=True)
class Commit:
    id: str
    title: str
    message: str
    author_name: str
    author_email: str
    created_at: str
    parent_ids: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DiffFile:
    """One file of a diff; `diff` begins with its first hunk, without the ---/+++ lines."""

    old_path: str
    new_path: str
    a_mode: str
    b_mode: str
    diff: str
    header: str
    new_file: bool = False
    renamed_file: bool = False
    deleted_file: bool = False


@dataclass(slots=True)
class Award:
    id: int
    name: str
    user_id: int
    created_at: str


@dataclass(slots=True)
class Note:
    """A note of a merge request."""

    id: int
    author_id: int
    body: str
    created_at: str
    updated_at: str
    system: bool = False
    internal: bool = False
    type: str | None = None
    position: Raw | None = None
    commit_id: str | None = None
    resolved: bool = False
    resolved_by_id: int | None = None
    resolved_at: str | None = None
    awards: list[Award] = field(default_factory=list)

    @property
    def resolvable(self) -> bool:
        """Whether it belongs to a thread; individual and system notes do not."""
        return self.type in (DISCUSSION_NOTE, DIFF_NOTE) and not self.system


@dataclass(slots=True)
class Discussion:
    id: str
    individual_note: bool
    notes: list[Note]

    @property
    def internal(self) -> bool:
        return self.notes[0].internal

    @property
    def resolvable(self) -> bool:
        return any(note.resolvable for note in self.notes)

    @property
    def resolved(self) -> bool:
        return self.resolvable and all(note.resolved for note in self.notes if note.resolvable)


@dataclass(slots=True)
class DraftNote:
    """A note of a review that is not published; `discussion_id` is the thread it answers, None for a new one."""

    id: int
    author_id: int
    body: str
    discussion_id: str | None = None
    resolve_discussion: bool = False
    position: Raw | None = None
    commit_id: str | None = None


@dataclass(slots=True)
class LabMergeRequest:
    """A merge request.

    `project_id` is the target's. `source_project_id` is None if the fork was deleted. `sha` is None while GitLab
    prepares the merge request. `merge_checked` tells whether mergeability is known; the first read starts the check.
    """

    id: int
    iid: int
    project_id: int
    source_project_id: int | None
    title: str
    description: str
    author_id: int
    source_branch: str
    target_branch: str
    sha: str | None
    base_sha: str | None
    start_sha: str | None
    created_at: str
    updated_at: str
    state: str = "opened"
    draft: bool = False
    assignee_ids: list[int] = field(default_factory=list)
    reviewer_ids: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    approved_by_ids: list[int] = field(default_factory=list)
    merge_checked: bool = False
    closed_by_id: int | None = None
    closed_at: str | None = None
    merged_by_id: int | None = None
    merged_at: str | None = None
    diff_text: str = ""
    files: list[DiffFile] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    discussions: list[Discussion] = field(default_factory=list)
    draft_notes: list[DraftNote] = field(default_factory=list)
    awards: list[Award] = field(default_factory=list)

    @property
    def notes(self) -> list[Note]:
        return [note for discussion in self.discussions for note in discussion.notes]

    @property
    def has_open_threads(self) -> bool:
        """Whether a thread is still open."""
        return any(each.resolvable and not each.resolved for each in self.discussions)


@dataclass(slots=True)
class Pipeline:
    """A pipeline.

    `ref` is what REST shows: refs/merge-requests/7/head for a merge request pipeline, whose webhook names the source
    branch instead. `merge_request_id` is None for other pipelines.
    """

    id: int
    iid: int
    project_id: int
    sha: str
    ref: str
    source: str
    status: str
    user_id: int
    created_at: str
    updated_at: str
    started_at: str | None = None
    finished_at: str | None = None
    merge_request_id: int | None = None
    before_sha: str = "0" * 40
    tag: bool = False
    name: str | None = None


@dataclass(slots=True)
class CiJob:
    """A job or a bridge.

    `log` is None if none was written yet. With `debug_trace` the log may contain secrets, and only developers may read
    it. `downstream` is the pipeline that a bridge started, as the API shows it. `reports` are the kinds of uploaded
    reports, as GitLab names them (`junit`). `artifacts` is the zip archive of the job's other files.
    """

    id: int
    name: str
    stage: str
    status: str
    pipeline_id: int
    user_id: int
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    allow_failure: bool = False
    failure_reason: str | None = None
    retried: bool = False
    log: Path | None = None
    runner: str | None = None
    tags: list[str] = field(default_factory=list)
    bridge: bool = False
    downstream: Raw | None = None
    debug_trace: bool = False
    reports: list[str] = field(default_factory=list)
    artifacts: Path | None = None


@dataclass(slots=True)
class CommitStatus:
    """An external commit status; `retried` if a later one of the same name replaced it."""

    id: int
    sha: str
    name: str
    status: str
    pipeline_id: int
    author_id: int
    created_at: str
    target_url: str | None = None
    description: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    allow_failure: bool = False
    coverage: float | None = None
    retried: bool = False


@dataclass(frozen=True, slots=True)
class WorldChange:
    """Something that happened, for listeners.

    kind     note, emoji, merge_request, pipeline or job, which webhooks report, or quick_action
    action   of notes create, update, destroy; of emoji award, revoke; of merge requests open, close, reopen,
             update, approved, merge …; of pipelines and jobs the new status; of quick actions their name
    subject  the record that changed
    changes  what the webhook of a merge request lists: name → {previous, current}
    extra    `oldrev` of a push; `on`, the note or merge request that an emoji is on;
             `argument` and `applied` of a quick action
    """

    kind: str
    action: str
    subject: Any
    actor: User
    project: LabProject
    merge_request: LabMergeRequest | None = None
    changes: Raw = field(default_factory=dict)
    extra: Raw = field(default_factory=dict)
