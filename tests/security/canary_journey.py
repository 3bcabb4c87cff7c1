"""A journey on which everybody gives away what they can. What it leaves behind is a `Trail`.

The project prints every credential into a log, in every spelling and torn in two; GitLab, the cluster, the farm and the
vendor repeat theirs when they refuse; people write them; the model looks for them in the sandbox, decodes them there,
and says them.
"""

import asyncio
import base64
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import boto3.session
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummingbird.app.console import OneLineFormatter
from hummingbird.lab import scene as scenes
from hummingbird.lab.fault_injection import FaultResponse, StreamedBody
from hummingbird.lab.gitlab.records import AccessToken
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.konflux.world import READ_RULES, reader_account
from hummingbird.lab.kubernetes_api import access
from tests.contracts.queues.backends.ministack import REGION, Ministack
from tests.journeys.service.stage import Ours, Stage, staged
from tests.security.canaries import TIERS, ways
from tests.security.canary_log import log_pieces
from tests.standins.vendors.recording import Recorded
from tests.standins.vendors.script import Call, Fault, Step, Turn

CASE, JOB, BOT, READER = "failing-test", 70011, 91, 92
REQUEST = "6b2f0c1e-5d3a-4f6e-9c38-0a7d52e1b9f4"
SEEN = "/tmp/data/seen.txt"  # what the model found inside, as it is: archives are not masked
LOOK_AROUND = (
    f"(env; cat /proc/*/environ /proc/*/cmdline /proc/self/mountinfo | tr '\\0' '\\n'; "
    f"grep -rIs -e writes -e reads -e of.the -e whsec_ -e sentry /etc /home /root /run /var) > {SEEN} 2>&1; "
    f"wc -c {SEEN}; cat {SEEN}; true"
)
DECODE = (
    "grep -rohE '[A-Za-z0-9+/_-]{20,}=*' /tmp/data | while read -r one; do echo \"$one\" | base64 -d; done "
    "> /tmp/data/decoded.bin 2>/dev/null; cat /tmp/data/decoded.bin; true"
)
ALL = " and ".join(TIERS.values())
OF_THE_PROCESS = " and ".join(value for name, value in TIERS.items() if name != "konflux")  # that one is in a file


class Bug(Exception):
    """Of ours, with a credential in its words."""


@dataclass(frozen=True)
class Heard:
    """A request as it came over the wire."""

    server: str
    line: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")


@dataclass
class Trail:
    """`printed`: by a command of ours, what it wrote to either side. `bucket`: objects by their names."""

    state: Path
    exported: Path
    archives: dict[str, bytes] = field(default_factory=dict)
    vendor: Sequence[Recorded] = ()
    heard: list[Heard] = field(default_factory=list)
    notes: Sequence[Ours] = ()
    awards: Sequence[str] = ()
    records: list[logging.LogRecord] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    printed: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    bucket: dict[str, bytes] = field(default_factory=dict)


class Overhearing:
    """Fulfils ASGI for one that it listens to."""

    def __init__(self, server: str, application: ASGIApp, heard: list[Heard]) -> None:
        self._server, self._application, self._heard = server, application, heard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()

        async def hearing() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        try:
            await self._application(scope, hearing, send)
        finally:
            if scope["type"] == "http":
                line = f"{scope['method']} {scope['path']}?{scope['query_string'].decode('latin-1')}"
                headers = [(key.decode("latin-1").lower(), value.decode("latin-1")) for key, value in scope["headers"]]
                self._heard.append(Heard(self._server, line, headers, bytes(body)))


class Keeping(logging.Handler):
    """Keeps records, and the lines that our commands make of them."""

    def __init__(self, trail: Trail) -> None:
        super().__init__(logging.DEBUG)
        self._trail = trail
        self.setFormatter(OneLineFormatter("%(levelname)s %(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._trail.records.append(record)
        self._trail.lines.append(self.format(record))


# what the project prints


def credentials(folder: Path) -> dict[str, str]:
    return {
        "ORCHESTRATOR_GITLAB_TOKEN": TIERS["orchestrator of all"],
        "ORCHESTRATOR_GITLAB_TOKEN_LABRI_PROGRESS_CIDIFF": TIERS["orchestrator of the project"],
        "GITLAB_READER_TOKEN": TIERS["tool"],
        "TESTING_FARM_API_TOKEN": TIERS["testing farm"],
        "CLUSTER": str(folder / "kubeconfig"),
        "HUMMINGBIRD_WEBHOOK_SECRET": TIERS["webhook"],
        "HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN": TIERS["signing"],
        "HUMMINGBIRD_DASHBOARD_TOKEN": TIERS["dashboard"],
        "ANTHROPIC_API_KEY": TIERS["vendor"],
        "AWS_SECRET_ACCESS_KEY": TIERS["aws"],
        "SENTRY_DSN": TIERS["sentry"],
    }


def armed(stage: Stage, patch: pytest.MonkeyPatch) -> None:
    """Every credential is a canary, in the environment of the process itself too."""
    stage.environment |= credentials(stage.folder)
    for name, value in stage.environment.items():
        patch.setenv(name, value)
    stage.ask(_known_to_gitlab)
    cluster = stage.scene.worlds.konflux
    cluster.access.accounts[TIERS["konflux"]] = reader_account(cluster.namespace, READ_RULES)
    access.write_kubeconfig(
        stage.folder / "kubeconfig", stage.scene.url("konflux"), TIERS["konflux"], cluster.namespace
    )


def _known_to_gitlab(world: GitLabWorld) -> None:
    world.tokens.append(AccessToken(TIERS["orchestrator of the project"], BOT, ("api",)))
    world.tokens.append(AccessToken(TIERS["tool"], READER, ("read_api",)))


def sources(stage: Stage) -> dict[str, Any]:
    farm = {
        "api_url": stage.scene.url("testing_farm"),
        "token_env": "TESTING_FARM_API_TOKEN",
        "private_addresses": True,
    }
    return {
        "gitlab": {"token_env": "GITLAB_READER_TOKEN"},
        "konflux": {"cluster_url": stage.scene.cluster_url, "kubeconfig_env": "CLUSTER"},
        "testing_farm": {**farm, "artifacts": [f"{stage.scene.url('artifacts')}/"]},
    }


def signed(stage: Stage) -> None:
    """The hook sends both of what opens the door."""

    def change(world: GitLabWorld) -> None:
        hook = webhook_sender(world).hooks[0]
        hook.token, hook.signing_token = TIERS["webhook"], TIERS["signing"]

    stage.ask(change)


def refusals(stage: Stage) -> None:
    """Everybody repeats, when refusing, what they were asked with; and GitLab has the log in pieces."""
    worlds, log = stage.scene.worlds, stage.scene.case.folder / "logs" / "build-test-deploy.log"
    gitlab = worlds.gitlab.faults.plan
    gitlab("*/discussions", FaultResponse(502, f"upstream got {TIERS['orchestrator of the project']}"), method="GET")
    gitlab(
        "*/discussions",
        FaultResponse(403, {"message": f"not with {TIERS['orchestrator of the project']}"}),
        method="POST",
    )
    gitlab("*/trace", FaultResponse(500, {"message": f"no such token {TIERS['tool']}"}))
    gitlab("*/trace", StreamedBody(lambda: log_pieces(log.read_bytes()), {"content-type": "text/plain"}))
    cluster = {"kind": "Status", "status": "Failure", "code": 403, "message": f"Bearer {TIERS['konflux']} may not"}
    worlds.konflux.cluster_faults.plan("*/pipelineruns", FaultResponse(403, cluster))
    worlds.testing_farm.api_faults.plan(
        "*", FaultResponse(401, {"code": 401, "message": f"bad token {TIERS['testing farm']}"})
    )


# what the model does


def call(name: str, **arguments: Any) -> Turn:
    return Turn(calls=(Call(name, arguments),))


def turns() -> list[Step]:
    coded = [base64.b64encode(value.encode()).decode() for value in TIERS.values()]
    echoes = "; ".join(f"echo {one} | base64 -d >> /tmp/data/known.txt" for one in coded)
    spelt = "\n\n".join(one for value in TIERS.values() for one in ways(value).values())
    return [
        call("sandbox_exec", command=LOOK_AROUND),
        call("gitlab_get_job_log", job_id=JOB),
        call("sandbox_exec", command=DECODE),
        Turn(thinking=f"I know {ALL}", text=f"Let me try {ALL}.", calls=(Call("sandbox_exec", {"command": echoes}),)),
        call("sandbox_exec", command=f"cat > /tmp/data/said.txt <<'END'\n{ALL}\nEND\ncat /tmp/data/said.txt"),
        Turn(calls=(Call("gitlab_get_mr_discussions", {"mr_iid": 11}), Call(ALL, {"and": ALL}))),
        call("konflux_list_pipelineruns", sha="a" * 40),
        call("tf_get_request_status", request_id=REQUEST),
        Turn(thinking=f"They are {ALL}", text=f"What I found:\n\n{spelt}\n\nand that is all of the parser."),
        Turn(text=f"You wrote {ALL}."),
        Turn(text="As I said of the parser."),
        Fault("status", status=401, type="authentication_error", message=f"bad key {TIERS['vendor']}!"),
    ]


async def travelled(stage: Stage, trail: Trail) -> None:
    """A pipeline that failed, a reply, two commands; then a bug of ours."""
    await stage.serve()
    signed(stage)
    await stage.write("hsato", f"I think it is {ALL}")
    refusals(stage)
    await stage.begin_case()
    _, result = await stage.notes(2)
    await stage.write("hsato", f"Which line? I use {ALL}", thread=result.thread)
    await stage.notes(3)
    await stage.write("hsato", f"/hummingbird analyze-failures is it {ALL}?")
    await stage.notes(5)
    await stage.write("hsato", "/hummingbird analyze-failures once more")
    await stage.notes(7)
    await _stumbled(stage)
    assert stage.lab is not None
    trail.vendor = stage.lab.requests
    trail.notes = stage.ours()
    trail.awards = stage.ask(lambda world: [award.name for note in world.merge_request.notes for award in note.awards])


async def _stumbled(stage: Stage) -> None:
    """A bug is logged with its trace; the message is tried again and gives up."""

    def broken(*_: object) -> str:
        raise Bug(f"cannot go on with {OF_THE_PROCESS}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hummingbird.service.run_stage.task_text", broken)
        await stage.write("hsato", "/hummingbird analyze-failures and again")
        await stage.until(lambda: stage.dead() == 1)
        await stage.idle()


# what commands say


# Runs each command that it reads a line about, in this one process, because starting one for each of them takes longer
# than the commands. What a command prints goes to two files of its own.
ONE_BY_ONE = """
import json, os, sys
from hummingbird.cli.main import main
answers = os.fdopen(os.dup(1), "w")
for number, line in enumerate(sys.stdin):
    words, variables = json.loads(line)
    os.environ.update(variables)
    sys.argv = ["hummingbird", *words]
    for side in (1, 2):
        file = os.open(f"{number}.{side}", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, side)
        os.close(file)
    code = 0
    try:
        main()
    except SystemExit as done:
        code = done.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    print(code, file=answers, flush=True)
"""


class Commands:
    """A process that runs our commands in the environment of a stage, and keeps what they print in the trail."""

    def __init__(self, stage: Stage, trail: Trail, folder: Path) -> None:
        self._stage, self._trail, self._folder, self._number = stage, trail, folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", ONE_BY_ONE],
            cwd=folder,
            env={**os.environ, **stage.environment, "CONFIG_PATH": str(stage.file)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, *words: str) -> int:
        """Return the exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([words, self._stage.environment]), file=self._process.stdin, flush=True)
        code = int(self._process.stdout.readline())
        out, err = (self._folder.joinpath(f"{self._number}.{side}").read_bytes() for side in (1, 2))
        self._number += 1
        assert b"Usage:" not in err, "it was called as it wants to be"
        self._trail.printed[name] = (out, err)
        return code

    def close(self) -> None:
        self._process.communicate(timeout=60)


@contextmanager
def commanding(stage: Stage, trail: Trail) -> Iterator[Commands]:
    with TemporaryDirectory() as folder, closing(Commands(stage, trail, Path(folder))) as commands:
        yield commands


LOOKUPS = {
    "sessions list": "",
    "sessions list --json": "",
    "sessions show": "{session}",
    "sessions show --json": "{session}",
    "sessions search": "parser",
    "sessions search --json": "parser",
    "sessions replay": "{session}",
    "sessions export": "{session} {folder}",
    "sessions export --format transcript": "{session} -",
    "sessions export --format context": "{session} -",
    "queue list": "",
    "config explain": "{project}",
}
TROUBLES = (
    "doctor",
    "run before a vendor that refuses",
    "run before a GitLab that refuses",
    "run with a credential in an address",
)


def looked_up(stage: Stage, commands: Commands, trail: Trail) -> None:
    named = {"session": stage.marked()[0].session, "project": stage.world.project.path, "folder": trail.exported}
    asked = {name: f"{name} {rest}".format_map(named).split() for name, rest in LOOKUPS.items()}
    assert {commands.run(name, *words) for name, words in asked.items()} == {0}


def in_trouble(stage: Stage, commands: Commands) -> None:
    """What goes wrong before those who typed a command: GitLab and the vendor refuse, an address holds a credential."""
    event = json.dumps({"iid": stage.world.merge_request.iid, "message": ALL})
    run = ("run", "-v", "--workflow", "analyze-failures", "--project", stage.world.project.path, "--event", event)
    commands.run("doctor", "doctor", "-v")
    stage.script.extend(Fault("status", status=401, type="authentication_error", message=f"no: {TIERS['vendor']}"))
    commands.run("run before a vendor that refuses", *run)
    refused = FaultResponse(401, {"message": f"401 of {TIERS['orchestrator of the project']}"})
    stage.world.faults.plan("*", refused)
    commands.run("run before a GitLab that refuses", *run, "--execute")
    stage.environment["ANTHROPIC_BASE_URL"] = f"http://u:{TIERS['vendor']}@127.0.0.1:99999/"
    commands.run("run with a credential in an address", *run)


# the two journeys


@asynccontextmanager
async def _staged(
    folder: Path, trail: Trail, patch: pytest.MonkeyPatch, settings: Mapping[str, str]
) -> AsyncIterator[Stage]:
    """The service, with everything that anybody says to anybody kept in the trail."""
    made = scenes._create_applications

    def overheard(worlds: scenes.LabWorlds) -> dict[str, object]:
        every = cast("dict[str, ASGIApp]", made(worlds))
        return {server: Overhearing(server, application, trail.heard) for server, application in every.items()}

    patch.setattr(scenes, "_create_applications", overheard)
    public = {"internal_notes": False, **settings}
    async with staged(CASE, folder, settings=public, turns=turns(), begin=False) as stage:
        armed(stage, patch)
        stage.configure(public, {"analyze-failures": {"trigger": "pipeline", "data_sources": sources(stage)}})
        with _all_is_logged(trail):
            yield stage


@contextmanager
def _all_is_logged(trail: Trail) -> Iterator[None]:
    root, keeping = logging.getLogger(), Keeping(trail)
    level = root.level
    root.addHandler(keeping)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(keeping)


async def to_a_folder(folder: Path, patch: pytest.MonkeyPatch) -> Trail:
    trail = Trail(folder / "state", folder / "exported")
    async with _staged(folder, trail, patch, {}) as stage:
        await travelled(stage, trail)
        await stage.stop()
        with commanding(stage, trail) as commands:
            await asyncio.to_thread(looked_up, stage, commands, trail)
            await asyncio.to_thread(in_trouble, stage, commands)
    trail.archives = {str(path): path.read_bytes() for path in trail.state.rglob("*.tar.gz")}
    return trail


async def to_a_bucket(folder: Path, patch: pytest.MonkeyPatch, cloud: Ministack) -> Trail:
    trail, client = Trail(folder / "state", folder / "exported"), boto3.session.Session(region_name=REGION).client
    client("s3", endpoint_url=cloud.endpoint).create_bucket(Bucket="canaries")
    async with _staged(folder, trail, patch, {"session_store": "s3://canaries/kept"}) as stage:
        await travelled(stage, trail)
        await stage.stop()
        with commanding(stage, trail) as commands:
            await asyncio.to_thread(looked_up, stage, commands, trail)
    trail.bucket = _objects(client("s3", endpoint_url=cloud.endpoint))
    trail.archives = {name: content for name, content in trail.bucket.items() if name.endswith(".tar.gz")}
    return trail


def _objects(client: Any) -> dict[str, bytes]:
    listed = client.list_objects_v2(Bucket="canaries")["Contents"]
    return {one["Key"]: client.get_object(Bucket="canaries", Key=one["Key"])["Body"].read() for one in listed}
