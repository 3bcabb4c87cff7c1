"""Hold the state of the GitLab stand-in: all records, the next ids, the clock, and listeners for changes.

    world.merge_request.discussions[0].notes[0]
    world.add_system_note(mr, author, "changed title …")
    world.listeners.append(listen)      # listen(change: WorldChange) after every change, in the server's thread

Code that writes changes the records in place and then calls `announce`.
"""

import hashlib
import itertools
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from hummingbird.lab.fault_injection import Faults
from hummingbird.lab.gitlab.records import (
    AccessToken,
    CiJob,
    Commit,
    CommitStatus,
    DiffFile,
    Discussion,
    LabMergeRequest,
    LabProject,
    Note,
    Pipeline,
    User,
    WorldChange,
)
from hummingbird.lab.gitlab.repository import RepositoryTree

FIRST_NEW_ID = 1_000_000
# The event that caused the current request, as its X-Gitlab-Event-UUID header says.
CAUSING_EVENT: ContextVar[str | None] = ContextVar("CAUSE", default=None)


@dataclass(slots=True)
class DiffLimits:
    """Sizes above which GitLab leaves out a file's text or the later files of a diff."""

    too_large_bytes: int = 204_800
    collapsed_bytes: int = 102_400
    files: int = 1_000
    counted_rows: int = 10_000  # lists longer than this have no X-Total


class WrongLinePolicy(StrEnum):
    """When GitLab rejects a draft note on a line that is not in the diff: its releases differ, and none checks all."""

    REFUSED = "refused"  # at once, with 400
    FAILS = "fails"  # when all are published, with 500: earlier ones are notes then, and all remain drafts
    LOST = "lost"  # when it is published: it disappears, and GitLab reports success


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request as it was answered.

    `username` is None for anonymous requests; no header contains a token. `status` is 0 if the connection was dropped
    or the client left.
    """

    method: str
    path: str
    query: str
    username: str | None
    headers: dict[str, str]
    status: int


@dataclass(slots=True)
class GitLabWorld:
    """The state of one GitLab.

    `url` is the external address, without a slash at its end. `now` is the case's time; each write moves it by a
    second, and `advance` moves it, but it never moves by itself. `mails` has the note ids of each notification.
    """

    url: str
    now: datetime
    projects: list[LabProject]
    users: list[User]
    tokens: list[AccessToken]
    merge_requests: list[LabMergeRequest] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    jobs: list[CiJob] = field(default_factory=list)
    statuses: list[CommitStatus] = field(default_factory=list)
    commits: dict[str, Commit] = field(default_factory=dict)
    test_reports: dict[int, dict[str, object]] = field(default_factory=dict)
    tree: RepositoryTree = field(default_factory=RepositoryTree)
    compared: dict[tuple[str, str], list[DiffFile]] = field(default_factory=dict)
    renames: dict[str, int] = field(default_factory=dict)
    listeners: list[Callable[[WorldChange], None]] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    limits: DiffLimits = field(default_factory=DiffLimits)
    requests: list[AnsweredRequest] = field(default_factory=list)
    mails: list[tuple[int, ...]] = field(default_factory=list)
    drafts_on_wrong_lines: WrongLinePolicy = WrongLinePolicy.REFUSED
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(FIRST_NEW_ID))
    _skipped_s: float = 0.0
    _calls: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    @property
    def project(self) -> LabProject:
        """The project of the case: the target of its merge request."""
        return self.projects[0]

    @property
    def fork(self) -> LabProject | None:
        return next((each for each in self.projects if each.forked_from_id == self.project.id), None)

    @property
    def merge_request(self) -> LabMergeRequest:
        return self.merge_requests[0]

    # Lookups.

    def user(self, user_id: int) -> User:
        return next(each for each in self.users if each.id == user_id)

    def find_user(self, username: str) -> User | None:
        return next((each for each in self.users if each.username == username), None)

    def find_project(self, id_or_path: str) -> LabProject | None:
        """Find a project by id or path, as `:id` accepts it; the case of letters does not matter."""
        return next((p for p in self.projects if id_or_path.lower() in (str(p.id), p.path.lower())), None)

    def project_by_id(self, project_id: int) -> LabProject:
        return next(each for each in self.projects if each.id == project_id)

    def find_merge_request(self, project: LabProject, iid: int) -> LabMergeRequest | None:
        return next((each for each in self.merge_requests if each.project_id == project.id and each.iid == iid), None)

    def pipelines_of(self, project: LabProject) -> list[Pipeline]:
        """Return the pipelines of a project, newest first."""
        return sorted((p for p in self.pipelines if p.project_id == project.id), key=lambda p: -p.id)

    def find_pipeline(self, pipeline_id: int) -> Pipeline | None:
        return next((each for each in self.pipelines if each.id == pipeline_id), None)

    def access_level(self, user: User | None, project: LabProject) -> int:
        """Return the effective access level, 0 for those who are not members."""
        member = project.members.get(user.id) if user else None
        return member.access_level if member else 0

    # Time.

    def next_timestamp(self) -> str:
        """Return the time of the next write; each is a second after the one before."""
        self.now += timedelta(seconds=1)
        return format_time(self.now)

    def advance(self, seconds: float) -> None:
        """Let time pass, for the records and for the rate limits."""
        self.now += timedelta(seconds=seconds)
        self._skipped_s += seconds

    def allow_call(self, name: str, times: int, within_s: float = 60.0) -> bool:
        """Tell whether one more call fits a rate limit, and count it if so."""
        now, calls = time.monotonic() + self._skipped_s, self._calls[name]
        while calls and calls[0] <= now - within_s:
            calls.popleft()
        if len(calls) >= times:
            return False
        calls.append(now)
        return True

    # Writing.

    def next_id(self) -> int:
        """Return an id that no record of any kind has yet."""
        return next(self._ids)

    def announce(self, change: WorldChange) -> None:
        """Tell all listeners about a change."""
        for listener in list(self.listeners):
            listener(change)

    def add_discussion(self, merge_request: LabMergeRequest, note: Note, *, individual: bool) -> Discussion:
        """Add a thread that begins with `note`. The caller announces it."""
        discussion = Discussion(discussion_id(note.id), individual, [note])
        merge_request.discussions.append(discussion)
        return discussion

    def new_note(self, author: User, body: str, *, internal: bool = False, note_type: str | None = None) -> Note:
        """Make a note with an id and the time; it belongs to no thread yet."""
        now = self.next_timestamp()
        return Note(self.next_id(), author.id, body, now, now, internal=internal, type=note_type)

    def add_system_note(self, merge_request: LabMergeRequest, author: User, body: str) -> Note:
        """Add a note that GitLab itself writes; no webhook reports it."""
        note = self.new_note(author, body)
        note.system = True
        self.add_discussion(merge_request, note, individual=True)
        return note


def discussion_id(note_id: int) -> str:
    """Return 40 hexadecimal digits, the same for the same first note."""
    return hashlib.sha1(f"discussion {note_id}".encode(), usedforsecurity=False).hexdigest()


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Return the seconds between two printed times, or None."""
    if start is None or end is None:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def format_time(moment: datetime) -> str:
    """Print a time as the API does: UTC, milliseconds, Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
