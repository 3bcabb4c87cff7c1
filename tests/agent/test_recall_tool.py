"""What was said before, here and in other sessions."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.tools.recall import RECALL_BYTES, RecallTool, _entry_text, search_entries, texts_around
from hummingbird.core.errors import ArgumentsInvalid, HummingbirdError, JournalUnwritable, SourceNotFound
from hummingbird.core.journal import (
    Compacted,
    Delegated,
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.protocols.sessions import IndexedText, SearchHit
from hummingbird.core.sessions import summarise_session, texts_from_entry
from hummingbird.storage.session_index import SqliteSessionIndex
from tests.agent.minds import Listener
from tests.core.entries import entries as any_entries
from tests.thoroughly import ALL

SHA = "3f1c9a7e0b"
NAMES = [
    "src/hummingbird/agent/loop.py:120",
    SHA.upper(),
    "tests/unit/test_x.py::TestA::test_b[1-ü]",
    "https://example.org/a?b=c#d",
    "ÜBERLAUF",
    "u\u0308berlauf",
    "打包失败",
    "STRASSE",
    "log line",
]
TALK: list[JournalEntry] = [
    UserSaid(text="Why does src/hummingbird/agent/loop.py:120 fail?", at=1_800_000_000.0),
    ModelAnswered(call_id="m", model="m", message=AssistantMessage(f"Commit {SHA} broke it: Überlauf in der Straße.")),
    ToolStarted(call_id="1", name="sandbox_exec", arguments='{"command":"see https://example.org/a?b=c#d"}'),
    ToolFinished(call_id="1", name="sandbox_exec", text="FAILED tests/unit/test_x.py::TestA::test_b[1-ü]\n打包失败了"),
    UserSaid(text="And the\nlog line?"),
]


def here(*entries: JournalEntry) -> RecallTool:
    return RecallTool(None, lambda: entries)


async def search(recall: RecallTool, query: str, session_id: str = "session-1") -> str:
    return await Listener(session_id).call(recall, {"action": "search", "query": query})


async def read(recall: RecallTool, number: int, **given: Any) -> str:
    return await Listener().call(recall, {"action": "read", "number": number, **given})


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_found_in_this_session_as_it_is_written_in_any_case(name: str) -> None:
    """Paths, commits, tests, addresses, umlauts of both kinds, scripts without spaces."""
    told = await search(here(*TALK), name)
    assert "session current:\n  #" in told
    assert '<untrusted tool="recall"' in told


async def test_what_a_compaction_took_out_of_the_view_is_found_and_read() -> None:
    """The journal keeps everything."""
    entries = [*TALK, Compacted(first=0, last=5, summary="Things were said.", since=1, until=5), UserSaid(text="go on")]
    assert "#4 tool: FAILED tests/unit" in await search(here(*entries), "TestA::test_b")
    told = await read(here(*entries), 4, before=1, after=1)
    assert told.startswith("[Session current, messages 3 to 5.]")
    assert "#4 tool:\nFAILED tests/unit/test_x.py::TestA::test_b[1-ü]\n打包失败了\n#5 person: And the log line?" in told


async def test_the_whole_query_comes_before_all_words_and_those_before_some_and_new_before_old() -> None:
    texts = ["red fox here", "fox that is red", "only a fox", "red fox again", "nothing"]
    found = search_entries([UserSaid(text=text) for text in texts], "red fox", 5)
    assert [place.message.number for place in found] == [4, 1, 2, 3]
    quoted = search_entries([UserSaid(text=text) for text in texts], '"is red" again', 5)
    assert [place.message.number for place in quoted] == [4, 2]


async def test_it_does_not_find_itself() -> None:
    """Its own calls hold what was looked for."""
    own: list[JournalEntry] = [
        ToolStarted(call_id="1", name="recall", arguments='{"query":"otter"}'),
        ToolFinished(call_id="1", name="recall", text="otter"),
    ]
    assert (await search(here(*own), "otter")).startswith("Nothing was found. Other sessions are not searched")
    asked, told = ToolStarted(call_id="1", name="recall", arguments='"otter"'), own[1]
    assert isinstance(told, ToolFinished)
    below = [Delegated(call_id="p", task=1001, entry=each) for each in (asked, told)]
    assert (await search(here(*below), "otter")).startswith("Nothing was found.")


async def test_what_a_sub_agent_called_is_found() -> None:
    began = ToolStarted(call_id="1", name="terminal", arguments='{"command":"feed otter"}')
    assert "feed otter" in await search(here(Delegated(call_id="p", task=1001, entry=began)), "otter")


async def test_a_long_message_is_read_in_pieces_and_nothing_of_it_is_out_of_reach() -> None:
    text = "".join(f"line {n} of it\n" for n in range(1000))
    recall, seen, offset = here(UserSaid(text=text), *TALK), "", 0
    while True:
        told = await read(recall, 1, offset=offset, after=0)
        assert len(told.encode()) < RECALL_BYTES + 600
        body = told.split("#1 person:\n", 1)[1]
        piece, _, rest = body.partition("\n[characters ")
        if not rest:
            seen += body.rpartition("\n</untrusted")[0]
            break
        seen, offset = seen + piece, int(rest.split("offset ")[1].split("]")[0])
    assert seen == text


async def test_one_goes_further_by_another_number_and_answers_stay_short() -> None:
    recall = here(*[UserSaid(text=f"message {n} " + "word " * 2000) for n in range(1, 101)])
    told = await read(recall, 50)
    assert [f"#{n} person" in told for n in (44, 45, 50, 55, 56)] == [False, True, True, True, False]
    told = await read(recall, 55, before=20, after=20)
    assert len(told.encode()) < RECALL_BYTES + 600
    assert "#55 person" in told
    assert "message 100 " in await read(recall, 100)
    for number in (101, 10**12):
        with pytest.raises(SourceNotFound, match=f"no message {number} in session current"):
            await read(recall, number)


async def test_messages_of_a_history_that_was_brought_along_have_numbers_of_their_own() -> None:
    """One entry of the journal holds all of them."""
    chat = tuple({"role": role, "content": f"{role} {n}"} for n in range(30) for role in ("user", "assistant"))
    recall = here(HistoryImported(messages=chat), UserSaid(text="now"))
    assert "#1.40 person: user 20" in await search(recall, "user 20")
    told = await read(recall, 1, part=40, before=1, after=1)
    assert "#1.39 model: assistant 19\n#1.40 person:\nuser 20\n#1.41 model: assistant 20" in told


async def test_secrets_are_masked_before_anything_is_cut() -> None:
    """Half a secret could not be recognised."""
    secret = "correct-horse-battery"
    recall = RecallTool(None, lambda: [UserSaid(text="x" * 2990 + secret + " needle")], Secrets([secret]))
    for told in (await search(recall, "needle"), await read(recall, 1), await read(recall, 1, offset=2990)):
        assert "horse" not in told
        assert "correct-h" not in told


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action": "search"},
        {"action": "search", "query": " \n"},
        {"action": "read"},
        {"action": "read", "number": 0},
        {"action": "read", "number": 1, "before": 21},
    ],
)
async def test_what_makes_no_sense_is_said(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsInvalid):
        await Listener().call(here(*TALK), arguments)


@pytest.mark.parametrize("query", ['"', '""', "\ud800", "\0", "*", "a" * 100_000, "NEAR( OR", "word " * 5000])
async def test_any_query_will_do(query: str) -> None:
    """Bad input."""
    assert await search(here(*TALK), query)


class Broken:
    """An index that fails as told; None: it never answers."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    async def search(self, query: str, limit: int = 1, project: str = "") -> Sequence[SearchHit]:
        if self._error is None:
            await asyncio.sleep(60)
        assert self._error is not None
        raise self._error

    async def texts_around(
        self, session_id: str, number: int, before: int, after: int, part: int = 0
    ) -> Sequence[IndexedText]:
        await self.search("")
        return ()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            JournalUnwritable("The index is locked; end the other process."),
            "The index is locked; end the other process.",
        ),
        (OSError(5, "Input/output error"), "it is broken."),
        (None, "the index did not answer within 0.05 s."),
    ],
)
async def test_an_index_in_trouble_is_told_and_this_session_is_still_searched(
    error: HummingbirdError | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input."""
    monkeypatch.setattr("hummingbird.agent.tools.recall.RECALL_INDEX_S", 0.05)
    recall = RecallTool(Broken(error), lambda: TALK)
    told = await search(recall, SHA)
    assert f"Other sessions could not be searched: {why}]" in told
    assert f"#2 model: Commit {SHA}" in told
    assert (await search(recall, "unheard of")).startswith("Nothing was found. Other sessions could not")
    with pytest.raises(SourceNotFound, match="could not be read"):
        await read(recall, 1, session="other")


async def indexed(path: Path, sessions: dict[str, list[JournalEntry]]) -> SqliteSessionIndex:
    index = SqliteSessionIndex(path / "index.sqlite", str, pytest.fail)
    for name, entries in sessions.items():
        await index.put(name, "1", summarise_session(entries, name), entries)
    return index


async def test_other_sessions_are_found_read_and_walked_through(tmp_path: Path) -> None:
    """With the real index; this session's own copy in it is not shown twice."""
    talk: list[JournalEntry] = [UserSaid(text=f"said {n} about the otter") for n in range(30)]
    sessions = {f"s{n}": [UserSaid(text=f"title {n}"), *talk] for n in range(8)}
    index = await indexed(tmp_path, {**sessions, "session-1": talk})
    recall = RecallTool(index, lambda: talk)
    told = await search(recall, "otter")
    assert told.count("session s") == 5
    assert "session session-1" not in told
    assert told.count("session current:") == 1
    assert len(told.encode()) < RECALL_BYTES + 600
    told = await read(recall, 12, session="s3")
    assert "#7 person: said 5" in told
    assert "#12 person:\nsaid 10 about the otter\n#13" in told
    assert "#17 person: said 15" in told
    assert "#18 " not in told
    with pytest.raises(SourceNotFound, match="no message 3 in session s99"):
        await read(recall, 3, session="s99")
    with pytest.raises(SourceNotFound, match="is not usable"):
        await read(recall, 3, session="../up")


@given(st.lists(any_entries, max_size=6))
def test_what_is_searched_is_what_was_said(entries: list[JournalEntry]) -> None:
    """The quick way over an entry finds the same letters as the slow one."""
    for entry in entries:
        assert all(text in _entry_text(entry) for _, text in texts_from_entry(entry))


@pytest.mark.thorough
@given(st.lists(any_entries, max_size=8), st.integers(1, 8), st.integers(0, 3), st.integers(0, 3))
def test_any_window_is_a_part_of_what_was_said(
    entries: list[JournalEntry], number: int, before: int, after: int
) -> None:
    everything = texts_around(entries, 1, 0, 0, 1000)
    window = texts_around(entries, number, 0, before, after)
    place = next((n for n, said in enumerate(everything) if said.number >= number), len(everything))
    expected = everything[max(0, place - before) : place + after + 1] if number <= len(entries) else []
    assert window == expected


def test_many_entries_are_searched() -> None:
    entries: list[JournalEntry] = []
    for n in range(25_000 if ALL else 800):
        entries += [
            UserSaid(text=f"look at job {n}, it failed with Überlauf in tests/test_{n}.py::test_x"),
            ModelAnswered(call_id="c", model="m", message=AssistantMessage("I will read the log of it. " * 5)),
            ToolStarted(call_id=f"t{n}", name="sandbox_exec", arguments='{"command":"grep -n x"}'),
            ToolFinished(call_id=f"t{n}", name="sandbox_exec", text="a line of output of a command\n" * 40),
        ]
    found = search_entries(entries, "test_777.py::TEST_X", 5, "recall")
    assert found[0].message.number == 777 * 4 + 1
