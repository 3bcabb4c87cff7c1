"""A review that found something, from its order to its notes, before a GitLab that may fail at any step."""

from dataclasses import dataclass
from typing import Any

from hummingbird.domain.findings import Finding, Severity
from hummingbird.domain.notes import Part
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.lab.gitlab.store import World
from hummingbird.ports.forge import Forge
from hummingbird.service.known import Known
from hummingbird.service.publication import Publication
from hummingbird.service.runs import Runs
from tests.service.answered import Answered
from tests.service.publication.room import PREFIX, Room, Said
from tests.service.publication.stage import configured, ordered

FILE = "cidiff/src/main/java/fr/labri/cidiff/LogParser.java"
THROWS = Finding(path=FILE, line=30, severity=Severity.MAJOR, text="Callers do not expect it to throw.")
OLD = Finding(path=FILE, line=30, severity=Severity.NIT, text="This was quieter.", old=True)
AFTER = Finding(path=FILE, line=32, severity=Severity.MINOR, text="The third part may be empty.")
ALL = (THROWS, AFTER, OLD)
ORDER = ordered(Cause.MERGE_REQUEST)


@dataclass(frozen=True)
class _Alone:
    """One forge for all projects."""

    forge: Forge

    def of(self, project: str) -> Forge:
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
    runs = Runs(
        lambda: configuration,
        lambda _: alone,
        lambda forge, configuration: Publication(forge, configuration, room.clock),
        found or Answered("Three remarks.", ALL),
        Known(None, room.clock),
        room.clock.now,
    )
    assert await runs.ordered(order, last_try=False) is None


def on_lines(room: Room) -> list[Said]:
    return room.ours(Part.FINDING)


def held(room: Room) -> list[str]:
    """What the bot keeps to itself."""
    return room.lab.ask(lambda world: [draft.body for draft in world.merge_request.draft_notes])


def mails(room: Room) -> list[int]:
    """How many of the bot's notes each notification was about."""

    def look(world: World) -> list[int]:
        own = {note.id for note in world.merge_request.notes if f"<!-- {PREFIX}" in note.body}
        return [len(own.intersection(mail)) for mail in world.mails if own.intersection(mail)]

    return room.lab.ask(look)


def as_it_should_be(room: Room, findings: int = 3) -> None:
    """One placeholder, each finding on its line, one result, and nothing held back."""
    parts = [said.marker.part for said in room.ours() if said.marker]
    assert [parts.count(part) for part in (Part.PLACEHOLDER, Part.FINDING, Part.RESULT)] == [1, findings, 1]
    assert len({said.body for said in on_lines(room)}) == findings
    assert held(room) == []


def push(room: Room, sha: str) -> None:
    def change(world: World) -> None:
        world.merge_request.sha = sha

    room.lab.ask(change)
