"""A GitLab with many merge requests whose pipelines failed, a model that always has an answer, and a record of what the
service wrote and when. Knows nothing of how the service is run: the load tests use it inside of one process.
"""

import json
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any

from hummingbird.adapters.forge.markers import Markers
from hummingbird.domain.notes import Part
from hummingbird.lab.gitlab.hooks.payloads import NEWER, declared_change, events, headers
from hummingbird.lab.gitlab.many import more_requests
from hummingbird.lab.gitlab.records import Change, Discussion, MergeRequest
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing import note_changes
from hummingbird.lab.scene import Scene, Worlds
from hummingbird.lab.vendors.script import Call, Fault, Script, Turn

CASE = "compiler-error"
MODEL = "anthropic:claude-sonnet-5-5"
WORKFLOW = "analyze-failures"
COMMAND = "echo looked"
ENDS = (Part.RESULT.value, Part.FAILED.value)
_REPLY = re.compile(r"reply-\d+")
_MARKERS = Markers("hummingbird-session")


class EndlessScript(Script):
    """For every run the same: one command in the sandbox, then an answer that repeats what it is an answer to. Each
    turn takes `delay_s`."""

    def __init__(self, delay_s: float = 0.0) -> None:
        super().__init__()
        self._delay_s = delay_s

    def next(self, request: dict[str, Any]) -> Turn | Fault:
        turn = _turn(request["messages"])
        return Fault("slow", delay_s=self._delay_s, turn=turn) if self._delay_s else turn


def _turn(messages: list[dict[str, Any]]) -> Turn:
    if '"tool_result"' not in json.dumps(messages[-1]):
        return Turn(calls=(Call("sandbox_exec", {"command": COMMAND}),))
    said = _REPLY.findall(json.dumps([each for each in messages if each["role"] == "user"]))
    return Turn(text=f"This answers {said[-1]}." if said else "The job failed because the code does not compile.")


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook to send. `about` is the merge request's iid."""

    about: int
    headers: dict[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A note that the service wrote. `at` is the machine's monotonic time, the same in all processes."""

    at: float
    iid: int
    order: str
    part: str
    text: str


class Crowd:
    """Of one scene that is being served. `number` merge requests besides the case's own."""

    def __init__(self, scene: Scene, number: int) -> None:
        self._scene = scene
        self._seen: list[Seen] = []
        self._runs = scene.ask(lambda worlds: self._prepared(worlds.gitlab, number))

    def _prepared(self, world: World, number: int) -> list[int]:
        world.listeners.append(self._heard)
        return [run.id for run in more_requests(world, number)]

    def _heard(self, change: Change) -> None:
        if change.kind != "note" or change.action != "create" or change.merge_request is None:
            return
        body = change.subject.body
        marker = _MARKERS.marker(body)
        answers = _MARKERS.answers(body)
        if marker is not None or answers:
            order, part = (marker.order, marker.part.value) if marker else ("", f"answer to {answers}")
            self._seen.append(Seen(time.monotonic(), change.merge_request.iid, order, part, body))

    @property
    def seen(self) -> list[Seen]:
        return self._scene.ask(lambda _: list(self._seen))

    def failures(self) -> list[Hook]:
        """A failed pipeline of each merge request."""
        return self._scene.ask(lambda worlds: [_failure(worlds.gitlab, run) for run in self._runs])

    def replies(self, each: int, threads: int) -> list[Hook]:
        """So many in each of the first so many threads of ours, in the order in which they were written."""
        return self._scene.ask(lambda worlds: list(self._replied(worlds.gitlab, each, threads)))

    def _replied(self, world: World, each: int, threads: int) -> list[Hook]:
        ours = [(mr, thread) for mr in world.merge_requests for thread in mr.discussions if _is_ours(thread)]
        return [
            _reply(world, mr, thread, f"Why is that? reply-{at}") for at in range(each) for mr, thread in ours[:threads]
        ]

    def commands(self, text: str, number: int) -> list[Hook]:
        """The same note on each of the first so many merge requests."""

        def written(worlds: Worlds) -> list[Hook]:
            world = worlds.gitlab
            return [_reply(world, mr, None, text) for mr in world.merge_requests[1 : number + 1]]

        return self._scene.ask(written)


def most_at_once(seen: list[Seen]) -> int:
    """Runs that had begun and not ended, at the worst moment: a placeholder is written inside of a slot, and so is the
    end."""
    now = most = 0
    for note in sorted(seen, key=lambda each: each.at):
        now += 1 if note.part == Part.PLACEHOLDER.value else -1 if note.part in ENDS else 0
        most = max(most, now)
    return most


def _is_ours(thread: Discussion) -> bool:
    return _MARKERS.marker(thread.notes[0].body) is not None


def _failure(world: World, run: int) -> Hook:
    change = declared_change(world, {"kind": "pipeline", "pipeline": run})
    mr = next(each for each in world.merge_requests if each.id == change.subject.merge_request_id)
    return _hook(world, change, mr.iid)


def _reply(world: World, mr: MergeRequest, thread: Discussion | None, text: str) -> Hook:
    author = world.user(mr.author_id)
    note = note_changes.post(world, mr, author, note_changes.Draft(body=text, thread=thread, individual=False)).note
    assert note is not None
    return _hook(world, Change("note", "create", note, author, world.project, mr), mr.iid)


def _hook(world: World, change: Change, iid: int) -> Hook:
    event = next(events(world, change))
    key = str(uuid.uuid4())
    return Hook(iid, headers(world, event.name, key, key, NEWER), event.body.decode())
