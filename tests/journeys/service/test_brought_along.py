"""Somebody brings the described system's configuration, environment, queues, threads and sessions along.

Nothing is changed but names of hosts, projects and the bucket. Events go to a standard queue in the envelopes that the
described forwarder makes; both queues are set up as the described template does, without any setting of ours.
"""

import asyncio
import base64
import gzip
import json
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3.session
import pytest
from starlette.requests import Request
from starlette.responses import Response

from hummingbird.app.sandboxes import choose_for_service
from hummingbird.app.service import HummingbirdService
from hummingbird.config.loader import ConfigWatcher
from hummingbird.config.template import load_embedded
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.notes import NewNote, store_note
from hummingbird.lab.http_server import LabServer
from hummingbird.lab.scene import Scene
from hummingbird.models.google_credentials import GoogleToken
from tests.config.files import CONTINUITY, OLDER
from tests.contracts.queues.backends.ministack import REGION, Ministack
from tests.journeys.service.stage import Stage, _give_tokens
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

CASE, TENANT = "compiler-error", "redhat/hummingbird/containers"
OLD_SHAS = [f"{number}" * 40 for number in range(1, 5)]
LARGE_DIFF = (
    "diff --git a/wing.txt b/wing.txt\nnew file mode 100644\n--- /dev/null\n+++ b/wing.txt\n@@ -0,0 +1,2000 @@\n"
    + "".join(f"+line {number} of the wing, which has many\n" for number in range(2_000))
)
QUESTION = "Can you look at the clair-scan timeout more closely?"


@dataclass(frozen=True)
class Cloud:
    """What the described template makes: a standard queue, a FIFO queue, a bucket."""

    endpoint: str
    events: str
    work: str
    bucket: str

    def client(self, service: str) -> Any:
        return boto3.session.Session(region_name=REGION).client(service, endpoint_url=self.endpoint)

    def put(self, key: str, content: bytes) -> None:
        self.client("s3").put_object(Bucket=self.bucket, Key=key, Body=content)

    def left(self) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        asked = self.client("sqs").get_queue_attributes
        found = [asked(QueueUrl=url, AttributeNames=names)["Attributes"] for url in (self.work, self.events)]
        return sum(int(attributes[name]) for attributes in found for name in names)


@contextmanager
def forwarder(cloud: Cloud) -> Iterator[str]:
    """Passes webhooks on as the described one does: packed, through a topic, to the standard queue."""

    async def forward(scope: Any, receive: Any, send: Any) -> None:
        body = await Request(scope, receive).body()
        event = json.loads(body)
        attributes = {"source": "gitlab", "event_type": event["object_kind"], "content_encoding": "gzip+base64"}
        envelope = {
            "Type": "Notification",
            "MessageId": str(uuid.uuid4()),
            "Message": base64.b64encode(gzip.compress(body)).decode(),
            "MessageAttributes": {name: {"Type": "String", "Value": value} for name, value in attributes.items()},
        }
        sending = cloud.client("sqs").send_message
        await asyncio.to_thread(lambda: sending(QueueUrl=cloud.events, MessageBody=json.dumps(envelope)))
        await Response(status_code=200)(scope, receive, send)

    with LabServer({"forwarder": forward}) as server:
        yield server.url("forwarder")


class Moved(Stage):
    """A service with what somebody brought along; `left` counts the messages of both queues."""

    cloud: Cloud
    hook: str

    def bring(self, cloud: Cloud, hook: str, file: Path) -> None:
        self.cloud, self.hook, text = cloud, hook, file.read_text()
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text("apiVersion: v1\nkind: Config\nclusters: []\nusers: []\ncontexts: []\n")
        assert self.lab is not None
        documented = {
            "GOOGLE_API_KEY": "key",
            "GOOGLE_CLOUD_PROJECT": "birds",
            "ORCHESTRATOR_GITLAB_TOKEN": self.scene.write_token,
            "GITLAB_TOKEN_RO": self.scene.read_token,
            "GITLAB_TOKEN_CONTAINERS_RO": self.scene.read_token,
            "KUBECONFIG": str(kubeconfig),
            "CONFIG_PATH": str(self.file),
        }
        hosts = {"GOOGLE_GEMINI_BASE_URL": self.lab.gemini_url, "ANTHROPIC_VERTEX_BASE_URL": self.lab.vertex_url}
        ours = {name: self.environment[name] for name in ("PATH", "HUMMINGBIRD_HOME")}
        self.environment = {**documented, **hosts, **ours}
        self.file.parent.mkdir(parents=True)
        prompts = self.file.parent / "workflows"
        prompts.mkdir()
        for name, prompt in load_embedded().prompts.items():
            (prompts / f"{name}.md").write_text(prompt)
        project = self.ask(lambda world: world.project.path)
        if "sqs_fifo_queue_url" not in text:  # the older example names one queue, the text beside it two
            text = text.replace('sqs_queue_url: ""', 'sqs_queue_url: ""\n  sqs_fifo_queue_url: ""')
        for old, new in (
            ("https://gitlab.com  ", f"{self.scene.url('gitlab')}  "),
            ("gitlab_url: https://gitlab.com\n", f"gitlab_url: {self.scene.url('gitlab')}\n"),
            (TENANT, project),
            ("org/group/project: {}", f"{project}: {{}}"),
            ('sqs_queue_url: ""', f"sqs_queue_url: {cloud.events}"),
            ('sqs_fifo_queue_url: ""', f"sqs_fifo_queue_url: {cloud.work}"),
            ('s3_session_bucket: ""', f"s3_session_bucket: {cloud.bucket}"),
        ):
            text = text.replace(old, new)
        self.file.write_text(text)

    async def serve(self, *, signing: str = "") -> HummingbirdService:
        """`hummingbird serve --sandbox bubblewrap`, since no cluster is here."""
        chosen = choose_for_service(self.environment, "bubblewrap")
        self.watched = ConfigWatcher(self.file, self.environment)
        self._serving = HummingbirdService(self.watched, self.environment, chosen=chosen, grace_s=5.0)
        self._running = asyncio.create_task(self._serving.run(signals=False))
        self._subscribe(self.hook, signing)
        return self._serving

    def queued(self) -> int:
        return self.cloud.left()

    def old_thread(self, session: str, workflow: str, sha: str) -> str:
        """A placeholder and its result, each with the marker of three keys in its last line."""
        marker = f'<!-- hummingbird-session: {{"id":"{session}","wf":"{workflow}","sha":"{sha}"}} -->'

        def write(world: GitLabWorld) -> str:
            bot, request = world.user(self._bot(world)), world.merge_request
            begun = NewNote(body=f"Running the {workflow} workflow...\n\n{marker}", internal=True, individual=False)
            _, thread = store_note(world, request, bot, begun, begun.body)
            told = NewNote(body=f"The clair-scan task timed out.\n\n{marker}", internal=True, thread=thread)
            store_note(world, request, bot, told, told.body)
            return thread.id

        return self.ask(write)

    def resolved(self, thread_id: str) -> bool:
        return bool(self.thread(thread_id).resolved)

    def asked(self) -> list[tuple[str, str]]:
        """Of whom and what the model was asked, the whole request as text."""
        assert self.lab is not None
        return [(one.path, json.dumps(one.body)) for one in self.lab.requests]


@asynccontextmanager
async def moved(
    folder: Path, ministack: Ministack, patch: pytest.MonkeyPatch, file: Path, turns: list[Turn]
) -> AsyncIterator[Moved]:
    patch.setattr("hummingbird.queues.sqs.QUEUE_POLL_S", 1.0)  # a stop waits for its end
    patch.setattr("hummingbird.models.google_credentials.load_application_default", lambda _: GoogleToken("ya29.x"))
    name = uuid.uuid4().hex[:8]
    work = ministack.create(f"work-{name}.fifo", VisibilityTimeout="1800")
    cloud = Cloud(ministack.endpoint, ministack.create(f"in-{name}", VisibilityTimeout="60"), work, f"sessions-{name}")
    cloud.client("s3").create_bucket(Bucket=cloud.bucket)
    script = Script(turns)
    with Scene(find_case(CASE)) as scene, VendorLab(script) as lab, forwarder(cloud) as hook:
        stage = Moved(scene, folder, script, lab)
        stage.ask(_give_tokens)
        stage.bring(cloud, hook, file)
        try:
            yield stage
        finally:
            await stage.stop(park=True)
        script.assert_consumed()


def developer(world: GitLabWorld) -> str:
    members = (world.user(one.user_id) for one in world.project.members.values() if one.access_level >= 30)
    return next(user.username for user in members if not user.bot)


def old_session(project: str, iid: int) -> bytes:
    """context.json as the described system keeps it: an envelope of version 1 around messages in OpenAI's form."""
    call = {"id": "c1", "type": "function", "function": {"name": "gitlab_get_mr_details", "arguments": '{"iid": 1}'}}
    contents = [
        {"role": "user", "content": json.dumps({"project": project, "iid": iid, "sha": OLD_SHAS[0]})},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"title": "Fix auth"}'},
        {"role": "assistant", "content": "The clair-scan task timed out after 600 s."},
    ]
    return json.dumps({"format_version": 1, "contents": contents}).encode()


async def test_all_of_it_goes_on(
    tmp_path: Path, cloud: Ministack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pipeline failure, review, command with overrides, reply, auto-resolve and rate limit, in one life."""
    turns = [
        Turn(text="The compiler said no."),
        Turn(text="Read by Claude."),
        Turn(text="It waits for a scan."),
        Turn(calls=(Call("gitlab_get_mr_unified_diff", {"iid": 4262}),)),
        Turn(text="The new commit is fine."),
    ]
    async with moved(tmp_path, cloud, monkeypatch, CONTINUITY, turns) as stage:
        caplog.set_level(logging.INFO, "hummingbird")
        head, iid, project, who = stage.ask(
            lambda world: (
                str(world.merge_request.sha),
                world.merge_request.iid,
                world.project.path,
                developer(world),
            )
        )
        sessions = [str(uuid.uuid4()) for _ in OLD_SHAS]
        threads = [stage.old_thread(one, "analyze-failures", sha) for one, sha in zip(sessions, OLD_SHAS, strict=True)]
        reviewed = stage.old_thread(str(uuid.uuid4()), "code-review", head)
        stage.cloud.put(f"sessions/{sessions[0]}/context.json", old_session(project, iid))
        await stage.serve()

        def ends(number: int) -> Callable[[], bool]:
            return lambda: len([note for note in stage.ends() if note.part is NoteKind.RESULT]) >= number

        # a pipeline fails: four threads of before leave room for one more
        await stage.begin_case()
        await stage.until(ends(1))
        assert "The compiler said no." in stage.ends()[0].body
        assert "gemini-3.1-pro-preview" in stage.asked()[-1][0]

        # the commit was reviewed before, so an update of the merge request starts nothing
        stage.happens({"kind": "merge_request", "action": "update"})
        await stage.idle()
        assert len(stage.ends()) == 1
        assert "code-review has looked at this commit already" in caplog.text

        # a command chooses a model that no list names
        await stage.write(who, "/hummingbird code-review model=claude-sonnet-4-6 max_iterations=25")
        await stage.until(ends(2))
        chosen = stage.ends()[1].marker
        assert chosen is not None
        assert (chosen.overrides.model, chosen.overrides.max_iterations) == ("claude-sonnet-4-6", 25)
        assert "/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-6" in stage.asked()[-1][0]

        # a reply in an old thread goes on with its old session
        await stage.write(who, QUESTION, thread=threads[0])
        await stage.until(ends(3))
        answer = stage.ends()[2]
        assert (answer.thread, answer.session) == (threads[0], sessions[0])
        for word in ("timed out after 600 s", "Fix auth", QUESTION):
            assert word in stage.asked()[-1][1]

        # a push resolves what is about older commits, and the new one is reviewed
        today = stage.ends()[0].thread
        assert not stage.resolved(today)
        new = stage.push("c" * 40, diff=LARGE_DIFF)
        await stage.until(ends(4))
        read = stage.asked()[-1][1]
        assert all(f"line {number} of the wing" in read for number in range(2_000)), "max_inline_size: 200000"
        await stage.until(lambda: all(map(stage.resolved, [today, *threads])))
        assert not stage.resolved(reviewed), "code-review does not resolve on push in this configuration"

        # its pipeline fails as well, and the limit of five is reached: four of before, one of today
        def fail_again(world: GitLabWorld) -> None:
            run = world.find_pipeline(stage.scene.case.description["event"]["pipeline"])
            assert run is not None
            run.sha = new

        stage.ask(fail_again)
        before = len(stage.marked())
        await stage.begin_case()
        await stage.until(lambda: "analyze-failures has run as often as it may" in caplog.text)
        await stage.idle()
        assert len(stage.marked()) == before


@pytest.mark.thorough
async def test_the_older_configuration_goes_on(
    tmp_path: Path, cloud: Ministack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto_trigger` stands in place of `trigger`, and the queue for work stands in the text beside the example."""
    async with moved(tmp_path, cloud, monkeypatch, OLDER, [Turn(text="The compiler said no.")]) as stage:
        await stage.serve()
        await stage.begin_case()
        await stage.until(lambda: len(stage.ends()) == 1)
        assert "The compiler said no." in stage.ends()[0].body
