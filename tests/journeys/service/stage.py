"""The whole service as somebody runs it, before a GitLab of the lab: what every journey through it needs.

    async with staged("failing-test", tmp_path) as stage:
        await stage.begin_case()
        placeholder, result = await stage.notes(2)

Everything between the webhook and the note is real: HTTP with a secret, the queue's file, both stages, a sandbox, the
sources, the forge. The model is `digest`, or one of a vendor's that a script plays.
"""

import asyncio
import os
import sqlite3
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import yaml

from hummingbird.app.service import HummingbirdService
from hummingbird.config.loader import ConfigWatcher
from hummingbird.config.template import load_embedded
from hummingbird.core.journal import JournalEntry
from hummingbird.gitlab.write.protocol import NoteKind, NoteMarker, NoteMarkers
from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.records import AccessToken, Commit, Discussion, Member, Note, User
from hummingbird.lab.gitlab.webhook_delivery import HookDelivery, webhook_sender
from hummingbird.lab.gitlab.webhook_events import change_from_declaration
from hummingbird.lab.gitlab.world import AnsweredRequest, GitLabWorld
from hummingbird.lab.gitlab.write.merge_request_changes import push
from hummingbird.lab.gitlab.write.webhooks import EVENT_FLAGS
from hummingbird.lab.scene import Scene
from hummingbird.storage.journals import FileJournal
from tests.standins.vendors.script import Script, Step
from tests.standins.vendors.server import VendorLab

MODEL = "anthropic:claude-sonnet-5-5"
SECRET = "s3cret-of-the-hook"
PATIENCE_S = 90.0
LOOK_S = 0.03
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading them takes longer than a journey's requests
ENDS = (NoteKind.RESULT, NoteKind.FAILED)
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Ours:
    """A note of the bot. `marker` None: an answer that counts for nothing."""

    id: int
    thread: str
    body: str
    marker: NoteMarker | None
    internal: bool
    resolved: bool
    position: Mapping[str, Any] | None
    iid: int = 0

    @property
    def session(self) -> str:
        assert self.marker is not None
        return self.marker.id

    @property
    def part(self) -> NoteKind | None:
        return self.marker.part if self.marker else None


class Stage:
    """One GitLab, one home; as many services after one another as are begun."""

    def __init__(self, scene: Scene, folder: Path, script: Script | None, lab: VendorLab | None) -> None:
        self.scene, self.folder = scene, folder
        self.script, self.lab = script or Script(), lab
        self.environment = {
            "HUMMINGBIRD_HOME": str(folder / "state"),
            "HUMMINGBIRD_WEBHOOK_SECRET": SECRET,
            "ORCHESTRATOR_GITLAB_TOKEN": scene.write_token,
            "READER": scene.read_token,
            "PATH": os.environ["PATH"],
        }
        if lab is not None:
            self.environment |= {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
        self._serving: HummingbirdService | None = None
        self._running: asyncio.Task[None] | None = None

    # the configuration

    @property
    def file(self) -> Path:
        return self.folder / "config" / "hummingbird.yaml"

    def configure(self, settings: Mapping[str, Any], workflows: Mapping[str, Mapping[str, Any]]) -> None:
        """`workflows`: by their names, what differs from the shipped ones; all others are left out."""
        base = {"gitlab_url": self.scene.url("gitlab"), "settle_seconds": 0}
        if self.lab is not None:
            base |= {"model": MODEL}
        prompts = self.file.parent / "workflows"
        prompts.mkdir(parents=True, exist_ok=True)
        for name, text in load_embedded().prompts.items():
            (prompts / f"{name}.md").write_text(text, encoding="utf-8")
        written = {name: self._workflow(name, changed) for name, changed in workflows.items()}
        content = yaml.safe_dump({"settings": {**base, **settings}, "workflows": written}, sort_keys=False)
        beside = self.file.with_suffix(".new")
        beside.write_text(content, encoding="utf-8")
        beside.replace(self.file)  # whoever watches it never sees half of it

    def _workflow(self, name: str, changed: Mapping[str, Any]) -> dict[str, Any]:
        plain = {
            "prompt": f"workflows/{name if name in load_embedded().prompts else 'analyze-failures'}.md",
            "data_sources": {"gitlab": {"token_env": "READER"}},
            "projects": {"*": {}},
        }
        return {**plain, **changed}

    # the service

    async def serve(self, *, signing: str = "") -> HummingbirdService:
        """`signing`: the key that GitLab signs with, instead of the secret that it sends along."""
        self.watched = ConfigWatcher(self.file, self.environment)
        self._serving = HummingbirdService(self.watched, self.environment, grace_s=5.0)
        self._running = asyncio.create_task(self._serving.run(signals=False))
        self._subscribe(f"http://127.0.0.1:{self._serving.port}/webhooks/gitlab", signing)
        return self._serving

    async def stop(self, *, park: bool = False) -> None:
        if self._serving is None or self._running is None:
            return
        for _ in range(2 if park else 1):
            self._serving.stop()
        async with asyncio.timeout(PATIENCE_S):
            await self._running
        self._serving = self._running = None

    @property
    def serving(self) -> HummingbirdService:
        assert self._serving is not None
        return self._serving

    def _subscribe(self, url: str, signing: str) -> None:
        def send(world: GitLabWorld) -> None:
            hooks = webhook_sender(world)
            hooks.disables_failing_hooks = False
            hook = hooks.hooks[0] if hooks.hooks else hooks.subscribe(url, *EVENT_FLAGS)
            hook.url = url
            hook.token, hook.signing_token = (None, signing) if signing else (SECRET, None)

        self.ask(send)

    # what happens in GitLab

    @property
    def world(self) -> GitLabWorld:
        return self.scene.worlds.gitlab

    def ask(self, question: Callable[[GitLabWorld], Answer]) -> Answer:
        return self.scene.run_in_server(lambda worlds: question(worlds.gitlab))

    async def begin_case(self) -> None:
        self.happens(self.scene.case.description["event"])

    def happens(self, declared: Mapping[str, Any]) -> None:
        """An event as a case would declare it, whatever the world is like."""
        self.ask(lambda world: webhook_sender(world)(change_from_declaration(world, declared)))

    def outsider(self, username: str = "eve") -> User:
        """Somebody who is not a member, with a token."""

        def come(world: GitLabWorld) -> User:
            user = User(max(each.id for each in world.users) + 1, username, username.capitalize())
            world.users.append(user)
            world.tokens.append(AccessToken(f"token-of-{username}", user.id, ("api",)))
            return user

        return self.ask(come)

    def promote(self, username: str, level: int) -> None:
        def change(world: GitLabWorld) -> None:
            user = world.find_user(username)
            assert user is not None
            world.project.members[user.id] = Member(user.id, level)

        self.ask(change)

    def bot_has(self, level: int) -> None:
        self.ask(lambda world: setattr(world.project.members[self._bot(world)], "access_level", level))

    def token_is(self, value: str, standing: str) -> None:
        """active or expired."""

        def change(world: GitLabWorld) -> None:
            next(each for each in world.tokens if each.value == value).state = standing

        self.ask(change)

    async def write(
        self, who: str, text: str, *, thread: str = "", internal: bool = False, iid: int = 0
    ) -> tuple[int, str]:
        """A comment, or a reply in a thread, over the API. Note and thread. `iid`: on another merge request."""
        given = {"body": text, **({"internal": True} if internal else {})}
        path = f"/discussions/{thread}/notes" if thread else "/notes"
        number: int = (await self._sent(who, "POST", path, given, iid))["id"]
        return number, self.ask(lambda world: _thread(world, number).id)

    async def edit(self, who: str, note_id: int, text: str) -> None:
        await self._sent(who, "PUT", f"/notes/{note_id}", {"body": text})

    async def award(self, who: str, note_id: int, emoji: str) -> None:
        await self._sent(who, "POST", f"/notes/{note_id}/award_emoji", {"name": emoji})

    async def _sent(self, who: str, method: str, path: str, given: Mapping[str, Any], iid: int = 0) -> Any:
        request = self.world.merge_request
        at = f"projects/{request.project_id}/merge_requests/{iid or request.iid}"
        url = f"{self.scene.url('gitlab')}/api/v4/{at}{path}"
        headers = {"PRIVATE-TOKEN": self.ask(lambda world: _token(world, who))}
        async with httpx2.AsyncClient(timeout=60, verify=NO_AUTHORITIES) as client:
            answer = await client.request(method, url, json=dict(given), headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def push(self, sha: str, *, diff: str | None = None, since: Mapping[str, str] | None = None) -> str:
        """A new head, by the author. `since`: what differs from other commits."""

        def pushed(world: GitLabWorld) -> str:
            request = world.merge_request
            author = world.user(request.author_id)
            commit = Commit(sha, "Fix it", "Fix it", author.name, "a@example.org", world.next_timestamp())
            push(world, request, author, [commit], diff=diff, since=since)
            return sha

        return self.ask(pushed)

    # what can be seen

    def ours(self) -> list[Ours]:
        return self.ask(lambda world: list(_ours(world, self._bot(world))))

    def _bot(self, world: GitLabWorld) -> int:
        return next(each.user_id for each in world.tokens if each.value == self.scene.write_token)

    def marked(self) -> list[Ours]:
        """In the order in which they were written."""
        return sorted((note for note in self.ours() if note.marker), key=lambda note: note.id)

    def answers(self) -> list[Ours]:
        return [note for note in self.ours() if not note.marker]

    def ends(self) -> list[Ours]:
        return [note for note in self.marked() if note.part in ENDS]

    async def notes(self, number: int) -> list[Ours]:
        """All that are marked, once nothing is left to do; there have to be so many."""
        await self.until(lambda: len(self.marked()) >= number)
        await self.idle()
        found = self.marked()
        assert len(found) == number, [note.body for note in found]
        return found

    async def ended(self, number: int) -> list[Ours]:
        """The notes that end orders, once nothing is left to do; there have to be so many."""
        await self.until(lambda: len(self.ends()) >= number)
        await self.idle()
        found = self.ends()
        assert len(found) == number, [note.body for note in found]
        return found

    def awards(self, note_id: int) -> list[str]:
        return self.ask(lambda world: [award.name for award in _note(world, note_id).awards])

    def thread(self, thread_id: str) -> Discussion:
        return self.ask(lambda world: next(d for d in world.merge_request.discussions if d.id == thread_id))

    def requests(self, fragment: str, method: str = "GET") -> list[AnsweredRequest]:
        """Those of the bot."""
        bot = self.ask(lambda world: world.user(self._bot(world)).username)
        seen = self.ask(lambda world: list(world.requests))
        return [one for one in seen if one.username == bot and one.method == method and fragment in one.path]

    def entries(self, session_id: str) -> Sequence[JournalEntry]:
        journal = FileJournal(self.folder / "state" / "sessions" / session_id / "journal.jsonl")
        journal.close()
        return journal.entries()

    def deliveries(self) -> list[HookDelivery]:
        return self.ask(lambda world: list(webhook_sender(world).deliveries))

    # waiting

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                if self._running is not None and self._running.done():
                    self._running.result()
                await asyncio.sleep(LOOK_S)

    async def idle(self) -> None:
        """Until every hook was sent and nothing is left in the queue, waiting orders included."""
        seen = -1
        while seen != len(self.deliveries()):
            seen = len(self.deliveries())
            await asyncio.to_thread(webhook_sender(self.world).wait_until_sent)
            await self.until(lambda: self.queued() == 0)

    def queued(self) -> int:
        """Messages that are alive."""
        return self._counted("dead = 0")

    def dead(self) -> int:
        return self._counted("dead = 1")

    def _counted(self, which: str) -> int:
        with closing(sqlite3.connect(self.folder / "state" / "queue.sqlite", timeout=10)) as file:
            try:
                number: int = file.execute(f"SELECT count(*) FROM messages WHERE {which}").fetchone()[0]
            except sqlite3.OperationalError:  # nobody has sent anything yet
                return 0
        return number


@asynccontextmanager
async def staged(
    case: str,
    folder: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    workflows: Mapping[str, Mapping[str, Any]] | None = None,
    turns: Sequence[Step] | None = None,
    begin: bool = True,
) -> AsyncIterator[Stage]:
    """A service that hears of everything in the scene. `turns`: what the model says, all of which has to be used;
    without them it is `digest`. `begin`: otherwise the world is changed first, and `serve` is the test's."""
    async with AsyncExitStack() as opened:
        scene = opened.enter_context(Scene(find_case(case)))
        script = Script(turns) if turns is not None else None
        lab = opened.enter_context(VendorLab(script)) if script is not None else None
        stage = Stage(scene, folder, script, lab)
        stage.ask(_give_tokens)
        stage.configure(settings or {}, workflows or {"analyze-failures": {"trigger": "pipeline"}})
        if begin:
            await stage.serve()
        try:
            yield stage
        finally:
            await stage.stop(park=True)
        assert not stage.world.faults.unused_faults, "a fault that was planned did not happen"
        stage.script.assert_consumed()


def _give_tokens(world: GitLabWorld) -> None:
    for user in world.users:
        if not user.bot:
            world.tokens.append(AccessToken(f"token-of-{user.username}", user.id, ("api",)))


def _token(world: GitLabWorld, username: str) -> str:
    assert world.find_user(username), f"there is no {username}"
    return f"token-of-{username}"


def _ours(world: GitLabWorld, bot: int) -> Iterator[Ours]:
    markers = NoteMarkers("hummingbird-session")
    written = [(mr, thread, note) for mr in world.merge_requests for thread in mr.discussions for note in thread.notes]
    for mr, thread, note in written:
        if note.author_id == bot and not note.system:
            yield Ours(
                id=note.id,
                thread=thread.id,
                body=note.body,
                marker=markers.parse_marker(note.body),
                internal=note.internal,
                resolved=thread.resolved,
                position=note.position,
                iid=mr.iid,
            )


def _thread(world: GitLabWorld, note_id: int) -> Discussion:
    threads = (each for mr in world.merge_requests for each in mr.discussions)
    return next(each for each in threads if any(note.id == note_id for note in each.notes))


def _note(world: GitLabWorld, note_id: int) -> Note:
    return next(note for note in world.merge_request.notes if note.id == note_id)
