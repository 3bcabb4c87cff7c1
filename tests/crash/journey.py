"""A whole journey through a service that may be killed at one point of it: a pipeline fails, a developer asks back.

    event ─▶ placeholder ─▶ command that writes a file ─▶ a log is read ─▶ result
    reply ─▶ command that reads that file ─▶ second result

GitLab and the model are stand-ins here, in the test's own process; the service is a process of its own, and so is the
one that takes over. What they all have done is a `Story`; whether it is a good one, tests.crash.verdict says.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hummingbird.core.journal import JournalEntry
from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.records import AccessToken
from hummingbird.lab.gitlab.webhook_delivery import HookDelivery, webhook_sender
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.webhooks import EVENT_FLAGS
from hummingbird.lab.scene import Scene
from tests.crash.points import AFTER, BEFORE
from tests.crash.services import Service, Services
from tests.crash.sites import Site
from tests.crash.table import is_beside
from tests.journeys.service.stage import SECRET, Ours, Stage
from tests.standins.vendors.script import Call, DepartedError, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab

CASE = "compiler-error"
DEVELOPER, QUESTION = "mira", "Which file did you keep?"
FIRST, SECOND = "The compiler said no.", "The one that I wrote."
WRITE = "echo once >> /tmp/data/runs; echo seen-at-first > /tmp/data/kept; echo written"
READ = "echo runs: $(cat /tmp/data/runs 2>/dev/null | wc -l); cat /tmp/data/kept"
PATIENCE_S = 40.0
LAST_POINT_S = 2.0  # after all is done, for a point that has not been reached yet
LOOK_S = 0.02


def turns(world: GitLabWorld) -> list[Turn]:
    """What the model says when it has said so many things before."""
    job = next(job.id for job in world.jobs if job.status == "failed")
    log = {"project": world.project.path, "job_id": job}
    return [
        Turn(calls=(Call("sandbox_exec", {"command": WRITE}),)),
        Turn(calls=(Call("gitlab_get_job_log", log),)),
        Turn(text=FIRST),
        Turn(calls=(Call("sandbox_exec", {"command": READ}),)),
        Turn(text=SECOND),
    ]


class Repeating(Script):
    """Gives the same answer to whoever asks for the same turn again, as after a kill. `asked` is the turns that were
    asked for, one by one."""

    def __init__(self, answers: Sequence[Turn]) -> None:
        super().__init__()
        self._answers = answers
        self.asked: list[int] = []

    def next(self, request: dict[str, Any]) -> Turn | Fault:
        said = [message["role"] for message in request["messages"]].count("assistant")
        if said >= len(self._answers):
            raise DepartedError(f"there is no turn {said + 1}")
        self.asked.append(said)
        return self._answers[said]


@dataclass
class Story:
    """What came of it. `killed_in`: 1 while the event was worked off, 2 once there was a reply, 0 if nobody died.
    `at_death` is the journal as the one that died left it, and `said_at_death` the notes."""

    point: str
    reached: Sequence[str] = ()
    killed_in: int = 0
    at_death: Sequence[JournalEntry] = ()
    said_at_death: Sequence[Ours] = ()
    sent_again: Sequence[str] = ()
    entries: Sequence[JournalEntry] = ()
    notes: Sequence[Ours] = ()
    answers: Sequence[Ours] = ()
    awards: Sequence[str] = ()
    asked: Sequence[int] = ()
    refused: Sequence[str] = ()
    left: int = 0
    dead: int = 0
    log: str = ""
    seconds: float = 0.0


class Journey:
    """One stage, one victim and whoever takes over."""

    def __init__(self, stage: Stage, site: Site, services: Services, story: Story) -> None:
        self.stage, self.story = stage, story
        self._site, self._services = site, services
        self._serving: list[Service] = []
        self._phase = 1

    async def play(self) -> None:
        self._begin(self.story.point)
        await self.stage.begin_case()
        await self._until(lambda: len(self.stage.ends()) >= 1 and self._idle())
        thread, self._phase = self.stage.marked()[0].thread, 2
        question, _ = await self.stage.write(DEVELOPER, QUESTION, thread=thread)
        await self._until(lambda: len(self.stage.ends()) >= 2 and self._idle())
        await self._last_point()
        await self._tell(question)

    def end(self) -> None:
        """All is told by now, so the quickest way does."""
        for service in self._serving:
            service.signal(signal.SIGKILL)

    def log(self) -> str:
        return "\n".join(f"--- {service.log_file.stem}\n{service.log()}" for service in self._serving)

    def _begin(self, kill_at: str = "") -> None:
        number = len(self._serving) + 1
        home = {"HUMMINGBIRD_HOME": str(self._site.home(number))}
        service = self._services.start(
            f"service-{number}",
            self.stage.folder,
            self.stage.file,
            {**self.stage.environment, **self._site.environment, **home},
            kill_at=kill_at,
            hurry=self._site.hurry,
            visibility_s=self._site.visibility_s,
        )
        self._serving.append(service)
        assert service.port is not None, service.log()
        self.stage.ask(lambda world: _subscribe(world, f"http://127.0.0.1:{service.port}/webhooks/gitlab"))

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Sees to it that somebody serves meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while not holds():
            if self._serving[-1].ended is not None:
                await self._take_over()
            assert time.monotonic() < until, f"nothing more happens:\n{self.log()}"
            await asyncio.sleep(LOOK_S)

    async def _last_point(self) -> None:
        """What is gone from a queue is gone a moment before whoever deleted it hears so."""
        until = time.monotonic() + LAST_POINT_S
        while not self.story.point and self._under_way() and time.monotonic() < until:  # noqa: ASYNC110 - its file tells
            await asyncio.sleep(LOOK_S)
        while self.story.point and not self.story.killed_in and time.monotonic() < until:
            if self._serving[-1].ended is not None:
                await self._take_over()
                await self._until(self._idle)
            await asyncio.sleep(LOOK_S)

    async def _take_over(self) -> None:
        """Another process comes when the victim is dead. What it has answered is its own business from then on; only
        what nobody has answered is sent again, as a person does in GitLab."""
        victim = self._serving[-1]
        assert not self.story.killed_in, f"the one that took over died:\n{self.log()}"
        assert (victim.ended, victim.points()[-1:]) == (-signal.SIGKILL, [self.story.point]), self.log()
        self.story.killed_in = self._phase
        self.story.said_at_death = self.stage.marked()
        self.story.at_death = await self._entries()
        self._site.let_go()
        self._begin()
        await asyncio.to_thread(webhook_sender(self.stage.world).wait_until_sent)
        self.story.sent_again = self.stage.ask(_send_again)

    def _idle(self) -> bool:
        """Whether every hook was sent and nothing is left in the queue."""
        unsent = [one for one in self.stage.deliveries() if one.status is None and not one.problem]
        return not unsent and self._site.left() == 0 and self._serving[-1].ended is None

    def _under_way(self) -> bool:
        """Whether the service is in the middle of a call."""
        points = [point for point in self._serving[0].points() if not is_beside(point)]
        begun, over = ([one for one in points if one.endswith(when)] for when in (BEFORE, AFTER))
        return len(begun) > len(over)

    async def _entries(self) -> Sequence[JournalEntry]:
        marked = self.stage.marked()
        return await self._site.entries(marked[0].session) if marked else ()

    async def _tell(self, question: int) -> None:
        story, stage = self.story, self.stage
        assert stage.lab is not None
        assert isinstance(stage.script, Repeating)
        story.reached = self._serving[0].points()
        story.entries, story.notes, story.answers = await self._entries(), stage.marked(), stage.answers()
        story.awards, story.asked = stage.awards(question), list(stage.script.asked)
        story.refused = [request.refusal for request in stage.lab.requests if request.refusal]
        story.left, story.dead, story.log = self._site.left(), self._site.dead(), self.log()


async def played(site: Site, services: Services, folder: Path, point: str = "") -> Story:
    """The whole of it. `point`: where the first service is killed; empty: nowhere. Raises AssertionError where it does
    not even come to its end."""
    began, story = time.monotonic(), Story(point)
    async with _journey(site, services, folder, story) as journey:
        await journey.play()
    story.seconds = time.monotonic() - began
    return story


@asynccontextmanager
async def _journey(site: Site, services: Services, folder: Path, story: Story) -> AsyncIterator[Journey]:
    with ExitStack() as opened:
        scene = opened.enter_context(Scene(find_case(CASE)))
        script = Repeating(turns(scene.worlds.gitlab))
        lab = opened.enter_context(VendorLab(script))
        stage = Stage(scene, folder, script, lab)
        stage.ask(_give_token)
        stage.configure(dict(site.settings), {"analyze-failures": {"trigger": "pipeline"}})
        journey = Journey(stage, site, services, story)
        try:
            yield journey
        finally:
            journey.end()


def _give_token(world: GitLabWorld) -> None:
    user = world.find_user(DEVELOPER)
    assert user is not None
    world.tokens.append(AccessToken(f"token-of-{DEVELOPER}", user.id, ("api",)))


def _subscribe(world: GitLabWorld, url: str) -> None:
    hooks = webhook_sender(world)
    hooks.disables_failing_hooks = False
    hook = hooks.hooks[0] if hooks.hooks else hooks.subscribe(url, *EVENT_FLAGS, token=SECRET)
    hook.url = url


def _send_again(world: GitLabWorld) -> list[str]:
    hooks = webhook_sender(world)
    lost: list[HookDelivery] = [one for one in hooks.deliveries if one.status is None]
    for delivery in lost:
        hooks.resend(delivery)
    return [delivery.event for delivery in lost]
