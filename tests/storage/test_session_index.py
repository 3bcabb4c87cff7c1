"""What the index over sessions holds and finds, on real files."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hummingbird.core.errors import UsageError
from hummingbird.core.journal import HistoryImported, JournalEntry, ToolFinished, ToolStarted, UserSaid
from hummingbird.core.protocols.sessions import DailyCost, SessionIndex
from hummingbird.core.sessions import (
    INDEXED_CHARS,
    SEARCH_HITS,
    SEARCH_LOOKED_AT,
    SEARCH_PASSED,
    SEARCH_PER_SESSION,
    SEARCH_RANKED,
    SEARCH_WORDS,
    SNIPPET_TOKENS,
    SessionSummary,
    Speaker,
    summarise_session,
)
from hummingbird.storage.session_index import SqliteSessionIndex, open_session_index
from tests.storage.indexed_sessions import NOON, answer, bare, ended, found, made, put, session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "index.sqlite"


@pytest.fixture
def index(path: Path) -> SqliteSessionIndex:
    return made(path)


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def whole(path: Path) -> bool:
    """Whether words and texts agree with each other, as SQLite itself sees it."""
    rows(path, "INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    return rows(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_hit_names_session_entry_time_and_speaker_and_marks_the_words(index: SessionIndex) -> None:
    entries = [*session("one", "why does it fail?"), answer("The parser of Brücken dies.", NOON + 9)]
    await put(index, "one", entries)
    (hit,) = await index.search("PARSER bruck")
    assert (hit.summary, hit.number, hit.part, hit.at, hit.who) == (
        summarise_session(entries),
        4,
        0,
        NOON + 9,
        Speaker.MODEL,
    )
    assert bare(hit) == "The [parser] of [Brücken] dies."


async def test_everybodys_words_are_found_and_thoughts_are_not(index: SessionIndex) -> None:
    entries: list[JournalEntry] = [
        *session("one", "asked"),
        answer("answered"),
        ToolStarted(call_id="a", name="sandbox_exec", arguments='{"command": "pytest tests/unit"}'),
        ToolFinished(call_id="a", name="sandbox_exec", text="2 failed"),
        ended("concluded"),
        HistoryImported(messages=({"role": "user", "content": "earlier"}, {"role": "assistant", "content": "then"})),
    ]
    await put(index, "one", entries)
    words = ("asked", "answered", "sandbox_exec", "pytest", "failed", "concluded", "earlier", "then", "reasoning")
    hits = {word: [(hit.number, hit.part, hit.who.value) for hit in await index.search(word)] for word in words}
    assert hits == {
        "asked": [(3, 0, "person")],
        "answered": [(4, 0, "model")],
        "sandbox_exec": [(5, 0, "tool")],
        "pytest": [(5, 0, "tool")],
        "failed": [(6, 0, "tool")],
        "concluded": [(7, 0, "run")],
        "earlier": [(8, 0, "person")],
        "then": [(8, 1, "model")],
        "reasoning": [],
    }


async def test_a_session_that_grew_is_read_from_where_the_index_ends(path: Path) -> None:
    """Whatever is read is masked: a text once, and once more whenever it is what was said last."""
    masked: list[str] = []

    def mask(text: str) -> str:
        masked.append(text)
        return text

    index = open_session_index(path, mask, pytest.fail)
    entries = session("one", "the title", "first", "second")
    await put(index, "one", entries, "a")
    grown = [*entries, answer("third")]
    await put(index, "one", grown, "b")
    await put(index, "one", grown, "c")
    assert [masked.count(text) for text in ("first", "second", "third")] == [1, 2, 3]
    assert await index.stamps() == {"one": "c"}
    assert [len(await index.search(word)) for word in ("first", "second", "third")] == [1, 1, 1]
    assert whole(path)


async def test_a_session_that_was_begun_anew_takes_the_place_of_the_old_one(index: SessionIndex, path: Path) -> None:
    """With fewer entries, and with more of them; and one that goes on differently than it was seen."""
    await put(index, "one", session("one", "first", "second", "third"))
    await put(index, "one", session("one", "other", at=NOON + 100), "b")
    assert (await found(index, "first"), await found(index, "other")) == ([], ["one"])
    await put(index, "one", session("one", "another", "again", "longer", at=NOON + 200), "c")
    assert (await found(index, "other"), await found(index, "longer")) == ([], ["one"])
    await put(index, "one", session("one", "another", "again", "departed", at=NOON + 200), "d")
    assert (await found(index, "longer"), await found(index, "departed")) == ([], ["one"])
    assert rows(path, "SELECT count(*) FROM texts") == [(3,)]
    assert whole(path)


async def test_what_somebody_saw_earlier_changes_nothing(index: SessionIndex) -> None:
    entries = session("one", "first", "second", project="group/one")
    await put(index, "one", entries, "new")
    for length in (0, 1, 2, 4):
        await put(index, "one", entries[:length], "old")
        expected = {"one": "old"} if length == 0 else {"one": "new"}
        assert (await index.stamps(), len(await index.search("second"))) == (expected, 0 if length == 0 else 1)
        await put(index, "one", entries, "new")


async def test_a_session_whose_project_became_known_is_found_in_it(index: SessionIndex) -> None:
    entries = session("one", project="Group/Project")
    await put(index, "one", [entries[0], entries[1], UserSaid(text="first")])
    await put(index, "one", [entries[0], entries[1], UserSaid(text="first"), entries[2]])
    assert await found(index, "first", "group/project") == ["one"]


async def test_forgotten_sessions_leave_no_words(index: SessionIndex, path: Path) -> None:
    for name in ("one", "two", "three"):
        await put(index, name, session(name, "shared words"))
    await index.forget("one")
    await index.forget("never-seen")
    assert sorted(await found(index, "shared")) == ["three", "two"]
    assert set(await index.stamps()) == {"two", "three"}
    assert whole(path)
    await index.clear()
    assert (await index.stamps(), await found(index, "shared"), await index.list_sessions(9)) == ({}, [], [])
    await put(index, "one", session("one", "shared words"))
    assert await found(index, "shared") == ["one"]
    assert whole(path)


async def test_lists_come_last_changed_first_by_project_and_by_their_words(index: SessionIndex) -> None:
    await put(index, "old", session("old", "Ärger im Parser", at=NOON))
    await put(index, "new", session("new", "hello", project="group/one", at=NOON + 50))
    await put(index, "mid", session("mid", "hello", project="group/two", at=NOON + 20))

    async def listed(limit: int = 9, project: str = "", text: str = "") -> list[str]:
        return [one.session_id for one in await index.list_sessions(limit, project, text)]

    assert await listed() == ["new", "mid", "old"]
    assert (await listed(2), await listed(-1), await listed(10**30)) == (["new", "mid"], [], ["new", "mid", "old"])
    assert (await listed(project="Group/Two"), await listed(project="group")) == (["mid"], [])
    assert (await listed(text="ärger"), await listed(text="ONE"), await listed(text="%")) == (["old"], ["new"], [])


async def test_days_are_summed_up_over_all_sessions_that_began_on_them(index: SessionIndex) -> None:
    """However many there are, and whatever stands in a summary."""
    day = datetime.fromtimestamp(NOON, UTC).date()
    for number in range(7):
        began = NOON + number // 5 * 86_400
        one = SessionSummary(
            f"s{number}", began_at=began, changed_at=began, usd=0.5, tokens=100, cached=25, unpriced=number % 2
        )
        await index.put(one.session_id, "1", one, session(one.session_id, "hello"))
    odd = SessionSummary("odd", began_at=1e300, changed_at=1e300, usd=9.0)
    await index.put("odd", "1", odd, session("odd", "hello"))
    first, second = DailyCost(day, 5, 2.5, 2, 500, 125), DailyCost(day + timedelta(days=1), 2, 1.0, 1, 200, 50)
    assert await index.daily_costs(day) == [first, second]
    assert await index.daily_costs(day + timedelta(days=1)) == [second]


async def test_a_search_in_a_project_finds_only_its_sessions(index: SessionIndex) -> None:
    """Project names are not words of a search, not even as the index writes them."""
    for number in range(4):
        await put(index, f"s{number}", session(f"s{number}", "timeout", project=f"group/p{number % 2}"))
    await put(index, "none", session("none", "timeout"))
    assert sorted(await found(index, "timeout", "GROUP/p1")) == ["s1", "s3"]
    assert len(await found(index, "timeout")) == 5
    assert await found(index, "timeout", "group/p3") == []


async def test_the_best_comes_first_and_of_equals_the_newest(index: SessionIndex) -> None:
    await put(
        index, "newer", session("newer", "a cache is mentioned once, among a great many of other words", at=NOON + 9)
    )
    await put(index, "much", session("much", "cache cache cache", at=NOON))
    for name, at in (("mid", 5), ("late", 7), ("early", 3)):
        await put(index, name, session(name, "the same cache", at=NOON + at))
    assert await found(index, "cache") == ["much", "late", "mid", "early", "newer"]


async def test_a_session_shows_what_was_said_twice_once_and_never_fills_the_list(index: SessionIndex) -> None:
    entries = [*session("loud", *(f"noise {'again ' * number}" for number in range(1, 40)))]
    await put(index, "loud", entries)
    await put(index, "twice", [*session("twice"), answer("a little noise"), ended("a little noise")])
    hits = await found(index, "noise")
    assert (hits.count("loud"), hits.count("twice")) == (SEARCH_PER_SESSION, 1)


async def test_of_very_many_texts_those_of_the_newest_sessions_are_compared(index: SessionIndex) -> None:
    """Otherwise a word that is everywhere would take too long."""
    await put(index, "best", session("best", "common common common"))
    for number in range(SEARCH_HITS):
        entries = session(f"s{number}", *(f"common but longer {word}" for word in range(SEARCH_RANKED // SEARCH_HITS)))
        await put(index, f"s{number}", entries)
    assert "best" not in await found(index, "common")
    assert await found(index, '"common common"') == ["best"]


@pytest.mark.parametrize("passed", [SEARCH_PASSED, 5], ids=["passed-over-one-by-one", "begun-anew-behind-it"])
async def test_a_very_long_session_hides_no_other(
    passed: int, index: SessionIndex, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even two of them; one goes on after others were put."""
    monkeypatch.setattr("hummingbird.storage.session_index.SEARCH_PASSED", passed)
    words = [f"common {'filling ' * (number % 7)}" for number in range(SEARCH_LOOKED_AT + 10)]
    for number in range(SEARCH_HITS):
        await put(index, f"s{number}", session(f"s{number}", "a common word"))
    await put(index, "long", session("long", *words[:100]))
    await put(index, "last", session("last", *words))
    await put(index, "long", session("long", *words))
    hits = await found(index, "common")
    assert len(hits) == SEARCH_HITS
    assert (hits.count("long"), hits.count("last")) == (SEARCH_PER_SESSION, SEARCH_PER_SESSION)
    assert len({hit for hit in hits if hit.startswith("s")}) == SEARCH_HITS - 2 * SEARCH_PER_SESSION
    assert whole(path)


async def test_of_a_session_beyond_all_measure_the_beginning_is_found(
    index: SessionIndex, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it takes no room from the one after it."""
    monkeypatch.setattr("hummingbird.storage.session_index._TEXTS_BITS", 3)
    await put(index, "long", session("long", *(f"word{number}" for number in range(6))))
    await put(index, "other", session("other", "neighbour"))
    await put(index, "long", session("long", *(f"word{number}" for number in range(20))))
    texts = [one.text for one in await index.texts_around("long", 1, 0, 99)]
    assert texts == [f"word{number}" for number in range(8)]
    assert await found(index, "neighbour") == ["other"]
    assert whole(path)


async def test_a_search_has_no_more_hits_than_it_may(index: SessionIndex) -> None:
    for number in range(SEARCH_HITS + 5):
        await put(index, f"s{number}", session(f"s{number}", "word"))
    lengths = [len(await index.search("word", limit)) for limit in (-1, 0, 3, 10**30)]
    assert lengths == [0, 0, 3, SEARCH_HITS]


async def test_neighbours_come_in_the_order_of_the_journal(index: SessionIndex) -> None:
    history = ({"role": "user", "content": "zero"}, {"role": "assistant", "content": "one"})
    entries = [
        *session("one"),
        HistoryImported(messages=history),
        *session("x", "two", "three")[2:],
        answer("vier四五"),
    ]
    await put(index, "one", entries)
    await put(index, "other", session("other", "noise"))

    async def around(number: int, before: int, after: int, part: int = 0) -> list[str]:
        return [one.text for one in await index.texts_around("one", number, before, after, part)]

    assert await around(4, 1, 1) == ["one", "two", "three"]
    assert await around(3, 5, 1, part=1) == ["zero", "one", "two"]
    assert await around(6, 1, 9) == ["three", "vier四五"]
    assert (await around(6, -1, -1), await around(10**30, 1, 0)) == (["vier四五"], ["vier四五"])
    assert list(await index.texts_around("nobody", 1, 1, 1)) == []
    (last,) = await index.texts_around("one", 6, 0, 0)
    assert (last.number, last.part, last.at, last.who) == (6, 0, NOON, Speaker.MODEL)


@pytest.mark.thorough
async def test_of_a_very_long_text_both_ends_are_found(index: SessionIndex) -> None:
    text = "beginning " + "x " * INDEXED_CHARS + "middle " + "x " * INDEXED_CHARS + "ending"
    await put(index, "one", session("one", text))
    assert [len(await index.search(word)) for word in ("beginning", "middle", "ending")] == [1, 0, 1]
    (kept,) = await index.texts_around("one", 3, 0, 0)
    assert INDEXED_CHARS <= len(kept.text) <= INDEXED_CHARS + 3
    (hit,) = await index.search("ending")
    assert len(hit.snippet.split()) <= SNIPPET_TOKENS + 2


@pytest.mark.parametrize("name", ["", "a/b", "ü", "\ud800", "x" * 1_000])
async def test_an_id_that_is_none_is_refused(index: SessionIndex, name: str) -> None:
    with pytest.raises(UsageError):
        await put(index, name, session("one", "word"))
    with pytest.raises(UsageError):
        await index.forget(name)
    with pytest.raises(UsageError):
        await index.texts_around(name, 1, 1, 1)


def test_the_bounds_of_a_search_fit_each_other() -> None:
    assert 0 < SEARCH_PER_SESSION < SEARCH_HITS < SEARCH_RANKED < SEARCH_LOOKED_AT < SEARCH_PASSED
    assert SNIPPET_TOKENS <= 64, "SQLite takes no more"
    assert SEARCH_WORDS >= 1
