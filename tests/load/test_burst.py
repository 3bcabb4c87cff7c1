"""A burst of webhooks through the whole service: HTTP, SQLite, bubblewrap, a model over HTTP, GitLab.

Every merge request is one session with a failed pipeline; several replies in a thread are one session with several
orders.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from benchmarks.service.burst import configuration
from benchmarks.service.crowd import CASE, ENDS, Crowd, EndlessScript, Hook, Seen, most_at_once
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.queues.sqlite_queue import SqliteQueue
from tests.app.test_service import environment, served
from tests.standins.vendors.script import Fault, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.thoroughly import ALL

PATIENCE_S = 100.0
LANES = 8
PLACEHOLDER = NoteKind.PLACEHOLDER.value


class StalledScript(Script):
    """A model that says nothing and never ends."""

    def next(self, request: dict[str, Any]) -> Turn | Fault:
        return Fault("stall")


@dataclass(frozen=True)
class Stage:
    crowd: Crowd
    file: Path
    given: dict[str, str]


@contextmanager
def staged(folder: Path, script: Script, requests: int, slots: int) -> Iterator[Stage]:
    with Scene(find_case(CASE)) as scene, VendorLab(script) as vendor:
        (folder / "look.md").write_text("Find out why the pipeline failed.")
        file = folder / "hummingbird.yaml"
        file.write_text(configuration(scene.url("gitlab"), slots))
        given = environment(folder, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=vendor.anthropic_url)
        yield Stage(Crowd(scene, requests), file, given)


async def send(port: int, hooks: Sequence[Hook], lanes: int = LANES) -> None:
    """Over so many connections at once; each of them one after the other."""
    waiting = iter(hooks)

    async def lane(client: httpx2.AsyncClient) -> None:
        for hook in waiting:
            answer = await client.post(
                f"http://127.0.0.1:{port}/webhooks/gitlab", content=hook.body, headers=hook.headers
            )
            assert answer.status_code == 202, answer.text

    async with httpx2.AsyncClient(timeout=60) as client:
        await asyncio.gather(*(lane(client) for _ in range(lanes)))


async def until(crowd: Crowd, reached: Callable[[list[Seen]], bool]) -> list[Seen]:
    async with asyncio.timeout(PATIENCE_S):
        while not reached(crowd.seen):  # noqa: ASYNC110 - another thread writes it
            await asyncio.sleep(0.05)
    return crowd.seen


def ended(number: int) -> Callable[[list[Seen]], bool]:
    return lambda seen: sum(note.part in ENDS for note in seen) >= number


async def nothing_left(stage: Stage) -> None:
    queue = SqliteQueue(Path(stage.given["HUMMINGBIRD_HOME"]) / "queue.sqlite", 60)
    assert not await queue.list_dead_letters()
    assert not await queue.receive(10, 0)
    await queue.close()


@pytest.mark.thorough
@pytest.mark.parametrize("slots", [4, 16])
async def test_a_burst_is_answered_exactly_once_within_the_slots(tmp_path: Path, slots: int) -> None:
    requests = 40
    with staged(tmp_path, EndlessScript(0.1), requests, slots) as stage:
        hooks = stage.crowd.failures()
        async with served(stage.file, stage.given) as serving:
            await send(serving.port, [*hooks, *hooks[:10]])  # some are delivered twice
            seen = await until(stage.crowd, ended(requests))
        seen = stage.crowd.seen  # what came until it had stopped
        await nothing_left(stage)
    wanted = {hook.about for hook in hooks}
    assert Counter((note.iid, note.part) for note in seen) == Counter(
        (iid, part) for iid in wanted for part in (PLACEHOLDER, NoteKind.RESULT.value)
    )
    assert 2 <= most_at_once(seen) <= slots


@pytest.mark.thorough
async def test_replies_of_many_threads_are_answered_in_the_order_of_each(tmp_path: Path) -> None:
    threads, each = 6, 3
    with staged(tmp_path, EndlessScript(), threads, 4) as stage:
        async with served(stage.file, stage.given) as serving:
            await send(serving.port, stage.crowd.failures())
            await until(stage.crowd, ended(threads))
            await send(serving.port, stage.crowd.replies(each, threads), lanes=1)
            seen = await until(stage.crowd, ended(threads + threads * each))
        await nothing_left(stage)
    answers: dict[int, list[str]] = defaultdict(list)
    for note in seen:
        answers[note.iid] += re.findall(r"This answers (reply-\d)", note.text)[:1]  # the transcript says it again
    assert len(answers) == threads
    assert dict(answers) == {iid: [f"reply-{at}" for at in range(each)] for iid in answers}


async def test_full_slots_hold_up_nobody_who_needs_none(tmp_path: Path) -> None:
    """Every run hangs at its model; questions for help are answered all the same."""
    requests, questions, slots = (40, 10, 4) if ALL else (12, 5, 4)
    with staged(tmp_path, StalledScript(), requests, slots) as stage:
        async with served(stage.file, stage.given) as serving:
            await send(serving.port, stage.crowd.failures())
            await until(stage.crowd, lambda seen: len(seen) >= slots)
            await send(serving.port, stage.crowd.commands("/hummingbird help", questions))
            seen = await until(stage.crowd, lambda seen: sum(note.order == "" for note in seen) >= questions)
            serving.stop()
        seen = stage.crowd.seen
    helped = [note.iid for note in seen if not note.order]
    assert len(helped) == len(set(helped)) == questions
    assert [note.part for note in seen if note.order] == [PLACEHOLDER] * slots
