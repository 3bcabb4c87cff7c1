"""The two stages of the service as a configuration makes them, before a case's GitLab over HTTP. What a model would say
is given; everything else is real."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from hummingbird.app.gitlab_write import ForgeCache
from hummingbird.app.model_choice import model_check
from hummingbird.config.configuration import Configuration
from hummingbird.config.loader import load_config
from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.gitlab.write.protocol import GitLabWriter
from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.records import Discussion, Note
from hummingbird.lab.gitlab.webhook_events import event_from_declaration
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write import notes
from hummingbird.lab.scene import Scene
from hummingbird.service.event_stage import EventStage
from hummingbird.service.failure_history import KnownFailureTracker
from hummingbird.service.protocols import FailedOrder, RetryLater, Skipped
from hummingbird.service.publisher import ResultPublisher
from hummingbird.service.run_stage import RunStage
from tests.service.answered import Answered
from tests.standins.scripted_model import ScriptedClock

Answer = TypeVar("Answer")
CASE = "compiler-error"
PROJECT = "veloren/veloren"
WORKFLOW = "analyze-failures"
BOT, AUTHOR, MAINTAINER = 91, "tove", "mira"
FAILED = 1145201733  # the pipeline that the case begins with


def written(folder: Path, settings: Sequence[str] = (), workflow: Sequence[str] = (), project: str = "{}") -> Path:
    """One workflow, for every project; lines of YAML without their indentation."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "look.md").write_text("Find out why it failed.")
    lines = ["settings:", *(f"  {line}" for line in settings), "workflows:", f"  {WORKFLOW}:", "    prompt: look.md"]
    lines += [f'    projects: {{"*": {project}}}', *(f"    {line}" for line in workflow)]
    file = folder / "hummingbird.yaml"
    file.write_text("\n".join(lines) + "\n")
    return file


@dataclass
class Desk:
    folder: Path
    scene: Scene
    answering: Answered
    clock: ScriptedClock
    forges: ForgeCache
    configuration: Configuration = field(init=False)
    credentials: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.says()

    def says(self, *settings: str, workflow: Sequence[str] = ("trigger: pipeline",), project: str = "{}") -> None:
        """The configuration from now on. Waiting and internal notes are off unless something else is said."""
        usual = {"gitlab_url": self.scene.url("gitlab"), "settle_seconds": "0", "internal_notes": "false"}
        named = {line.split(":", 1)[0] for line in settings}
        lines = [*(f"{name}: {value}" for name, value in usual.items() if name not in named), *settings]
        self.configuration = load_config(written(self.folder, lines, workflow, project), None)

    def says_on(self, level: str, near: str, far: str) -> None:
        """`near` on that level and `far` on those above it, so that `near` holds."""
        levels = ("settings", "workflow", "project")
        at = levels.index(level)
        lines = {name: near if name == level else far for name in levels[: at + 1]}
        workflow = ("trigger: pipeline", *(lines[name] for name in ("workflow",) if name in lines))
        self.says(lines["settings"], workflow=workflow, project=f"{{{lines.get('project', '')}}}")

    async def orders(self, declared: Mapping[str, Any] | None = None) -> tuple[WorkOrder, ...]:
        """The first stage: what an event of the case leads to."""
        wanted = declared or self.scene.case.description["event"]
        _, body = self.world(lambda world: event_from_declaration(world, wanted))
        return await self.hears(body)

    async def hears(self, body: bytes) -> tuple[WorkOrder, ...]:
        """Pass the body of a webhook to the first stage, whatever has happened since it was made."""

        async def body_of(_: EventEnvelope) -> bytes:
            return body

        publication, now = self._publication, self.clock.now
        arrivals = EventStage(lambda: self.configuration, self.forges, publication, body_of, now, can_ask=self._can_ask)
        event = EventEnvelope(identity=f"event-{len(self.answering.ran)}", at=self.clock.now())
        orders = await arrivals.process(event)
        return () if isinstance(orders, Skipped) else orders

    async def comes(self, declared: Mapping[str, Any] | None = None) -> list[RetryLater | Skipped | FailedOrder | None]:
        """Both stages."""
        return [await self.carries_out(order) for order in await self.orders(declared)]

    async def carries_out(self, order: WorkOrder) -> RetryLater | Skipped | FailedOrder | None:
        """The second stage."""
        known, now = KnownFailureTracker(None, self.clock), self.clock.now
        runs = RunStage(
            *(lambda: self.configuration, self.forges, self._publication, self.answering, known, now),
            can_ask=self._can_ask,
        )
        return await runs.process(order, last_try=True)

    async def commands(self, text: str) -> list[RetryLater | Skipped | FailedOrder | None]:
        return await self.comes({"kind": "note", "note": self.writes(text, AUTHOR)})

    def writes(self, text: str, by: str) -> int:
        """The id of a note that somebody wrote."""

        def write(world: GitLabWorld) -> int:
            author = world.find_user(by)
            assert author is not None
            note, _ = notes.store_note(
                world, world.merge_request, author, notes.NewNote(body=text, individual=False), text
            )
            return note.id

        return self.world(write)

    @property
    def threads(self) -> list[Discussion]:
        """Those that the bot began, oldest first."""
        return self.world(
            lambda world: [one for one in world.merge_request.discussions if one.notes[0].author_id == BOT]
        )

    @property
    def notes(self) -> list[Note]:
        """Those that the bot wrote, oldest first."""
        found = self.world(lambda world: [one for one in world.merge_request.notes if one.author_id == BOT])
        return sorted((note for note in found if not note.system), key=lambda note: note.id)

    def world(self, question: Callable[[GitLabWorld], Answer]) -> Answer:
        return self.scene.run_in_server(lambda worlds: question(worlds.gitlab))

    def _can_ask(self, model: str) -> bool:
        return model_check(lambda: self.configuration, self.credentials)(model)

    def _publication(self, forge: GitLabWriter, configuration: Configuration) -> ResultPublisher:
        return ResultPublisher(forge, configuration, self.clock)


@asynccontextmanager
async def at_desk(folder: Path, **answering: Any) -> AsyncIterator[Desk]:
    """At the time of the case."""
    case = find_case(CASE)
    clock = ScriptedClock(datetime.fromisoformat(case.description["now"]).timestamp())
    with Scene(case) as scene:
        forges = ForgeCache({"ORCHESTRATOR_GITLAB_TOKEN": scene.write_token})
        try:
            yield Desk(folder / "config", scene, Answered(**answering), clock, forges)
        finally:
            await forges.close()


def told_in(scene: Scene) -> list[str]:
    """Our notes, whoever put them there."""
    found = scene.run_in_server(lambda worlds: [note.body for note in worlds.gitlab.merge_request.notes])
    return [body for body in found if "hummingbird-session" in body]
