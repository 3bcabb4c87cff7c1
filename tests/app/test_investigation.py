"""An order is conducted once, whatever dies in between and however often it is asked for."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Never

import msgspec
import pytest

from hummingbird.agent.context_files.memory_pages import MemoryKind, MemoryPage
from hummingbird.app.chat_memory import open_memory
from hummingbird.app.environment_secrets import split_environment
from hummingbird.app.investigation import AgentInvestigator
from hummingbird.core.errors import MissingSetting, ObjectStoreUnusable, SessionTaken
from hummingbird.core.journal import EndReason, MessageSource, NoticeShown, RunEnded, RunStarted, ToolFinished, UserSaid
from hummingbird.core.messages import NoticeKind
from hummingbird.core.orders import OrderCause, RunOverrides
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.dashboard.live_updates import LiveUpdates
from hummingbird.service.protocols import InvestigationRequest
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.journals import FileJournal
from hummingbird.telemetry.metrics import Metrics
from tests.app.conducting import (
    MODEL,
    ORCHESTRATOR,
    PROJECT,
    TASK,
    ShakyObjects,
    Stage,
    applied,
    begun_in,
    configured,
    on_a_case,
    order,
    shell,
    staged,
)
from tests.standins.vendors.script import Fault, Turn

SLOW = f"sleep 300.{os.getpid()}"  # no other process of the tests runs this one


async def test_an_order_becomes_one_run_with_the_orders_id(tmp_path: Path) -> None:
    with staged(tmp_path, shell("echo found > it"), Turn(text="The disk was full.")) as stage:
        done = await stage.conduct(order(), '{"sha": 1}')
    assert (done.outcome.text, done.outcome.run_id, done.outcome.session_id) == (
        "The disk was full.",
        "order",
        "session",
    )
    assert (done.model, done.trouble) == (MODEL, ())
    assert done.outcome.bill.answered == 2
    assert "The disk was full." in done.transcript
    assert done.transcript.endswith(f"{done.outcome.bill}\n")
    entries = stage.entries()
    assert [one.run_id for one in entries if isinstance(one, RunStarted)] == ["order"]
    assert [(one.text, one.source) for one in entries if isinstance(one, UserSaid)] == [
        ('{"sha": 1}', MessageSource.ORDER)
    ]
    assert (stage.sessions / "session" / "transcript.md").read_text() == f"# Session session\n\n{done.transcript}"
    assert (stage.sessions / "session" / "sandbox.tar.gz").exists()


async def test_an_order_that_has_ended_is_not_run_again_and_needs_no_key(tmp_path: Path) -> None:
    """A redelivery gives the same outcome, and no model is asked."""
    with staged(tmp_path, Turn(text="once")) as stage:
        first = await stage.conduct(order())
        stage.clock.advance(500)
        del stage.environment["ANTHROPIC_API_KEY"]
        again = await stage.conduct(order())
        assert len(stage.lab.requests) == 1
    assert again == first


async def test_the_outcome_of_an_earlier_order_is_that_of_its_time(tmp_path: Path) -> None:
    """What a later reply cost is not on the bill of the first result."""
    with staged(tmp_path, Turn(text="one"), Turn(text="two")) as stage:
        first = await stage.conduct(order())
        reply = await stage.conduct(order(order_id="reply", cause=OrderCause.REPLY), "And why?")
        assert await stage.conduct(order()) == first
    assert reply.outcome.bill.answered == 2
    assert "one" not in reply.transcript
    assert "And why?" in reply.transcript
    said = [one.source for one in stage.entries() if isinstance(one, UserSaid)]
    assert said == [MessageSource.ORDER, MessageSource.USER]
    assert NoticeKind.CONTINUATION in [one.notice for one in stage.entries() if isinstance(one, NoticeShown)]


async def test_a_second_event_about_a_commit_has_the_answer_of_the_first(tmp_path: Path) -> None:
    """Silence leaves no note that says so; a replay is wanted all the same."""
    with staged(tmp_path, Turn(text="Nothing to report."), Turn(text="again")) as stage:
        await stage.conduct(order())
        second = await stage.conduct(order(order_id="second"))
        assert (second.outcome.text, len(stage.lab.requests)) == ("Nothing to report.", 1)
        forced = msgspec.structs.replace(order(order_id="third"), forced=True)
        assert (await stage.conduct(forced)).outcome.text == "again"


async def cancelled_in_a_command(stage: Stage, sessions: SessionStore) -> None:
    running = asyncio.create_task(stage.conduct(order(), sessions=sessions))
    await begun_in(sessions, SLOW)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.thorough
async def test_a_cancelled_order_goes_on_elsewhere(tmp_path: Path) -> None:
    """What was paid for is not paid for again, and its files are there."""
    turns = (shell("echo kept > note"), shell(SLOW), shell("cat note"), Turn(text="done"))
    with staged(tmp_path, *turns) as stage:
        await cancelled_in_a_command(stage, FolderSessionStore(stage.sessions))
        assert not [one for one in stage.entries() if isinstance(one, RunEnded)]
        assert not _running(SLOW)
        done = await stage.conduct(order(), "never said")
        assert len(stage.lab.requests) == 4
    assert (done.outcome.text, done.outcome.reason) == ("done", EndReason.COMPLETED)
    entries = stage.entries()
    assert [one.run_id for one in entries if isinstance(one, RunStarted)] == ["order"]
    assert [one.text for one in entries if isinstance(one, UserSaid)] == [TASK]
    assert "kept" in [one.text for one in entries if isinstance(one, ToolFinished)][-1]


def _running(command: str) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if process.name.isdigit() and words.strip() == command:
            found.append(process.name)
    return found


@pytest.mark.thorough
async def test_another_host_goes_on_with_what_a_cancelled_order_stored(tmp_path: Path) -> None:
    """Two hosts that share a store and nothing else."""
    objects = ShakyObjects()
    turns = (shell("echo kept > note"), shell(SLOW), shell("cat note"), Turn(text="done"))
    with staged(tmp_path, *turns) as stage:
        await cancelled_in_a_command(stage, stage.in_bucket(objects))
        there = stage.in_bucket(objects)
        assert await stage.investigator(there).has_session(order())
        done = await stage.conduct(order(), "never said", sessions=there)
    assert (done.outcome.text, done.trouble) == ("done", ())
    entries = await there.load_entries("session")
    assert isinstance(entries[-1], RunEnded)
    assert [one.run_id for one in entries if isinstance(one, RunStarted)] == ["order"]
    assert "kept" in [one.text for one in entries if isinstance(one, ToolFinished)][-1]
    assert (await there.read_file("session", "transcript.md") or b"").endswith(done.transcript.encode())
    assert not stage.sessions.exists(), "nothing is left on a host"


async def test_a_session_of_another_process_is_left_alone(tmp_path: Path) -> None:
    """All work of one session is serial; a second holder must wait and not degrade."""
    with staged(tmp_path) as stage:
        held = FileJournal(stage.sessions / "session" / "journal.jsonl")
        try:
            with pytest.raises(SessionTaken):
                await stage.conduct(order())
        finally:
            held.close()


async def test_a_journal_that_cannot_be_kept_is_told_and_not_in_the_way(tmp_path: Path) -> None:
    with staged(tmp_path, Turn(text="The disk was full.")) as stage:
        stage.sessions.mkdir()
        (stage.sessions / "session").write_text("a file where a folder should be")
        done = await stage.conduct(order())
    assert (done.outcome.text, done.outcome.answered) == ("The disk was full.", True)
    assert "not saved" in done.trouble[0]
    assert "The disk was full." in done.transcript


async def test_a_store_that_is_down_is_told_and_not_in_the_way(tmp_path: Path) -> None:
    """And what could not be looked at is not replaced either."""
    objects = ShakyObjects()
    with staged(tmp_path, Turn(text="earlier"), Turn(text="report")) as stage:
        await stage.conduct(order(), sessions=stage.in_bucket(objects))
        before = await objects.content()
        objects.down = True
        done = await stage.conduct(order(order_id="other"), "Why?", sessions=stage.in_bucket(objects))
    assert done.outcome.text == "report"
    assert len(done.trouble) == 1
    assert "not saved" in done.trouble[0]
    assert "cannot be reached" in done.trouble[0]
    assert await objects.content() == before


async def test_a_reply_without_what_came_before_is_not_answered(tmp_path: Path) -> None:
    """S3: rather later than with half a mind."""
    objects = ShakyObjects()
    objects.down = True
    with staged(tmp_path) as stage:
        with pytest.raises(ObjectStoreUnusable):
            await stage.conduct(order(cause=OrderCause.REPLY), "Why?", sessions=stage.in_bucket(objects))
        assert stage.lab.requests == []


async def test_a_store_that_is_down_is_no_unknown_session(tmp_path: Path) -> None:
    """S3: who replied is not told that the session has expired when nobody could look."""
    objects = ShakyObjects()
    objects.down = True
    with staged(tmp_path) as stage, pytest.raises(ObjectStoreUnusable):
        await stage.investigator(stage.in_bucket(objects)).has_session(order())


@pytest.mark.parametrize("refused", ["transcript.md", "context.json", "metadata.json", ""])
async def test_a_store_that_takes_no_more_is_told(tmp_path: Path, refused: str) -> None:
    """From the beginning, or at the end when the journal is there."""
    objects = ShakyObjects()
    objects.refused = (refused,)
    with staged(tmp_path, Turn(text="report")) as stage:
        done = await stage.conduct(order(), "Why?", sessions=stage.in_bucket(objects))
        stored = await stage.in_bucket(objects).load_entries("session")
    assert done.outcome.text == "report"
    assert len(done.trouble) == 1
    assert "make room" in done.trouble[0]
    assert bool(stored) is bool(refused)


async def test_only_sessions_with_a_journal_are_known(tmp_path: Path) -> None:
    """S3"""
    with staged(tmp_path, Turn(text="report")) as stage:
        await stage.conduct(order())
        investigator = stage.investigator()
        assert await investigator.has_session(order())
        assert not await investigator.has_session(order("other"))
        assert not await investigator.has_session(order("../session"))


@pytest.mark.thorough
async def test_a_revoked_key_leads_to_a_report_by_rules_that_says_so(tmp_path: Path) -> None:
    """What is found is told, and why no model had a part in it."""
    with (
        on_a_case("compiler-error", tmp_path) as (scene, wanted, text),
        staged(tmp_path, Fault("status", status=401, type="authentication_error")) as stage,
    ):
        environment = {**stage.environment, "READER": scene.read_token}
        configuration = configured(
            tmp_path / "config",
            f"model: {MODEL}\ngitlab_url: {scene.url('gitlab')}",
            "data_sources: {gitlab: {token_env: READER}}",
        )
        found = configuration.resolve(wanted.workflow, wanted.project)
        assert found is not None
        done = await AgentInvestigator(FolderSessionStore(stage.sessions), environment).investigate(
            InvestigationRequest(wanted, configuration, found, text)
        )
    assert done.outcome.answered
    assert done.outcome.text.startswith("## Failure report")
    assert done.model == "digest"
    assert "401" in done.no_model_because
    assert "ANTHROPIC" in done.no_model_because.upper()


async def test_settings_that_are_missing_are_said_before_anything_runs(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        del stage.environment["ANTHROPIC_API_KEY"]
        stage.environment["ANTHROPIC_BASE_URL"] = "https://models.example"
        with pytest.raises(MissingSetting, match="ANTHROPIC_API_KEY"):
            await stage.conduct(order())
        with pytest.raises(MissingSetting, match="READER"):
            await stage.conduct(order(), settings="", workflow="data_sources: {gitlab: {token_env: READER}}")
    assert not (stage.sessions / "session").exists()


async def test_a_run_that_never_comes_to_be_one_is_shown_to_nobody_as_running(tmp_path: Path) -> None:
    """Its key is missing, or its model is none."""

    async def nothing(_: str) -> tuple[()]:
        return ()

    live, metrics = LiveUpdates(nothing, lambda *_: ""), Metrics()

    def stumbles(_: object) -> Never:
        raise ValueError("no place for traces")

    with staged(tmp_path) as stage:
        del stage.environment["ANTHROPIC_API_KEY"]
        stage.environment["ANTHROPIC_BASE_URL"] = "https://models.example"
        configuration = stage.configuration()
        investigator = AgentInvestigator(
            FolderSessionStore(stage.sessions), stage.environment, clock=stage.clock, watchers=[live, stumbles, metrics]
        )
        for number in range(3):
            with pytest.raises(MissingSetting, match="ANTHROPIC_API_KEY"):
                await investigator.investigate(
                    InvestigationRequest(order(f"s{number}"), configuration, applied(configuration), TASK)
                )
    assert live.runs == ()
    assert b"hummingbird_runs_under_way 0.0" in metrics.exposition()[0]


async def test_a_persons_overrides_hold_for_the_run(tmp_path: Path) -> None:
    wanted = order()
    override = RunOverrides(model="anthropic:claude-haiku-5-5", max_iterations=1)
    wanted = type(wanted)(
        **{name: getattr(wanted, name) for name in wanted.__struct_fields__} | {"overrides": override}
    )
    with staged(tmp_path, Turn(text="short")) as stage:
        done = await stage.conduct(wanted)
        assert stage.lab.requests[0].body["model"] == "claude-haiku-5-5"
    assert done.outcome.reason is EndReason.MAX_ITERATIONS
    assert done.model == "anthropic:claude-haiku-5-5"


@pytest.mark.thorough
async def test_the_orchestrators_token_is_never_in_reach(tmp_path: Path) -> None:
    """Not in the sandbox, and not to be read where somebody else wrote it down."""
    leak = tmp_path / "leak"
    leak.write_text(ORCHESTRATOR)
    look = f"env; cat {leak} 2>/dev/null; cat /proc/*/environ 2>/dev/null"
    put_together = f"echo {ORCHESTRATOR[:10]}''{ORCHESTRATOR[10:]}"
    with staged(tmp_path, shell(look), shell(put_together), Turn(text="Nothing is there.")) as stage:
        done = await stage.conduct(order())
        sent = [str(request.body) for request in stage.lab.requests]
    inside, masked = [one.text for one in stage.entries() if isinstance(one, ToolFinished)]
    assert "ORCHESTRATOR" not in inside
    assert "exit code 0" in masked
    for text in (inside, masked, done.transcript, *sent):
        assert ORCHESTRATOR not in text


def test_a_run_is_given_no_variable_that_writes() -> None:
    """What is not there cannot be given away."""

    given, held_back = split_environment(
        {
            "ORCHESTRATOR_GITLAB_TOKEN": "one",
            "orchestrator_gitlab_token_ACME": "two",
            "HUMMINGBIRD_WEBHOOK_SECRET": "three",
            "HUMMINGBIRD_DASHBOARD_TOKEN": "four",
            "HUMMINGBIRD_HOME": os.devnull,
            "PATH": "/usr/bin",
        }
    )
    assert given == {"HUMMINGBIRD_HOME": os.devnull, "PATH": "/usr/bin"}
    assert held_back == ["one", "two", "three", "four"]


async def test_a_run_that_no_store_took_is_not_paid_for_again_when_its_note_could_not_be_posted(
    tmp_path: Path,
) -> None:
    """The same process knows what came of it; the script has one answer."""
    objects = ShakyObjects()
    objects.down = True
    with staged(tmp_path, Turn(text="report")) as stage:
        configuration = stage.configuration()
        investigator = stage.investigator(BucketSessionStore(objects, "memory://", stage.clock.now))
        first = await investigator.investigate(
            InvestigationRequest(order(), configuration, applied(configuration), "Why?")
        )
        again = await investigator.investigate(
            InvestigationRequest(order(), configuration, applied(configuration), "Why?")
        )
    assert first.outcome.text == again.outcome.text == "report"


async def test_a_workflow_is_told_what_chats_remember_of_its_project_and_of_no_other(tmp_path: Path) -> None:
    """Project memory for workflows."""
    memory = open_memory(tmp_path / "home")
    for project, fact in ((PROJECT, "The staging cluster is called otter."), ("else/where", "Badgers dig.")):
        await memory.for_project(project).edit(MemoryKind.MEMORY, partial(MemoryPage.add, text=fact, day="2026-11-16"))
    with staged(tmp_path, Turn(text="ok")) as stage:
        configuration = configured(tmp_path / "config", f"model: {MODEL}")
        told = AgentInvestigator(FolderSessionStore(stage.sessions), stage.environment, memory=tmp_path / "home")
        await told.investigate(InvestigationRequest(order(), configuration, applied(configuration), "Why?"))
        system = str(stage.lab.requests[0].body["system"])
    assert ("otter" in system, "Badgers" in system) == (True, False)
