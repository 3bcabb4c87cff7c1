"""Runs as they happen, for whoever looks: every entry once and in order, made once, and paced."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.events import EntryRecorded, RunDetached
from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    RunEnded,
    RunStarted,
    SessionOpened,
    UserSaid,
    dump_entry,
    load_entry,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.dashboard.live_updates import KEEP_ALIVE, RELOAD, BroadcastRate, LiveUpdates
from hummingbird.dashboard.queries import (
    LIVE_BEHIND_BYTES,
    LIVE_FEW,
    LIVE_LATEST_S,
    LIVE_PAUSE_S,
    LIVE_PIECE_BYTES,
    LIVE_READS_AT_ONCE,
    LIVE_SENTENCES,
    LIVE_SHARE,
    LIVE_WRITE_CPU_S,
    LIVE_WRITES_PER_S,
)

ORDER = WorkOrder(id="o", session_id="s", cause=OrderCause.REPLY, workflow="w", project="a/b", mr_iid=1)
OPENED = SessionOpened(session_id="s", system="", format=JOURNAL_FORMAT)


class Journal:
    """What is kept so far, and what each number was made of."""

    def __init__(self, *kept: JournalEntry) -> None:
        self.kept: list[JournalEntry] = list(kept)
        self.reads = self.broken = 0
        self.made: list[int] = []
        self.live = LiveUpdates(self.read, self.fragment)

    async def read(self, session_id: str) -> Sequence[JournalEntry]:
        self.reads += 1
        if self.broken:
            self.broken -= 1
            raise ObjectStoreUnusable("The store is away.")
        return tuple(load_entry(dump_entry(entry), 1) for entry in self.kept)

    def fragment(self, entry: JournalEntry, number: int, session_id: str) -> str:
        self.made.append(number)
        return f"<li>{number} {entry.text if isinstance(entry, UserSaid) else type(entry).__name__}</li>\n"


def said(text: str) -> UserSaid:
    return UserSaid(text=text, at=1.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.dashboard.live_updates.LIVE_PAUSE_S", 0.01)
    monkeypatch.setattr("hummingbird.dashboard.live_updates.LIVE_LOOK_S", 0.05)


async def numbers(pieces: AsyncIterator[bytes], until: int) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(60), aclosing(pieces) as open_pieces:  # type: ignore[type-var]  # it is a generator
        async for piece in open_pieces:
            found += re.findall(r"data: <li>(.*?)</li>", piece.decode())
            if found and int(found[-1].split()[0]) >= until:
                break
    return found


async def test_a_run_that_began_here_is_told_with_its_places_in_the_journal() -> None:
    """Also what is not written down yet, and what was said before it began."""
    here = Journal(OPENED, said("earlier"))
    observe = here.live(ORDER)
    started = RunStarted(run_id="o", model="m", at=2.0)
    observe(EntryRecorded(started))
    observe(EntryRecorded(said("now")))
    here.kept.append(started)  # flushed; the newest is not
    looking = asyncio.create_task(numbers(here.live.stream_session("s", 1), 5))
    await asyncio.sleep(0.1)
    observe(EntryRecorded(said("later")))
    assert await looking == ["2 earlier", "3 RunStarted", "4 now", "5 later"]


async def test_the_end_is_told_though_the_run_is_gone_then_and_another_process_may_go_on() -> None:
    here = Journal(OPENED)
    observe = here.live(ORDER)
    looking = asyncio.create_task(numbers(here.live.stream_session("s", 1), 4))
    await asyncio.sleep(0.05)
    entries: list[JournalEntry] = [
        RunStarted(run_id="o", model="m"),
        RunEnded(run_id="o", reason=EndReason.COMPLETED, text="done"),
    ]
    for entry in entries:
        observe(EntryRecorded(entry))
    assert here.live.runs == ()
    await asyncio.sleep(0.1)
    here.kept += [*entries, said("from elsewhere")]
    assert await looking == ["2 RunStarted", "3 RunEnded", "4 from elsewhere"]


async def test_a_run_that_leaves_without_an_end_is_not_shown_as_running_and_its_journal_is_followed() -> None:
    """Parked, lost to another process, or without a sandbox from the beginning."""
    here = Journal(OPENED)
    observe = here.live(ORDER)
    observe(EntryRecorded(said("one")))
    looking = asyncio.create_task(numbers(here.live.stream_session("s", 1), 3))
    await asyncio.sleep(0.05)
    observe(RunDetached())
    assert here.live.runs == ()
    here.kept += [said("one"), said("from elsewhere")]
    assert await looking == ["2 one", "3 from elsewhere"]


async def test_nobody_s_place_is_anybody_else_s() -> None:
    """Who claims to have seen more than there is, or less than others have, is told what he lacks."""
    here = Journal(OPENED, *(said(f"n{number}") for number in range(5)))
    boaster = asyncio.create_task(numbers(here.live.stream_session("s", 999_999_999), 10**9))
    await asyncio.sleep(0.05)
    late = asyncio.create_task(numbers(here.live.stream_session("s", 5), 7))
    await asyncio.sleep(0.05)
    early = asyncio.create_task(numbers(here.live.stream_session("s", 2), 7))
    await asyncio.sleep(0.05)
    here.kept.append(said("new"))
    assert await late == ["6 n4", "7 new"]
    assert await early == ["3 n1", "4 n2", "5 n3", "6 n4", "7 new"]
    boaster.cancel()


async def test_a_journal_that_could_not_be_read_once_costs_no_entry_its_number() -> None:
    here = Journal(OPENED, *(said(f"n{number}") for number in range(9)))
    observe = here.live(ORDER)
    observe(EntryRecorded(said("r11")))
    here.broken = 1
    looking = asyncio.create_task(numbers(here.live.stream_session("s", 10), 12))
    await asyncio.sleep(0.05)
    observe(EntryRecorded(said("r12")))
    assert await looking == ["11 r11", "12 r12"]


async def test_what_became_of_a_message_is_told_to_its_page_and_few_sentences_are_kept() -> None:
    here = Journal(OPENED)
    pieces = here.live.stream_session("s", 1)

    async def told() -> bytes:
        async for piece in pieces:
            if piece.startswith(b"event: told"):
                return piece
        return b""

    looking = asyncio.create_task(told())
    await asyncio.sleep(0.05)
    here.live.show_message("s", "It was not answered.")
    assert b"data: It was not answered." in await looking
    assert here.live.message_for("s") == "It was not answered."
    for number in range(LIVE_SENTENCES):
        here.live.show_message(f"s{number}", "x")
    assert here.live.message_for("s") == ""


async def test_what_many_see_is_made_once_and_read_once() -> None:
    here = Journal(OPENED)
    observe = here.live(ORDER)
    looking = [asyncio.create_task(numbers(here.live.stream_session("s", 1), 6)) for _ in range(50)]
    await asyncio.sleep(0.05)
    for number in range(5):
        observe(EntryRecorded(said(f"n{number}")))
    assert await asyncio.gather(*looking) == [[f"{number + 2} n{number}" for number in range(5)]] * 50
    assert here.made == [2, 3, 4, 5, 6]
    assert here.reads == 1
    assert here.live.viewers == 0


async def test_a_session_that_runs_elsewhere_is_looked_at_now_and_then_however_many_look() -> None:
    here = Journal(OPENED)
    looking = [asyncio.create_task(numbers(here.live.stream_session("s", 1), 3)) for _ in range(20)]
    await asyncio.sleep(0.2)
    here.kept += [said("one"), said("two")]
    assert await asyncio.gather(*looking) == [["2 one", "3 two"]] * 20
    assert here.reads < 12


async def test_who_is_too_far_behind_loads_the_page_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.dashboard.live_updates.LIVE_BEHIND_BYTES", 40)
    here = Journal(OPENED, *(said(f"n{number}") for number in range(20)))
    pieces = here.live.stream_session("s", 1)
    async with aclosing(pieces):  # type: ignore[type-var]  # it is a generator
        assert await anext(pieces) == RELOAD


async def test_what_waits_in_the_socket_of_somebody_slow_is_little_and_nothing_is_lost() -> None:
    """He is told in pieces, the next of which is made when he has taken the last."""
    here = Journal(OPENED, *(said("x" * 3_000) for _ in range(100)))
    pieces = here.live.stream_session("s", 1)
    found: list[str] = []
    async with aclosing(pieces):  # type: ignore[type-var]  # it is a generator
        while len(found) < 100:
            piece = await anext(pieces)
            assert len(piece) < LIVE_PIECE_BYTES + 4_000
            assert f"id: {1 + len(found) + piece.count(b'<li>')}\n".encode() in piece
            found += re.findall(rb"data: <li>(\d+)", piece)
    assert [int(number) for number in found] == list(range(2, 102))


async def test_all_streams_together_hold_no_more_than_one_may_and_nothing_when_nobody_looks() -> None:
    here = Journal(OPENED, *(said("x" * 100_000) for _ in range(100)))
    looking = [here.live.stream_session(f"s{number}", 1) for number in range(5)]
    for pieces in looking:
        await anext(pieces)
    held = [sum(map(len, stream._pieces.values())) for stream in here.live._streams.values()]
    assert len(held) == 5
    assert LIVE_BEHIND_BYTES - 200_000 < sum(held) <= LIVE_BEHIND_BYTES
    assert here.live._shelf.weight == sum(held)
    for pieces in looking:
        await pieces.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert here.live._shelf.weight == 0


async def test_journals_are_read_a_few_at_a_time_however_many_sessions_are_looked_at() -> None:
    reading = most = 0

    async def read(_: str) -> Sequence[JournalEntry]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        await asyncio.sleep(0.01)
        reading -= 1
        return (OPENED, said("one"))

    live = LiveUpdates(read, lambda *_: "<li>2 one</li>")
    await asyncio.gather(*(numbers(live.stream_session(f"s{number}", 1), 2) for number in range(40)))
    assert most == LIVE_READS_AT_ONCE


async def test_silence_is_broken_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.dashboard.live_updates.LIVE_ALIVE_S", 0.05)
    here = Journal()
    pieces = here.live.stream_overview(lambda: "nothing")
    async with aclosing(pieces):  # type: ignore[type-var]  # it is a generator
        assert await anext(pieces) == b"event: runs\nid: 0\ndata: nothing\n\n"
        assert await anext(pieces) == KEEP_ALIVE


async def test_the_overview_is_made_once_for_all_and_again_when_something_happens() -> None:
    here, made = Journal(), list[int]()

    def page() -> str:
        made.append(len(here.live.runs))
        return f"{made[-1]} runs"

    async def look() -> list[bytes]:
        seen = []
        async for piece in here.live.stream_overview(page):
            if piece.startswith(b"event"):
                seen.append(piece)
            if b"data: 1 runs" in piece:
                break
        return seen

    looking = [asyncio.create_task(look()) for _ in range(30)]
    await asyncio.sleep(0.05)
    here.live(ORDER)
    found = await asyncio.gather(*looking)
    assert all(len(seen) == 2 for seen in found)
    assert made == [0, 1]


async def test_the_more_look_the_less_often_they_are_told() -> None:
    live = Journal().live
    assert live._pause_s() < LIVE_PAUSE_S  # nobody looks, and the pause is short in these tests
    live.viewers = 200
    assert live._pause_s() == 200 / LIVE_WRITES_PER_S


async def test_many_are_told_no_more_than_a_share_of_what_the_process_does_and_not_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs on a slow machine would lose more to those who look than on a quick one."""
    spent = [0.0]
    monkeypatch.setattr("hummingbird.dashboard.live_updates.time.process_time", lambda: spent[0])
    pace = BroadcastRate()
    assert pace.allows(200, 0.0)
    assert not pace.allows(200, LIVE_LATEST_S - 0.1)
    spent[0] += 200 * LIVE_WRITE_CPU_S / LIVE_SHARE + 0.001
    assert pace.allows(200, 0.0)
    assert not pace.allows(1, 0.0)
    assert pace.allows(1, LIVE_LATEST_S), "however little it does"
    here = Journal()
    here.live.viewers = LIVE_FEW
    assert all(here.live._may_write(LIVE_FEW, 0.0) for _ in range(100)), "few are told at once"
    here.live.viewers = LIVE_FEW + 1
    assert [here.live._may_write(11, 0.0) for _ in range(2)] == [True, False]


async def test_everybody_is_let_go_at_the_end() -> None:
    here = Journal(OPENED)
    here.live(ORDER)

    async def look(pieces: AsyncIterator[bytes]) -> int:
        return len([piece async for piece in pieces])

    looking = [
        asyncio.create_task(look(here.live.stream_session("s", 1))),
        asyncio.create_task(look(here.live.stream_overview(str))),
    ]
    await asyncio.sleep(0.05)
    here.live.close()
    async with asyncio.timeout(60):
        await asyncio.gather(*looking)
    assert here.live.viewers == 0
    assert here.live.closed
