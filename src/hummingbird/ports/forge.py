"""What we ask of the forge, the write side. Imported by forge, service and assembly alone.

Its credential is an `OrchestratorToken`: the tier that writes. The one that reads is another type in another room, and
nothing takes the one for the other (G3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hummingbird.domain import access
from hummingbird.domain.diffs import Comparison, FileDiff, Spot
from hummingbird.domain.incoming import Change
from hummingbird.domain.notes import Draft, Marker
from hummingbird.domain.votes import Reaction

DEVELOPER = access.DEVELOPER


class OrchestratorToken:
    """A credential that writes with the bot's rights. Shown nowhere: its value is only had by asking for it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "OrchestratorToken(…)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """`base_sha` and `start_sha` with `change.head` say what its diff is between; empty while GitLab prepares it.
    `in_train`: its newest pipeline is that of a merge train, whose commits need not be made of the head."""

    change: Change
    project: str
    author: str
    title: str
    url: str
    head_pipeline_id: int = 0
    in_train: bool = False
    base_sha: str = ""
    start_sha: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A job or an external status of a commit. `changed_at`: seconds since the epoch of its last change, 0 if GitLab
    does not say. Whether it may fail does not matter for whether it is over."""

    name: str
    status: str
    changed_at: float = 0.0
    url: str = ""
    pipeline_id: int = 0
    allow_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSeen:
    """`marker` and `answers` are read from the bot's own notes alone, and None and 0 elsewhere (N2). `line`: where it
    stands in the diff, 0 if it does not; `at` is the commit in which the file has that line, `old` says that it is the
    one before the change, where it is called `old_path`. `words` is the digest of its text: others' words themselves
    are kept from us, but whether an event repeats them can be seen (I9), and `dismisses`: whether they say that nothing
    will be done about a finding (W2). `made_at`: seconds since the epoch."""

    id: int
    author_id: int
    by_bot: bool
    internal: bool
    words: str = ""
    dismisses: bool = False
    marker: Marker | None = None
    answers: int = 0
    path: str = ""
    line: int = 0
    old_path: str = ""
    old: bool = False
    at: str = ""
    made_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """`individual`: nobody has replied yet, so it cannot be resolved. `dismissed`: it is about a finding, and a
    developer says in it that nothing will be done about that (W2), whether it is resolved or not. `resolved_by_bot`,
    `resolved_at`: who has done it last, and when, in seconds since the epoch."""

    id: str
    notes: tuple[NoteSeen, ...]
    individual: bool
    resolved: bool
    dismissed: bool = False
    resolved_by_bot: bool = False
    resolved_at: float = 0.0

    @property
    def marker(self) -> Marker | None:
        """The first one wins (N2)."""
        return next((note.marker for note in self.notes if note.marker is not None), None)

    @property
    def internal(self) -> bool:
        return bool(self.notes) and self.notes[0].internal


@dataclass(frozen=True, slots=True)
class Posted:
    discussion_id: str
    note_id: int
    internal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A note of the bot that nobody else sees yet: a draft note, as GitLab calls it. `marker` None: not one of ours."""

    id: int
    marker: Marker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The newest finished pipeline of a branch: 0 and nothing if there is none."""

    pipeline_id: int = 0
    url: str = ""
    failed_jobs: frozenset[str] = frozenset()


class Forge(Protocol):
    """One project, seen and written with the bot's rights.

    Reads are tried again; they raise ForgeMissing (404), ForgeRefused (the same request will fail again), ForgeDown,
    and CredentialRefused. Writes are tried again only if GitLab surely did nothing; otherwise they raise
    WriteUncertain: look before you write again (N3).
    """

    async def bot_ids(self) -> frozenset[int]:
        """The bot's own user and those that it was before (N2). Asked of GitLab once."""
        ...

    async def merge_request(self, iid: int) -> MergeRequest: ...

    async def requests_at(self, sha: str) -> Sequence[MergeRequest]:
        """The open ones whose head is this commit (R1)."""
        ...

    async def parents(self, sha: str) -> frozenset[str]:
        """Of a commit; none of one that is not there."""
        ...

    async def checks(self, sha: str, pipeline_id: int = 0) -> Sequence[Check]:
        """The latest of each name on that commit, and of that pipeline if it ran on another one (merged results). No
        commit, no checks."""
        ...

    async def access(self, user_id: int) -> int:
        """Level of a member who can use it; 0 for everybody else. Remembered for ACCESS_S seconds."""
        ...

    async def threads(self, iid: int) -> Sequence[Thread]:
        """All of them, oldest first, without what GitLab itself writes."""
        ...

    async def thread(self, iid: int, discussion_id: str) -> Thread | None:
        """None if there is none, or none that we may see."""
        ...

    async def open_thread(self, iid: int, draft: Draft, *, internal: bool) -> Posted:
        """A new one. An internal one is a note first and a thread with its first reply; if GitLab published it in spite
        of that, it is taken back and ForgeRefused is raised (N1)."""
        ...

    async def reply(self, iid: int, thread: Thread, draft: Draft) -> Posted:
        """In a thread as it was just seen. A public reply in an internal one is taken back, as above."""
        ...

    async def comment(self, merge_request: MergeRequest, spot: Spot, draft: Draft) -> Posted:
        """A new thread on a line of the diff, always public."""
        ...

    async def held(self, iid: int) -> Sequence[Held]:
        """The bot's own notes that wait to be released, oldest first. ForgeMissing, ForgeRefused: the server has none
        such."""
        ...

    async def hold(self, merge_request: MergeRequest, place: Spot | Thread, draft: Draft) -> None:
        """A note on a line, or a reply in a public thread, that nobody sees before `release`. That a place is refused
        may be seen only then."""
        ...

    async def release(self, iid: int) -> None:
        """Publishes all that is held, oldest first, with one notification for people. Where it fails, some may be
        published and all be held still; and what GitLab does not take may be gone without a word: look."""
        ...

    async def drop(self, iid: int, held_id: int) -> None:
        """Of what is held. Done also if it was gone already."""
        ...

    async def award(self, iid: int, note_id: int, emoji: str) -> None:
        """Done also if it was there already."""
        ...

    async def reactions(self, iid: int, note_id: int) -> Sequence[Reaction]:
        """Emoji on a note, whosever they are, REACTIONS_READ of them at most. Their names are anybody's words."""
        ...

    async def resolve(self, iid: int, discussion_id: str) -> None:
        """Done also if it was resolved already or cannot be."""
        ...

    async def reopen(self, iid: int, discussion_id: str) -> None:
        """The opposite; done also if it was open already or cannot be."""
        ...

    async def diffs(self, iid: int) -> Sequence[FileDiff]: ...

    async def compare(self, old: str, new: str) -> Comparison:
        """From the one commit to the other, whatever leads there. Raises ForgeMissing also for a commit that nobody
        keeps any more."""
        ...

    async def branch(self, name: str) -> Branch: ...


class Forges(Protocol):
    """One for each project, for each has a token of its own (G3)."""

    def of(self, project: str) -> Forge:
        """Raises MissingSetting: there is no token that writes for it."""
        ...

    async def close(self) -> None: ...
