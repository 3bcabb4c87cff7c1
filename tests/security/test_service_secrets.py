"""What writes is known to the forge alone, what reads to the sources alone, and neither is written anywhere.

The whole service runs before the lab's GitLab; its model looks around in the sandbox as an intruder would."""

import base64
import logging
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.library import Agent
from hummingbird.app.source_registry import create_sources
from hummingbird.core.journal import ToolFinished
from hummingbird.core.masking import Secrets
from hummingbird.gitlab.write.note_sanitizer import render_note
from hummingbird.gitlab.write.protocol import NoteDraft, NoteMarkers
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.lab.gitlab.records import AccessToken
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.sandboxes.registry import SandboxRegistry
from tests.journeys.service.conftest import in_a_hurry  # noqa: F401 - a fixture
from tests.journeys.service.stage import Stage, staged
from tests.security.canaries import CANARIES, files, found, spellings
from tests.standins.vendors.script import Call, Fault, Step, Turn

PUBLIC = {"internal_notes": False}
CASE, JOB, BOT, READER = "failing-test", 70011, 91, 92
LOOK_AROUND = (
    "env; cat /proc/*/environ /proc/self/mountinfo | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '; "
    "grep -rIs -e all.writes -e own.writes -e only.reads -e of.the.hook /etc /home /root /run /tmp /workspace; true"
)


def armed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every credential is a canary, in the environment of the process itself too."""
    stage.environment |= {
        "ORCHESTRATOR_GITLAB_TOKEN": CANARIES["orchestrator of all"],
        "ORCHESTRATOR_GITLAB_TOKEN_LABRI_PROGRESS_CIDIFF": CANARIES["orchestrator of the project"],
        "READER": CANARIES["tool"],
        "HUMMINGBIRD_WEBHOOK_SECRET": CANARIES["webhook"],
        "HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN": CANARIES["signing"],
        "ANTHROPIC_API_KEY": CANARIES["vendor"],
    }
    for name, value in stage.environment.items():
        monkeypatch.setenv(name, value)
    stage.ask(_known)


def _known(world: GitLabWorld) -> None:
    world.tokens.append(AccessToken(CANARIES["orchestrator of the project"], BOT, ("api",)))
    world.tokens.append(AccessToken(CANARIES["tool"], READER, ("read_api",)))


def signed(stage: Stage) -> None:
    """The hook sends both of what opens the door."""

    def change(world: GitLabWorld) -> None:
        hook = webhook_sender(world).hooks[0]
        hook.token, hook.signing_token = CANARIES["webhook"], CANARIES["signing"]

    stage.ask(change)


def call(name: str, **arguments: Any) -> Turn:
    return Turn(calls=(Call(name, arguments),))


def commanded(stage: Stage, *arguments: str) -> str:
    """What a command of ours prints, with every detail it would give."""
    environment = {**os.environ, **stage.environment, "CONFIG_PATH": str(stage.file)}
    done = subprocess.run(
        [sys.executable, "-m", "hummingbird", *arguments], env=environment, capture_output=True, check=False, timeout=90
    )
    printed = (done.stdout + done.stderr).decode()
    assert "Usage:" not in printed, "it was called as it wants to be"
    assert printed.strip()
    return printed


@pytest.mark.thorough
async def test_no_credential_is_written_down_or_told_wherever_a_journey_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    queued: list[str] = []
    send = SqliteQueue.send

    async def overheard(queue: SqliteQueue, body: str, **named: Any) -> str:
        queued.append(f"{body} {named}")
        return await send(queue, body, **named)

    monkeypatch.setattr(SqliteQueue, "send", overheard)
    refusal = Fault("status", status=401, type="authentication_error", message=f"bad key {CANARIES['vendor']}!")
    turns: list[Step] = [
        call("sandbox_exec", command=LOOK_AROUND),
        call("gitlab_get_job_log", job_id=JOB),
        Turn(text="The parser is too strict."),
        Turn(text="Line 61."),
        Turn(text="As I said."),
        refusal,
    ]
    async with staged(CASE, tmp_path, settings=PUBLIC, turns=turns, begin=False) as stage:
        armed(stage, monkeypatch)
        await stage.serve()
        signed(stage)
        plan = stage.world.faults.plan
        plan("*/discussions", server_error_fault(502), times=2, method="GET")
        plan("*/trace", FaultResponse(500, {"message": f"no such token {CANARIES['tool']}"}))
        own = CANARIES["orchestrator of the project"]
        plan("*/discussions", FaultResponse(403, {"message": f"not with {own}"}), method="POST")
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.write("hsato", "Which line?", thread=result.thread)
        await stage.notes(3)
        await stage.write("hsato", "/hummingbird analyze-failures is it the parser?")
        await stage.notes(5)
        await stage.write("hsato", "/hummingbird analyze-failures once more")
        notes = await stage.notes(7)
        looked = next(one.text for one in stage.entries(result.session) if isinstance(one, ToolFinished))
        assert stage.lab is not None
        asked = [
            (repr(one.body), {k: v for k, v in one.headers.items() if k != "x-api-key"}) for one in stage.lab.requests
        ]
        event = f'{{"iid": {stage.world.merge_request.iid}}}'
        project = stage.world.project.path
        dry = (
            "run",
            "-v",
            "--workflow",
            "analyze-failures",
            "--project",
            project,
            "--event",
            event,
            "--model",
            "digest",
        )
        told = [commanded(stage, *one) for one in (("queue", "list"), ("doctor",), ("config", "explain", project), dry)]
        everything = stage.ask(lambda world: [note.body for note in world.merge_request.notes])
    assert "PATH=" in looked, "it did look around"
    assert "rules alone" in notes[-1].body, "the run without a key was told"
    assert "LogDifferTest" in told[-1], "the dry run ran"
    assert not [one for body, headers in asked for one in found(body + repr(headers))]
    assert not [one for body in everything for one in found(body)]
    assert sum('"kind":"order"' in body for body in queued) == 4
    assert not [one for body in queued for one in found(body)]
    assert not [(name, one) for name, content in files(tmp_path) for one in found(content)]
    assert not [one for text in told for one in found(text)]
    assert not [one for record in caplog.records for one in found(written(record))]


def written(record: logging.LogRecord) -> str:
    trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
    return f"{record.getMessage()} {record.args!r} {trace}"


async def test_the_forge_asks_with_the_token_that_writes_and_the_sources_with_the_one_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project's own token goes before the one for all, which nobody knows here."""
    turns = [call("gitlab_get_job_log", job_id=JOB), call("gitlab_get_mr_discussions", mr_iid=11), Turn(text="Done.")]
    async with staged(CASE, tmp_path, settings=PUBLIC, turns=turns, begin=False) as stage:
        armed(stage, monkeypatch)
        await stage.serve()
        signed(stage)
        await stage.begin_case()
        await stage.notes(2)
        seen = stage.ask(lambda world: list(world.requests))
        bot, reader = (stage.world.user(each).username for each in (BOT, READER))
    assert {one.username for one in seen} == {bot, reader}
    assert all(one.status != 401 for one in seen)
    assert {one.method for one in seen if one.username == reader} == {"GET"}
    assert {one.username for one in seen if one.path.endswith("/trace")} == {reader}
    assert {one.username for one in seen if one.path.endswith("/user") or one.method == "POST"} == {bot}
    assert {one.username for one in seen if one.path.endswith("/discussions") and one.method == "GET"} == {bot, reader}


@pytest.mark.thorough
async def test_what_runs_a_model_is_given_nothing_that_writes_or_opens_a_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the agent, nor the sources, nor what starts and removes sandboxes."""
    given: dict[str, dict[str, str]] = {}

    def watched(name: str, make: Callable[..., Any], at: int | str) -> Callable[..., Any]:
        def made(*parts: Any, **named: Any) -> Any:
            given[name] = dict(named[at].environment if isinstance(at, str) else parts[at])
            return make(*parts, **named)

        return made

    for name, make, at in (
        ("investigation.Agent", Agent, "config"),
        ("investigation.create_sources", create_sources, 1),
        ("service.SandboxRegistry", SandboxRegistry, 1),
    ):
        monkeypatch.setattr(f"hummingbird.app.{name}", watched(name, make, at))
    async with staged(CASE, tmp_path, settings=PUBLIC, turns=[Turn(text="Done.")], begin=False) as stage:
        armed(stage, monkeypatch)
        await stage.serve()
        signed(stage)
        await stage.begin_case()
        await stage.notes(2)
    assert len(given) == 3
    for environment in given.values():
        assert environment["READER"] == CANARIES["tool"], "it is the environment of the service"
        assert not [name for name in environment if name.startswith(("ORCHESTRATOR", "HUMMINGBIRD_WEBHOOK"))]
        assert found(repr(environment), [name for name in CANARIES if name not in ("tool", "vendor")]) == []


@pytest.mark.thorough
async def test_a_report_that_spells_a_credential_in_any_usual_way_is_posted_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second wall: even if a model knew one, it could not have the bot tell it."""
    coded = [one for value in CANARIES.values() for one in sorted(spellings(value))]
    coded += [base64.b64encode(f"oauth2:{value}@".encode()).decode() for value in CANARIES.values()]
    parted = [re.sub("([+/=._])", r"\\\1", value[:8]) + f"<b></b>**{value[8:]}**" for value in CANARIES.values()]
    hidden = [f"&#{ord(value[0])};{value[1:9]}\u200b{value[9:]}" for value in CANARIES.values()]
    report = "\n\n".join(["What I found:", *coded, *parted, *hidden, "and that is all."])
    async with staged(CASE, tmp_path, settings=PUBLIC, turns=[Turn(text=report)], begin=False) as stage:
        armed(stage, monkeypatch)
        await stage.serve()
        signed(stage)
        await stage.begin_case()
        _, result = await stage.notes(2)
    assert "and that is all." in result.body
    assert found(result.body) == []


def test_our_own_words_tell_no_credential_either() -> None:
    """They quote what others complained about: a store, a sandbox, a vendor."""
    secrets = Secrets(CANARIES.values())
    for name, value in CANARIES.items():
        draft = NoteDraft(text="Done.", above=f"Of `{value}`.", below=f"- `The bucket refused {value}.`")
        body = render_note(draft, NoteMarkers("hummingbird-session"), secrets)
        assert found(body, [name]) == []
        assert "The bucket refused" in body
