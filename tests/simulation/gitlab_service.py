"""GitLab as a simulated service: the lab's GitLab behind the network, people who use it, and the webhooks it sends."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import httpx2

from hummingbird.gitlab.write.protocol import NoteKind, NoteMarker, NoteMarkers
from hummingbird.lab.case import LabCase, find_case
from hummingbird.lab.gitlab.case_loader import READ_TOKEN, WRITE_TOKEN, load_world
from hummingbird.lab.gitlab.records import (
    Award,
    CiJob,
    Commit,
    Discussion,
    LabMergeRequest,
    LabProject,
    Member,
    Pipeline,
    User,
    WorldChange,
)
from hummingbird.lab.gitlab.server import gitlab_application
from hummingbird.lab.gitlab.webhook_events import NEWER_RELEASE, delivery_headers, events_for_change
from hummingbird.lab.gitlab.write.ci import finish_pipeline, retry_pipeline
from hummingbird.lab.gitlab.write.merge_request_changes import MergeRequestEdit, apply_edit, push
from hummingbird.lab.gitlab.write.notes import NewNote, create_note, edit_note, remove_note, resolve_notes
from tests.simulation.event_loop import PROCESS
from tests.simulation.network import AnswerLostError, BusyError, Network, NotDoneError
from tests.simulation.virtual_time import EPOCH

URL = "https://gitlab.simulated"
SECRET = "secret-of-the-hook"
AUTHOR, DEVELOPER, OUTSIDER = "tove", "mira", "eve"
ENDS = (NoteKind.RESULT, NoteKind.FAILED)
MARKERS = NoteMarkers("hummingbird-session")
READS = ("GET", "HEAD")
SECOND_PROJECT = "veloren/second"
# A line of the merge request's diff, on which a review has a finding, and what a push may make of it
LINE, OTHER_LINE = (
    "+    pub frontend_specifier: Option<FrontendSpecifier>,",
    "+    pub look: Option<FrontendSpecifier>,",
)
_LINE_FILE, _LINE_NUMBER = "common/src/states/basic_melee.rs", 22


@dataclass(frozen=True, slots=True)
class BotNote:
    """A note of the bot with its marker, if it has one."""

    id: int
    iid: int
    thread: str
    body: str
    marker: NoteMarker | None
    internal: bool


@dataclass(slots=True)
class HookMessage:
    """A webhook that GitLab sends; the key stays the same when somebody sends it again."""

    name: str
    key: str
    headers: dict[str, str]
    body: bytes
    accepted: bool = False
    tries: int = 0


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request that changed something, as GitLab carried it out."""

    at: float
    method: str
    path: str
    user: str
    status: int


@lru_cache(maxsize=1)
def _load_case() -> LabCase:
    names = ("gitlab", "konflux", "kubearchive", "testing_farm", "artifacts")
    return replace(find_case("compiler-error"), addresses=dict.fromkeys(names, URL))


class SimulatedGitLab:
    """The service's side. `on_event` is told of each webhook; `on_write` is called after each request that wrote.

    `on_note` is told which process sends a note, in the moment in which it sends it.
    """

    def __init__(self, network: Network, merge_requests: int = 1, projects: int = 1) -> None:
        self.network = network
        self.world = load_world(_load_case())
        self.world.now = datetime.fromtimestamp(EPOCH, UTC)
        self.world.merge_requests[0].discussions.clear()
        self._application = gitlab_application(self.world)
        self.on_event: list[Callable[[HookMessage], None]] = []
        self.on_write: list[Callable[[], None]] = []
        self.on_note: list[Callable[[str, NoteMarker], None]] = []
        self.writes: list[WriteRequest] = []
        self.refused_writes: list[WriteRequest] = []
        self._pushes = 0
        self._events = 0
        self._add_people()
        if projects > 1:
            first = self.world.project
            self.world.projects.append(replace(first, id=first.id + 1, path=SECOND_PROJECT, name="second"))
        for number in range(1, merge_requests):
            self._add_merge_request(number, self.world.projects[number % projects])
        self._versions = {mr.sha or "": False for mr in self.world.merge_requests}
        self.world.listeners.append(self._tell)

    def _add_people(self) -> None:
        outsider = User(500, OUTSIDER, "Eve")
        self.world.users.append(outsider)
        self.world.project.members[outsider.id] = Member(outsider.id, 10)

    def _add_merge_request(self, number: int, project: LabProject) -> None:
        first = self.world.merge_requests[0]
        sha = f"{number:02x}" * 20
        self.world.commits[sha] = self._commit(sha)
        self.world.merge_requests.append(
            replace(
                first,
                id=first.id + number,
                iid=first.iid + number,
                project_id=project.id,
                source_project_id=project.id,
                sha=sha,
                source_branch=f"topic-{number}",
                discussions=[],
                draft_notes=[],
                commits=[self.world.commits[sha]],
            )
        )

    def _commit(self, sha: str) -> Commit:
        return Commit(sha, "Mend it", "Mend it", AUTHOR, "a@example.org", self.world.next_timestamp())

    def merge_request(self, number: int) -> LabMergeRequest:
        return self.world.merge_requests[number % len(self.world.merge_requests)]

    def person(self, name: str) -> User:
        found = self.world.find_user(name)
        assert found is not None, name
        return found

    def path_of(self, mr: LabMergeRequest) -> str:
        return self.world.project_by_id(mr.project_id).path

    def keep_time(self) -> None:
        now = datetime.fromtimestamp(EPOCH + self.network.loop.time(), UTC)
        self.world.now = max(self.world.now, now)

    # what people do

    def fail_pipeline(self, number: int) -> None:
        """Let a new pipeline on the head fail."""
        self._finish_pipeline(number, "failed")

    def pass_pipeline(self, number: int) -> None:
        self._finish_pipeline(number, "success")

    def _finish_pipeline(self, number: int, status: str) -> None:
        self.keep_time()
        mr, world, now = self.merge_request(number), self.world, self.world.next_timestamp()
        run = Pipeline(
            world.next_id(),
            len(world.pipelines) + 1,
            mr.project_id,
            mr.sha or "",
            f"refs/merge-requests/{mr.iid}/head",
            "merge_request_event",
            "running",
            self.person(AUTHOR).id,
            now,
            now,
            started_at=now,
            merge_request_id=mr.id,
        )
        world.pipelines.append(run)
        world.jobs.append(
            CiJob(world.next_id(), "build", "build", "running", run.id, self.person(AUTHOR).id, now, started_at=now)
        )
        finish_pipeline(world, run, status)

    def retry_pipeline(self, number: int) -> Pipeline | None:
        """Retry the failed jobs of the newest pipeline; return it if there were any."""
        self.keep_time()
        mr, world = self.merge_request(number), self.world
        newest = next((one for one in reversed(world.pipelines) if one.merge_request_id == mr.id), None)
        retried = newest is not None and retry_pipeline(world, newest, self.person(DEVELOPER))
        return newest if retried else None

    def end_retried(self, run: Pipeline, status: str) -> None:
        self.keep_time()
        finish_pipeline(self.world, run, status)

    def push(self, number: int) -> None:
        self.keep_time()
        self._pushes += 1
        sha, mr = f"{self._pushes:04x}" * 10, self.merge_request(number)
        is_other = self._versions[mr.sha or ""] != self.network.happens(0.4)  # is the line that is found fault with
        known = {commit.id: self._versions.get(commit.id, False) for commit in mr.commits}
        diff = mr.diff_text.replace(*((LINE, OTHER_LINE) if is_other else (OTHER_LINE, LINE)))
        since = {commit: "" if was == is_other else _line_change(is_other=is_other) for commit, was in known.items()}
        self._versions[sha] = is_other
        push(self.world, mr, self.person(AUTHOR), [self._commit(sha)], diff=diff, since=since)

    def write(self, number: int, text: str, *, who: str = DEVELOPER, thread: Discussion | None = None) -> None:
        self.keep_time()
        create_note(self.world, self.merge_request(number), self.person(who), NewNote(body=text, thread=thread))

    def reply(self, number: int, text: str, *, who: str = DEVELOPER) -> bool:
        """Reply in the newest thread of the bot; False if there is none."""
        threads = [thread for thread in self.merge_request(number).discussions if self._is_ours(thread)]
        if threads:
            self.write(number, text, who=who, thread=threads[-1])
        return bool(threads)

    def dismiss(self, number: int) -> None:
        """Dismiss the newest finding, if there is one."""
        for thread in reversed(self.merge_request(number).discussions):
            if (marker := MARKERS.parse_marker(thread.notes[0].body)) and marker.part is NoteKind.FINDING:
                self.write(number, "Won't fix.", thread=thread)
                return

    def vote(self, number: int, who: str) -> None:
        """Put a thumb on the newest result, or take it away again."""
        self.keep_time()
        mr, person = self.merge_request(number), self.person(who)
        results = [note for note in mr.notes if (found := MARKERS.parse_marker(note.body)) and found.part in ENDS]
        if not results:
            return
        note = results[-1]
        award = next((one for one in note.awards if one.user_id == person.id), None)
        if award is None:
            award = Award(self.world.next_id(), "thumbsup", person.id, self.world.next_timestamp())
            note.awards.append(award)
            action = "award"
        else:
            note.awards.remove(award)
            action = "revoke"
        project = self.world.project_by_id(mr.project_id)
        self.world.announce(WorldChange("emoji", action, award, person, project, mr, extra={"on": note}))

    def remove_note_of_ours(self, number: int) -> None:
        """Delete the newest note of the bot, as a maintainer may."""
        self.keep_time()
        mr = self.merge_request(number)
        bot = self._bot_id()
        if notes := [note for note in mr.notes if note.author_id == bot and not note.system]:
            remove_note(self.world, mr, self.person(DEVELOPER), notes[-1])

    def _bot_id(self) -> int:
        return next(each.user_id for each in self.world.tokens if each.value == WRITE_TOKEN)

    def _is_ours(self, thread: Discussion) -> bool:
        return MARKERS.parse_marker(thread.notes[0].body) is not None

    def resolve(self, number: int) -> None:
        self.keep_time()
        mr = self.merge_request(number)
        for thread in mr.discussions:
            if self._is_ours(thread) and not thread.resolved and thread.resolvable:
                resolve_notes(
                    self.world, mr, self.person(DEVELOPER), [note for note in thread.notes if note.resolvable], True
                )

    def edit_last_note(self, number: int, text: str) -> None:
        self.keep_time()
        mr = self.merge_request(number)
        if notes := [note for note in mr.notes if note.author_id == self.person(DEVELOPER).id and not note.system]:
            edit_note(self.world, mr, self.person(DEVELOPER), notes[-1], text)

    def delete_last_note(self, number: int) -> None:
        self.keep_time()
        mr = self.merge_request(number)
        if notes := [note for note in mr.notes if note.author_id == self.person(DEVELOPER).id and not note.system]:
            remove_note(self.world, mr, self.person(DEVELOPER), notes[-1])

    def close_merge_request(self, number: int) -> None:
        self.keep_time()
        apply_edit(self.world, self.merge_request(number), self.person(AUTHOR), MergeRequestEdit(state_event="close"))

    def reopen_merge_request(self, number: int) -> None:
        self.keep_time()
        apply_edit(self.world, self.merge_request(number), self.person(AUTHOR), MergeRequestEdit(state_event="reopen"))

    # what the bot has written

    def bot_notes(self) -> Iterator[BotNote]:
        bot = self._bot_id()
        for mr in self.world.merge_requests:
            for thread in mr.discussions:
                for note in thread.notes:
                    if note.author_id == bot and not note.system:
                        marker = MARKERS.parse_marker(note.body)
                        yield BotNote(note.id, mr.iid, thread.id, note.body, marker, note.internal)

    # webhooks

    def _tell(self, change: WorldChange) -> None:
        for event in events_for_change(self.world, change, NEWER_RELEASE):
            if event.name == "Job Hook":
                continue
            self._events += 1
            key = f"delivery-{self._events}"
            headers = delivery_headers(self.world, event.name, key, key, NEWER_RELEASE, hook_id="hook", token=SECRET)
            message = HookMessage(event.name, key, headers, event.body)
            for listen in self.on_event:
                listen(message)

    # the API

    async def answer(
        self, method: str, raw_path: bytes, query: bytes, headers: list[tuple[bytes, bytes]], content: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Carry out a request."""
        self.keep_time()
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        path = raw_path.decode("latin-1")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": ("10.0.0.1", 1),
            "server": ("gitlab.simulated", 443),
        }
        await self._application(scope, receive, send)
        status = int(sent[0]["status"])
        if method not in READS:
            user = self.world.requests[-1].username or ""
            made = WriteRequest(self.network.loop.time(), method, path, user, status)
            (self.writes if status < 400 else self.refused_writes).append(made)
            for listen in self.on_write:
                listen()
        return status, sent[0]["headers"], b"".join(part.get("body", b"") for part in sent[1:])


class ResponseBody(httpx2.AsyncByteStream):
    """A body that is read once."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


class SimulatedTransport(httpx2.AsyncBaseTransport):
    """Carries requests of the write side's HTTP client over the simulated network."""

    def __init__(self, gitlab: SimulatedGitLab) -> None:
        self._gitlab = gitlab

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread()
        raw_path, _, query = request.url.raw_path.partition(b"?")
        what, marker = _describe(request.method, raw_path, content)
        if marker is not None:
            for listen in self._gitlab.on_note:
                listen(PROCESS.get(), marker)
        network = self._gitlab.network
        headers_in = [(name.lower(), value) for name, value in request.headers.raw]
        try:
            status, headers, body = await network.exchange(
                "gitlab",
                what,
                lambda: self._gitlab.answer(request.method, raw_path, query, headers_in, content),
                writes=request.method not in READS,
            )
        except NotDoneError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except AnswerLostError as error:
            if network.happens(0.5):
                return httpx2.Response(502, stream=ResponseBody(b""), request=request)
            raise httpx2.ReadError(str(error), request=request) from error
        except BusyError:
            return httpx2.Response(429, headers={"retry-after": "20"}, stream=ResponseBody(b""), request=request)
        return httpx2.Response(status, headers=headers, stream=ResponseBody(body), request=request)


def _line_change(*, is_other: bool) -> str:
    """Return the difference between two commits that differ in that one line."""
    before, after = (LINE, OTHER_LINE) if is_other else (OTHER_LINE, LINE)
    return (
        f"diff --git a/{_LINE_FILE} b/{_LINE_FILE}\n--- a/{_LINE_FILE}\n+++ b/{_LINE_FILE}\n"
        f"@@ -{_LINE_NUMBER},1 +{_LINE_NUMBER},1 @@\n-{before[1:]}\n{after}\n"
    )


def _describe(method: str, raw_path: bytes, content: bytes) -> tuple[str, NoteMarker | None]:
    """Return the request without ids and with the kind of note that it writes, and the note's marker."""
    path = raw_path.decode("latin-1").removeprefix("/api/v4")
    last = [part for part in path.split("/") if part and not any(char.isdigit() for char in part) and len(part) < 30]
    name = last[-1] if last else path
    if method != "POST" or name not in ("notes", "discussions", "draft_notes"):
        return f"{method} {name}", None
    written = json.loads(content)
    marker = MARKERS.parse_marker(str(written.get("body") or written.get("note") or ""))
    kind = marker.part.value if marker else "answer"
    return f"POST {name if name == 'draft_notes' else ''} {kind}".replace("  ", " "), marker


def create_simulated_client(gitlab: SimulatedGitLab) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=SimulatedTransport(gitlab), follow_redirects=False)


async def read_as_tool(gitlab: SimulatedGitLab, path: str) -> bytes:
    """Read from GitLab with the read token, as a source does."""
    headers = [(b"private-token", READ_TOKEN.encode()), (b"host", b"gitlab.simulated")]
    async with asyncio.timeout(60):
        _, _, body = await gitlab.network.exchange(
            "source", "GET log", lambda: gitlab.answer("GET", path.encode(), b"", headers, b"")
        )
    return body
