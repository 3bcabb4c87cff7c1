"""The lab's GitLab with people in it, our forge before it, and a forge that dies at any step."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hummingbird.config.configuration import Configuration
from hummingbird.core.errors import GitLabWriteUncertain
from hummingbird.core.masking import Secrets
from hummingbird.gitlab.webhook_events import GitLabUser, MergeRequestState, NoteWritten, ProjectRef
from hummingbird.gitlab.write.project_writer import GitLabProjectWriters
from hummingbird.gitlab.write.protocol import (
    GitLabWriter,
    MergeRequestThread,
    NoteDraft,
    NoteKind,
    NoteMarker,
    NoteMarkers,
    OrchestratorToken,
    PostedNoteRef,
)
from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.records import Discussion, Note
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write import notes
from hummingbird.service.publisher import ResultPublisher
from tests.service.publication.stage import IID, PROJECT, SHA
from tests.standins.scripted_model import ScriptedClock

PREFIX = "hummingbird-session"
BOT = "project_311_bot_5f1c9e0b"
DEVELOPER = "mlefevre"


@dataclass(frozen=True)
class Said:
    """A note as GitLab keeps it, with its thread."""

    thread: Discussion
    note: Note

    @property
    def body(self) -> str:
        return self.note.body

    @property
    def marker(self) -> NoteMarker | None:
        return NoteMarkers(PREFIX).parse_marker(self.body)

    def is_a(self, part: NoteKind) -> bool:
        return self.marker is not None and self.marker.part is part


@dataclass(frozen=True)
class Room:
    lab: GitLabLab
    forges: GitLabProjectWriters
    clock: ScriptedClock

    @property
    def forge(self) -> GitLabWriter:
        return self.forges.writer_for(PROJECT)

    def publication(self, configuration: Configuration, forge: GitLabWriter | None = None) -> ResultPublisher:
        return ResultPublisher(forge or self.forge, configuration, self.clock)

    async def threads(self) -> Sequence[MergeRequestThread]:
        return await self.forge.threads(IID)

    def ours(self, part: NoteKind | None = None) -> list[Said]:
        """The bot's own notes, oldest first."""

        def look(world: GitLabWorld) -> list[Said]:
            bot = _person(world, BOT)
            found = [Said(thread, note) for thread in world.merge_request.discussions for note in thread.notes]
            return sorted(
                (each for each in found if each.note.author_id == bot and not each.note.system),
                key=lambda each: each.note.id,
            )

        return [said for said in self.lab.run_in_server(look) if part is None or said.is_a(part)]

    def writes(self, comment: str, *, by: str = DEVELOPER, internal: bool = False, thread: str = "") -> NoteWritten:
        """A person comments, in a thread or by itself."""
        return self.lab.run_in_server(lambda world: _written(world, comment, by, internal, thread))

    def deletes(self, note_id: int) -> None:
        def remove(world: GitLabWorld) -> None:
            request = world.merge_request
            note = next(each for each in request.notes if each.id == note_id)
            author = next(user for user in world.users if user.id == note.author_id)
            notes.remove_note(world, request, author, note)

        self.lab.run_in_server(remove)

    def awards(self, note_id: int) -> list[str]:
        return self.lab.run_in_server(
            lambda world: [
                award.name for note in world.merge_request.notes if note.id == note_id for award in note.awards
            ]
        )


@contextmanager
def room() -> Iterator[Room]:
    """Its forges have to be closed by whoever runs a loop."""
    clock = ScriptedClock()
    with GitLabLab(find_case("failing-test")) as lab:
        forges = GitLabProjectWriters(
            lab.url,
            lambda _: OrchestratorToken(lab.write_token),
            secrets=Secrets(()),
            marker_prefix=PREFIX,
            pause=clock.sleep,
        )
        yield Room(lab, forges, clock)


class Died(Exception):
    """The process is gone."""


class Mortal:
    """A forge whose process dies before, or right after, its `last` call; `calls` are those that were begun."""

    def __init__(self, forge: GitLabWriter, last: int = -1, *, after: bool = False) -> None:
        self._forge = forge
        self._last = last
        self._after = after
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._forge, name)

        async def called(*arguments: Any, **named: Any) -> Any:
            number = len(self.calls)
            self.calls.append(name)
            if number == self._last and not self._after:
                raise Died
            answer = await real(*arguments, **named)
            if number == self._last:
                raise Died
            return answer

        return called


class Doubtful:
    """A forge whose first `times` writes of notes end in doubt. `kept`: numbers of those that GitLab has done; for
    `hidden` looks they are not to be seen."""

    def __init__(self, forge: GitLabWriter, *, times: int, kept: Sequence[int] = (), hidden: int = 0) -> None:
        self._forge = forge
        self._times = times
        self._kept = kept
        self._hidden = hidden
        self._old: Sequence[MergeRequestThread] = ()
        self.wrote = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)

    async def threads(self, iid: int) -> Sequence[MergeRequestThread]:
        if not self.wrote or not self._hidden:
            self._old = await self._forge.threads(iid)
        else:
            self._hidden -= 1
        return self._old

    async def open_thread(self, iid: int, draft: NoteDraft, *, internal: bool) -> PostedNoteRef:
        return await self._doubted(lambda: self._forge.open_thread(iid, draft, internal=internal))

    async def reply(self, iid: int, thread: MergeRequestThread, draft: NoteDraft) -> PostedNoteRef:
        return await self._doubted(lambda: self._forge.reply(iid, thread, draft))

    async def _doubted(self, write: Callable[[], Awaitable[PostedNoteRef]]) -> PostedNoteRef:
        self.wrote += 1
        if self.wrote > self._times:
            return await write()
        if self.wrote in self._kept:
            await write()
        raise GitLabWriteUncertain("Nobody saw its end: look whether it is there.")


def _person(world: GitLabWorld, username: str) -> int:
    return next(user.id for user in world.users if user.username == username)


def _written(world: GitLabWorld, comment: str, by: str, internal: bool, thread_id: str) -> NoteWritten:
    request = world.merge_request
    author = next(user for user in world.users if user.username == by)
    thread = next((each for each in request.discussions if each.id == thread_id), None)
    posted = notes.store_note(
        world, request, author, notes.NewNote(body=comment, internal=internal, thread=thread), comment
    )
    note, discussion = posted
    return NoteWritten(
        project=ProjectRef(311, PROJECT),
        change=MergeRequestState(IID, SHA, "main", "main", False, "opened"),
        note_id=note.id,
        discussion_id=discussion.id,
        text=comment,
        internal=note.internal,
        reply=note.type is not None,
        edited=False,
        author=GitLabUser(author.id, author.username),
    )
