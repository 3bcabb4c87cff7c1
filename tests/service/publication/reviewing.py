"""A review that found something, from its order to its notes, before a GitLab that may fail at any step."""

from dataclasses import dataclass
from typing import Any

from hummingbird.core.findings import ReviewFinding, Severity
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.gitlab.write.protocol import GitLabWriter, NoteKind
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.service.failure_history import KnownFailureTracker
from hummingbird.service.protocols import FailedOrder, RetryLater
from hummingbird.service.publisher import ResultPublisher
from hummingbird.service.run_stage import RunStage
from tests.service.answered import Answered
from tests.service.publication.room import PREFIX, Room, Said
from tests.service.publication.stage import configured, ordered

FILE = "cidiff/src/main/java/fr/labri/cidiff/LogParser.java"
THROWS = ReviewFinding(path=FILE, line=30, severity=Severity.MAJOR, text="Callers do not expect it to throw.")
OLD = ReviewFinding(path=FILE, line=30, severity=Severity.NIT, text="This was quieter.", old=True)
AFTER = ReviewFinding(path=FILE, line=32, severity=Severity.MINOR, text="The third part may be empty.")
ALL = (THROWS, AFTER, OLD)
ORDER = ordered(OrderCause.MERGE_REQUEST)


@dataclass(frozen=True)
class _Alone:
    """One forge for all projects."""

    forge: GitLabWriter

    def writer_for(self, project: str) -> GitLabWriter:
        return self.forge

    async def close(self) -> None:
        """It is somebody else's."""


async def reviewed(
    room: Room, forge: Any = None, *, order: WorkOrder = ORDER, found: Answered | None = None, **workflow: Any
) -> None:
    """The order is delivered once."""
    configuration = configured(
        **{"trigger": "merge_request", "internal_notes": False, "inline_findings": True, **workflow}
    )
    alone = _Alone(forge or room.forge)
    runs = RunStage(
        lambda: configuration,
        lambda _: alone,
        lambda forge, configuration: ResultPublisher(forge, configuration, room.clock),
        found or Answered("Three remarks.", ALL),
        KnownFailureTracker(None, room.clock),
        room.clock.now,
    )
    done = await runs.process(order, last_try=False)
    assert not isinstance(done, RetryLater | FailedOrder), done


def on_lines(room: Room) -> list[Said]:
    return room.ours(NoteKind.FINDING)


def held(room: Room) -> list[str]:
    """What the bot keeps to itself."""
    return room.lab.run_in_server(lambda world: [draft.body for draft in world.merge_request.draft_notes])


def mails(room: Room) -> list[int]:
    """How many of the bot's notes each notification was about."""

    def look(world: GitLabWorld) -> list[int]:
        own = {note.id for note in world.merge_request.notes if f"<!-- {PREFIX}" in note.body}
        return [len(own.intersection(mail)) for mail in world.mails if own.intersection(mail)]

    return room.lab.run_in_server(look)


def as_it_should_be(room: Room, findings: int = 3) -> None:
    """One placeholder, each finding on its line, one result, and nothing held back."""
    parts = [said.marker.part for said in room.ours() if said.marker]
    assert [parts.count(part) for part in (NoteKind.PLACEHOLDER, NoteKind.FINDING, NoteKind.RESULT)] == [1, findings, 1]
    assert len({said.body for said in on_lines(room)}) == findings
    assert held(room) == []


def push(room: Room, sha: str) -> None:
    def change(world: GitLabWorld) -> None:
        world.merge_request.sha = sha

    room.lab.run_in_server(change)
