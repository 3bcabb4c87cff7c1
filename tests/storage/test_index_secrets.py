"""No secret enters the index, in any spelling, not even for a moment: its files are read as bytes."""

import json
import sqlite3
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from hummingbird.core.journal import HistoryImported, JournalEntry, MessageSource, ToolFinished, ToolStarted, UserSaid
from hummingbird.core.masking import MASK, Secrets
from hummingbird.core.sessions import INDEXED_CHARS, SUMMARY_CHARS, summarise_session
from hummingbird.storage.session_index import open_session_index
from tests.storage.indexed_sessions import answer, ended, put, session

VALUE = "Pa55/word+w1th:signs"
WORDS = "Tr0ub4dor"
SHAPED = "glpat-" + "Zx9" * 7
SPELLINGS = {
    "as it is": VALUE,
    "Base64": b64encode(VALUE.encode()).decode(),
    "Base64 of more": b64encode(f"robot:{VALUE}".encode()).decode(),
    "address": quote(VALUE, safe=""),
    "hexadecimal": VALUE.encode().hex(),
    "shaped": SHAPED,
    "address with a password": f"https://robot:{WORDS}@example.com/x",
    "one word": WORDS,
}
SECRETS = Secrets([VALUE, WORDS])


def content(path: Path) -> bytes:
    """All bytes of all its files, in lower case, before and after the log went into the file."""
    files = list(path.parent.iterdir())
    assert any(file.name.endswith("-wal") and file.stat().st_size for file in files)
    before = b"".join(file.read_bytes() for file in files)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return (before + b"".join(file.read_bytes() for file in path.parent.iterdir())).lower()


def traces(secret: str) -> list[bytes]:
    """The whole, and the pieces of it that are words to the index."""
    pieces = "".join(sign if sign.isalnum() else " " for sign in secret).split()
    return [piece.lower().encode() for piece in [secret, *pieces] if len(piece) > 4 and piece not in HARMLESS]


HARMLESS = {"https", "robot", "example", "glpat"}


def everywhere(secret: str) -> list[JournalEntry]:
    """In all that is indexed."""
    history = {"role": "assistant", "content": f"h {secret}", "tool_calls": [call(secret)]}
    return [
        *session("one", f"{secret} is the first thing said", f"{secret}", f"neighbour {secret} neighbour"),
        UserSaid(
            text=json.dumps({"workflow": secret, "project": f"group/{secret}", "sha": secret}),
            source=MessageSource.ORDER,
        ),
        answer(f"answer {secret}"),
        ToolStarted(call_id="a", name="run", arguments=json.dumps({"command": f"curl {secret}"})),
        ToolFinished(call_id="a", name="run", text=f"200\n{secret}\n"),
        HistoryImported(messages=({"role": "user", "content": f"u {secret}"}, history)),
        ended(f"end {secret}"),
    ]


def call(secret: str) -> dict[str, object]:
    return {"id": "c", "type": "function", "function": {"name": "run", "arguments": json.dumps({"token": secret})}}


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_no_file_of_the_index_holds_a_secret(tmp_path: Path, spelling: str) -> None:
    secret, path = SPELLINGS[spelling], tmp_path / "index.sqlite"
    index = open_session_index(path, SECRETS.mask, pytest.fail)
    entries = everywhere(secret)
    await put(index, "one", entries[:4])
    await put(index, "one", entries)
    kept = content(path)
    assert [trace for trace in traces(secret) if trace in kept] == []
    assert b"neighbour" in kept
    assert MASK.encode() in kept
    shown = [
        *await index.list_sessions(9),
        *await index.search("neighbour"),
        *await index.texts_around("one", 1, 0, 99),
    ]
    assert [trace for trace in traces(secret) if trace.decode() in repr(shown).lower()] == []


async def test_the_same_files_hold_it_without_a_mask(tmp_path: Path) -> None:
    """So the test above can fail."""
    for spelling, secret in SPELLINGS.items():
        path = tmp_path / spelling / "index.sqlite"
        await put(index := open_session_index(path, str, pytest.fail), "one", everywhere(secret))
        kept = content(path)
        assert [trace for trace in traces(secret) if trace not in kept] == [], index


async def test_a_secret_is_masked_before_a_text_or_title_is_cut(tmp_path: Path) -> None:
    """Half of one would not be recognised."""
    path = tmp_path / "index.sqlite"
    index = open_session_index(path, SECRETS.mask, pytest.fail)
    half = INDEXED_CHARS // 2
    for number, start in enumerate(range(half - len(VALUE) - 2, half + 2)):
        text = "x" * start + " " + VALUE + " " + "x" * 3 * half
        await put(index, f"head-{number}", session("h", text))
        await put(index, f"tail-{number}", session("t", text[::-1].replace(VALUE[::-1], VALUE)))
    for number, start in enumerate(range(SUMMARY_CHARS - len(VALUE) - 2, SUMMARY_CHARS + 2)):
        entries = session(f"title-{number}", f"{'t' * start} {VALUE} and on it goes for long " + "y" * 99)
        await put(index, f"title-{number}", entries)
    kept = content(path)
    assert [VALUE[:5].lower().encode() in kept, VALUE[-5:].lower().encode() in kept] == [False, False]
    titles = [one.title for one in await index.list_sessions(999, text="title-")]
    assert max(map(len, titles)) <= SUMMARY_CHARS
    assert any(title.endswith(MASK) or MASK in title for title in titles)


async def test_a_project_whose_name_is_secret_can_be_asked_for(tmp_path: Path) -> None:
    index = open_session_index(tmp_path / "index.sqlite", SECRETS.mask, pytest.fail)
    entries = session("one", "hello", project=f"group/{WORDS}")
    await put(index, "one", entries)
    asked = summarise_session(entries).about.project
    assert [hit.summary.about.project for hit in await index.search("hello", project=asked)] == [f"group/{MASK}"]
    assert len(await index.list_sessions(9, asked)) == 1
