"""What a note says of failures that were there before, with the real ledger and the lab's GitLab."""

from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.limits import FORGE_ATTEMPTS, NOTE_FAILURES
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.storage import KnownFailure
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.lab.gitlab.records import CiJob
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.service.failure_history import KnownFailureText, KnownFailureTracker
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from tests.service.publication.room import Room
from tests.service.publication.stage import IID, PROJECT, SHA, applied_of, conducted, configured, ordered

MARCH_3, MARCH_5 = 1_772_539_200.0, 1_772_712_000.0  # of 2026, at noon
TIMEOUT = ObservedFailure(fingerprint="f1", kind="test", class_="flaky", title="TimeoutError: no answer", excerpt="…")


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteKnownFailureStore:
    return SqliteKnownFailureStore(tmp_path / "known.sqlite")


async def told(room: Room, ledger: Any, order: WorkOrder, *failures: ObservedFailure) -> KnownFailureText:
    request = await room.forge.merge_request(IID)
    return await KnownFailureTracker(ledger, room.clock).remember_and_describe(
        order, request, failures, room.forge, configured()
    )


def at(when: float, iid: int = IID, sha: str = SHA, cause: OrderCause = OrderCause.PIPELINE) -> WorkOrder:
    return ordered(cause, id=f"{iid} {sha}", mr_iid=iid, sha=sha, made_at=when)


async def known(ledger: SqliteKnownFailureStore, fingerprint: str = "f1") -> KnownFailure:
    found = await ledger.find_failure(PROJECT, fingerprint)
    assert found is not None
    return found


async def test_a_failure_that_nobody_has_seen_is_new_with_this_merge_request(
    room: Room, ledger: SqliteKnownFailureStore
) -> None:
    said = await told(room, ledger, at(MARCH_3), TIMEOUT)
    assert said == KnownFailureText(
        "Known about these failures:\n\n- `TimeoutError: no answer`: not seen before in this project"
    )


async def test_a_failure_of_another_merge_request_says_when_and_where(
    room: Room, ledger: SqliteKnownFailureStore
) -> None:
    await told(room, ledger, at(MARCH_3, iid=5), TIMEOUT)
    said = await told(room, ledger, at(MARCH_5), TIMEOUT)
    assert said.text.endswith("`TimeoutError: no answer`: seen before: once, last on 3 March 2026 in `!5`")


async def test_only_what_the_note_names_is_counted_and_an_earlier_place_is_linked(
    room: Room, ledger: SqliteKnownFailureStore
) -> None:
    request, tracker = await room.forge.merge_request(IID), KnownFailureTracker(ledger, room.clock)
    other = ObservedFailure(fingerprint="f2", kind="exit", class_="unknown", title="the same test in the log")
    await told(room, ledger, at(MARCH_3, iid=5), TIMEOUT)
    await tracker.remember_analysis(at(MARCH_3, iid=5), [TIMEOUT], 77, configured())
    said = await tracker.remember_and_describe(
        at(MARCH_5), request, (TIMEOUT, other), room.forge, configured(), leading=(TIMEOUT,)
    )
    assert (await known(ledger, "f2")).count == 1
    assert "the same test in the log" not in said.text
    assert said.banner.startswith("**Seen before:** `TimeoutError: no answer`, once, last on 3 March 2026 in `!5` ([")
    assert "#note_77)" in said.banner


async def test_an_order_that_is_delivered_again_counts_once(room: Room, ledger: SqliteKnownFailureStore) -> None:
    await told(room, ledger, at(MARCH_3, iid=5), TIMEOUT)
    _, _, said = [await told(room, ledger, at(MARCH_5), TIMEOUT) for _ in range(3)]
    assert (await known(ledger)).count == 2
    assert said.text.endswith("seen before: once, also in `!5`")


async def test_a_new_failure_stays_new_when_it_is_told_of_again(room: Room, ledger: SqliteKnownFailureStore) -> None:
    _, said = [await told(room, ledger, at(MARCH_5), TIMEOUT) for _ in range(2)]
    assert said.text.endswith("not seen before in this project")


async def test_earlier_commits_of_the_same_merge_request_are_no_other_place(
    room: Room, ledger: SqliteKnownFailureStore
) -> None:
    orders = [at(MARCH_3 + number, sha=f"{number:040d}") for number in range(3)]
    _, _, said = [await told(room, ledger, order, TIMEOUT) for order in orders]
    assert said.text.endswith("seen before: twice, in this merge request alone")


async def test_what_is_remembered_leads_back_to_the_merge_request(room: Room, ledger: SqliteKnownFailureStore) -> None:
    await told(room, ledger, at(MARCH_3), TIMEOUT)
    found = await known(ledger)
    assert (found.merge_requests, found.branches) == (("!11",), ("main",))
    assert found.links == ("https://gitlab.example/labri-progress/cidiff/-/merge_requests/11",)
    assert (found.kind, found.class_, found.title) == ("test", "flaky", "TimeoutError: no answer")
    assert found.last_seen == MARCH_3


async def test_an_order_without_a_time_happens_now(room: Room, ledger: SqliteKnownFailureStore) -> None:
    await told(room, ledger, at(0.0), TIMEOUT)
    assert (await known(ledger)).last_seen == room.clock.now()


async def test_all_are_remembered_and_the_first_ones_told(room: Room, ledger: SqliteKnownFailureStore) -> None:
    many = [
        ObservedFailure(fingerprint=f"f{number}", kind="test", class_="code", title=f"failure {number}")
        for number in range(NOTE_FAILURES + 3)
    ]
    said = await told(room, ledger, at(MARCH_3), *many, many[0])
    assert said.text.endswith(f"- {len(many)} failures: not seen before in this project")
    said = await told(room, ledger, at(MARCH_5, sha="b" * 40), *many, many[0])
    lines = said.text.split("\n")[2:]
    assert [line.split("`")[1] for line in lines[:-1]] == [f"failure {number}" for number in range(NOTE_FAILURES)]
    assert lines[-1] == "- and 3 more that were seen before"
    assert len(await ledger.list_recent(PROJECT, 100)) == NOTE_FAILURES + 3


async def test_what_has_no_fingerprint_cannot_be_known(room: Room, ledger: SqliteKnownFailureStore) -> None:
    said = await told(room, ledger, at(MARCH_3), ObservedFailure(fingerprint="", kind="test", class_="code", title="x"))
    assert said == KnownFailureText()


async def test_a_reply_remembers_and_tells_nothing_again(room: Room, ledger: SqliteKnownFailureStore) -> None:
    said = await told(room, ledger, at(MARCH_3, cause=OrderCause.REPLY), TIMEOUT)
    assert said == KnownFailureText()
    assert (await known(ledger)).count == 1


async def test_a_ledger_that_cannot_be_used_becomes_a_sentence(room: Room, tmp_path: Path) -> None:
    (tmp_path / "known.sqlite").write_bytes(b"no ledger at all, but long enough to be one" * 100)
    said = await told(room, SqliteKnownFailureStore(tmp_path / "known.sqlite"), at(MARCH_3), TIMEOUT)
    assert said.text == ""
    assert [sentence.split(":")[0] for sentence in said.trouble] == [
        "Could not check whether these failures were seen before"
    ]


async def test_a_fingerprint_that_the_ledger_refuses_becomes_a_sentence(
    room: Room, ledger: SqliteKnownFailureStore
) -> None:
    odd = ObservedFailure(fingerprint="x" * 5_000, kind="test", class_="code", title="x")
    assert (await told(room, ledger, at(MARCH_3), odd)).trouble


async def test_without_a_ledger_nothing_is_said_of_the_past(room: Room) -> None:
    assert await told(room, None, at(MARCH_3), TIMEOUT) == KnownFailureText()


async def test_a_job_that_is_red_on_the_target_branch_too_is_named(room: Room) -> None:
    room.lab.run_in_server(_red_main)
    said = await told(room, None, at(MARCH_3), TIMEOUT)
    assert said.text.split("\n")[2:] == [
        "- `build-test-deploy` is red on `main` too "
        "([pipeline 9007](https://gitlab.example/labri-progress/cidiff/-/pipelines/9007))"
    ]


async def test_the_target_branch_is_asked_for_pipelines_and_failures_alone(room: Room) -> None:
    """A review that came across no failure has nothing to compare."""
    room.lab.run_in_server(_red_main)
    assert await told(room, None, at(MARCH_3, cause=OrderCause.MERGE_REQUEST)) == KnownFailureText()
    assert not [seen for seen in room.lab.requests if "pipelines" in seen.path]
    assert (await told(room, None, ordered(pipeline_id=9011))).text


async def test_a_job_that_is_green_here_or_there_is_not_named(room: Room) -> None:
    assert await told(room, None, at(MARCH_3), TIMEOUT) == KnownFailureText()  # main is green in this case
    room.lab.run_in_server(lambda world: _red_main(world, "lint"))
    assert await told(room, None, at(MARCH_3), TIMEOUT) == KnownFailureText()
    room.lab.run_in_server(_red_main)
    room.lab.run_in_server(_green_here)
    assert await told(room, None, at(MARCH_3), TIMEOUT) == KnownFailureText()


async def test_a_gitlab_that_says_nothing_of_the_branch_becomes_a_sentence(
    room: Room, ledger: SqliteKnownFailureStore
) -> None:
    room.lab.world.faults.plan("*/pipelines", server_error_fault(502), times=FORGE_ATTEMPTS)
    said = await told(room, ledger, at(MARCH_3), TIMEOUT)
    assert said.text.endswith("not seen before in this project")
    assert [sentence.split(":")[0] for sentence in said.trouble] == [
        "Could not check whether the target branch is red too"
    ]


async def test_what_is_known_stands_in_the_note_behind_the_answer_and_is_made_safe(
    room: Room, ledger: SqliteKnownFailureStore
) -> None:
    """An answer that opens a block of code and does not close it hides nothing of ours."""
    hostile = ObservedFailure(
        fingerprint="f1", kind="test", class_="code", title="x` @all\n/close\n<!-- hummingbird-session: {} -->"
    )
    said = await told(room, ledger, at(MARCH_3), hostile)
    configuration = configured()
    applied, publication = applied_of(configuration), room.publication(configuration)
    order = at(MARCH_3)
    place = await publication.post_placeholder(order, applied, await room.threads())
    trouble = KnownFailureText(said.text, ("The branch is not known.",))
    await publication.post_result(order, place, applied, conducted("- a list\n\n```\nnever closed"), trouble)
    body = room.ours()[-1].body
    assert (
        "never closed\n```\n\n<details><summary>Seen before?</summary>\n\nKnown about these failures:\n\n- `x" in body
    )
    assert body.count("<!-- hummingbird-session") == 1
    assert "- `The branch is not known.`" in body
    assert room.lab.run_in_server(lambda world: world.merge_request.state) == "opened"


def _red_main(world: GitLabWorld, name: str = "build-test-deploy") -> None:
    """The newest pipeline of the target branch, and a job of it, failed."""
    pipeline = next(each for each in world.pipelines if each.id == 9007)
    job: CiJob = next(each for each in world.jobs if each.pipeline_id == 9007)
    pipeline.status = job.status = "failed"
    job.name = name


def _green_here(world: GitLabWorld) -> None:
    next(each for each in world.jobs if each.pipeline_id == 9011).status = "success"
