"""A GitLab with many merge requests whose pipelines failed, a model that always has an answer, and a record of what the
service wrote and when. Knows nothing of how the service is run: the load tests use it inside of one process.
"""

import json
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any

from hummingbird.gitlab.write.protocol import NoteKind, NoteMarkers
from hummingbird.lab.gitlab.case_loader import add_merge_requests
from hummingbird.lab.gitlab.records import Discussion, LabMergeRequest, WorldChange
from hummingbird.lab.gitlab.webhook_events import (
    NEWER_RELEASE,
    change_from_declaration,
    delivery_headers,
    events_for_change,
)
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write import notes
from hummingbird.lab.scene import LabWorlds, Scene
from tests.standins.vendors.script import Call, Fault, Script, Turn

CASE = "compiler-error"
MODEL = "anthropic:claude-sonnet-5-5"
WORKFLOW = "analyze-failures"
COMMAND = "echo looked"
ENDS = (NoteKind.RESULT.value, NoteKind.FAILED.value)
_REPLY = re.compile(r"reply-\d+")
_MARKERS = NoteMarkers("hummingbird-session")


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
        self._runs = scene.run_in_server(lambda worlds: self._prepared(worlds.gitlab, number))

    def _prepared(self, world: GitLabWorld, number: int) -> list[int]:
        world.listeners.append(self._heard)
        return [run.id for run in add_merge_requests(world, number)]

    def _heard(self, change: WorldChange) -> None:
        if change.kind != "note" or change.action != "create" or change.merge_request is None:
            return
        body = change.subject.body
        marker = _MARKERS.parse_marker(body)
        answers = _MARKERS.parse_answer_target(body)
        if marker is not None or answers:
            order, part = (marker.order, marker.part.value) if marker else ("", f"answer to {answers}")
            self._seen.append(Seen(time.monotonic(), change.merge_request.iid, order, part, body))

    @property
    def seen(self) -> list[Seen]:
        return self._scene.run_in_server(lambda _: list(self._seen))

    def failures(self) -> list[Hook]:
        """A failed pipeline of each merge request."""
        return self._scene.run_in_server(lambda worlds: [_failure(worlds.gitlab, run) for run in self._runs])

    def replies(self, each: int, threads: int) -> list[Hook]:
        """So many in each of the first so many threads of ours, in the order in which they were written."""
        return self._scene.run_in_server(lambda worlds: list(self._replied(worlds.gitlab, each, threads)))

    def _replied(self, world: GitLabWorld, each: int, threads: int) -> list[Hook]:
        ours = [(mr, thread) for mr in world.merge_requests for thread in mr.discussions if _is_ours(thread)]
        return [
            _reply(world, mr, thread, f"Why is that? reply-{at}") for at in range(each) for mr, thread in ours[:threads]
        ]

    def commands(self, text: str, number: int) -> list[Hook]:
        """The same note on each of the first so many merge requests."""

        def written(worlds: LabWorlds) -> list[Hook]:
            world = worlds.gitlab
            return [_reply(world, mr, None, text) for mr in world.merge_requests[1 : number + 1]]

        return self._scene.run_in_server(written)


def most_at_once(seen: list[Seen]) -> int:
    """Runs that had begun and not ended, at the worst moment: a placeholder is written inside of a slot, and so is the
    end."""
    now = most = 0
    for note in sorted(seen, key=lambda each: each.at):
        now += 1 if note.part == NoteKind.PLACEHOLDER.value else -1 if note.part in ENDS else 0
        most = max(most, now)
    return most


def _is_ours(thread: Discussion) -> bool:
    return _MARKERS.parse_marker(thread.notes[0].body) is not None


def _failure(world: GitLabWorld, run: int) -> Hook:
    change = change_from_declaration(world, {"kind": "pipeline", "pipeline": run})
    mr = next(each for each in world.merge_requests if each.id == change.subject.merge_request_id)
    return _hook(world, change, mr.iid)


def _reply(world: GitLabWorld, mr: LabMergeRequest, thread: Discussion | None, text: str) -> Hook:
    author = world.user(mr.author_id)
    note = notes.create_note(world, mr, author, notes.NewNote(body=text, thread=thread, individual=False)).note
    assert note is not None
    return _hook(world, WorldChange("note", "create", note, author, world.project, mr), mr.iid)


def _hook(world: GitLabWorld, change: WorldChange, iid: int) -> Hook:
    event = next(events_for_change(world, change))
    key = str(uuid.uuid4())
    return Hook(iid, delivery_headers(world, event.name, key, key, NEWER_RELEASE), event.body.decode())
