"""The world of one case: all records, the next ids, the clock, and those who want to hear of changes.

    world.merge_request.discussions[0].notes[0]
    world.add_system_note(mr, author, "changed title …")
    world.listeners.append(heard)      # heard(change: Change) after every change, in the server's thread

Whoever writes changes the records in place and then calls `tell`. It knows nothing of HTTP, tokens' meaning or JSON.
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

from hummingbird.lab.gitlab.records import (
    Change,
    Commit,
    Discussion,
    FileDiff,
    Job,
    MergeRequest,
    Note,
    Pipeline,
    Project,
    Status,
    Token,
    User,
)
from hummingbird.lab.gitlab.repository import Tree
from hummingbird.lab.planned import Faults

FIRST_NEW_ID = 1_000_000
# The event that made somebody send the request that is answered now, as its X-Gitlab-Event-UUID says.
CAUSE: ContextVar[str | None] = ContextVar("CAUSE", default=None)


@dataclass(slots=True)
class DiffLimits:
    """Above these GitLab leaves out a file's text or a diff's later files (facts 2.2)."""

    too_large_bytes: int = 204_800
    collapsed_bytes: int = 102_400
    files: int = 1_000
    counted_rows: int = 10_000  # lists longer than this have no X-Total (facts 2.8)


class WrongLine(StrEnum):
    """When GitLab minds that a draft note is on no line of the diff: its releases differ, and none checks all."""

    REFUSED = "refused"  # at once, with 400
    FAILS = "fails"  # when all are published, with 500: those before it are notes then, and all are drafts still
    LOST = "lost"  # when it is published: it is gone, and GitLab says that all went well


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it was answered. `who` is a username, None for strangers; no header holds a token.

    `status` 0: the connection was dropped, or the client left."""

    method: str
    path: str
    query: str
    who: str | None
    headers: dict[str, str]
    status: int


@dataclass(slots=True)
class World:
    """`url` is the external address, without a slash at its end. `now` is the case's time; it moves by what is written
    (a second each) and by `advance`, never by itself. `mails`: the notes that each notification of people told of."""

    url: str
    now: datetime
    projects: list[Project]
    users: list[User]
    tokens: list[Token]
    merge_requests: list[MergeRequest] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    commits: dict[str, Commit] = field(default_factory=dict)
    test_reports: dict[int, dict[str, object]] = field(default_factory=dict)
    tree: Tree = field(default_factory=Tree)
    compared: dict[tuple[str, str], list[FileDiff]] = field(default_factory=dict)
    renames: dict[str, int] = field(default_factory=dict)
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    limits: DiffLimits = field(default_factory=DiffLimits)
    requests: list[Seen] = field(default_factory=list)
    mails: list[tuple[int, ...]] = field(default_factory=list)
    drafts_on_wrong_lines: WrongLine = WrongLine.REFUSED
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(FIRST_NEW_ID))
    _skipped_s: float = 0.0
    _calls: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    @property
    def project(self) -> Project:
        """The one that the case is about: the target of its merge request."""
        return self.projects[0]

    @property
    def fork(self) -> Project | None:
        return next((each for each in self.projects if each.forked_from_id == self.project.id), None)

    @property
    def merge_request(self) -> MergeRequest:
        return self.merge_requests[0]

    # looking up

    def user(self, user_id: int) -> User:
        return next(each for each in self.users if each.id == user_id)

    def user_named(self, username: str) -> User | None:
        return next((each for each in self.users if each.username == username), None)

    def project_by(self, id_or_path: str) -> Project | None:
        """By number or path, as `:id` takes it; paths in any case of letters."""
        return next((p for p in self.projects if id_or_path.lower() in (str(p.id), p.path.lower())), None)

    def project_with(self, project_id: int) -> Project:
        return next(each for each in self.projects if each.id == project_id)

    def merge_request_of(self, project: Project, iid: int) -> MergeRequest | None:
        return next((each for each in self.merge_requests if each.project_id == project.id and each.iid == iid), None)

    def pipelines_of(self, project: Project) -> list[Pipeline]:
        """Newest first."""
        return sorted((p for p in self.pipelines if p.project_id == project.id), key=lambda p: -p.id)

    def pipeline(self, pipeline_id: int) -> Pipeline | None:
        return next((each for each in self.pipelines if each.id == pipeline_id), None)

    def level(self, user: User | None, project: Project) -> int:
        """Effective access level, 0 for those who are no members."""
        member = project.members.get(user.id) if user else None
        return member.access_level if member else 0

    # time

    def stamp(self) -> str:
        """The time of something written now; each is a second after the one before."""
        self.now += timedelta(seconds=1)
        return printed(self.now)

    def advance(self, seconds: float) -> None:
        """Let time pass: for the records, and for the rate limits."""
        self.now += timedelta(seconds=seconds)
        self._skipped_s += seconds

    def allows(self, name: str, times: int, within_s: float = 60.0) -> bool:
        """Whether one more call fits a rate limit; it is counted if so."""
        now, calls = time.monotonic() + self._skipped_s, self._calls[name]
        while calls and calls[0] <= now - within_s:
            calls.popleft()
        if len(calls) >= times:
            return False
        calls.append(now)
        return True

    # writing

    def next_id(self) -> int:
        """Never given before in this world, for whatever kind of record."""
        return next(self._ids)

    def tell(self, change: Change) -> None:
        for listener in list(self.listeners):
            listener(change)

    def add_discussion(self, merge_request: MergeRequest, note: Note, *, individual: bool) -> Discussion:
        """A thread that begins with `note`. Tells nobody: that is the writer's business."""
        discussion = Discussion(discussion_id(note.id), individual, [note])
        merge_request.discussions.append(discussion)
        return discussion

    def new_note(self, author: User, body: str, *, internal: bool = False, note_type: str | None = None) -> Note:
        """With an id and the time; it belongs to no thread yet."""
        now = self.stamp()
        return Note(self.next_id(), author.id, body, now, now, internal=internal, type=note_type)

    def add_system_note(self, merge_request: MergeRequest, author: User, body: str) -> Note:
        """What GitLab itself writes into the thread list; no hook is told of it (facts 1.3)."""
        note = self.new_note(author, body)
        note.system = True
        self.add_discussion(merge_request, note, individual=True)
        return note


def discussion_id(note_id: int) -> str:
    """40 hexadecimal digits, the same for the same first note."""
    return hashlib.sha1(f"discussion {note_id}".encode(), usedforsecurity=False).hexdigest()


def seconds(start: str | None, end: str | None) -> float | None:
    """From one printed time to another."""
    if start is None or end is None:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def printed(moment: datetime) -> str:
    """As the API prints times: UTC, milliseconds, Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
