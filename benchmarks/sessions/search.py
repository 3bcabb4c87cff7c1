"""What a search costs over very many sessions: `python -m benchmarks.sessions.search [--quick]`.

Each number is a whole call, with its thread and the opening of the file. The ratio is to a plain scan (`LIKE`) of the
same texts for the longest word of the query, which neither ranks nor marks. Words are as frequent as in life: the most
frequent one is in most of the texts, nearly all are rare. Each text names a file and a commit, harder than in life.
"""

import argparse
import asyncio
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path

from hummingbird.core.journal import (
    JournalEntry,
    MessageSource,
    ModelAnswered,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.sessions import summarise_session, texts_from_entry
from hummingbird.storage.session_index import SqliteSessionIndex, open_session_index

NOW = 1_794_744_000.0
SESSIONS, SESSIONS_QUICK = 10_000, 200
REPEATS, REPEATS_QUICK = 5, 1
SCANS, SCANS_QUICK = 3, 1  # they are slow and all alike
TURNS = 5  # with the beginning and the question: twelve entries that say something
PROJECTS = 20
LONG = 200
LETTERS = "aeioubcdfglmnprst"


class Writing:
    """Texts of the usual lengths out of words of the usual frequencies."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.words = ["".join(self.dice.choices(LETTERS, k=self.dice.randint(3, 10))) for _ in range(20_000)]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        self.commits: list[str] = []
        self.files: list[str] = []

    def text(self) -> str:
        length = min(2_000, int(self.dice.lognormvariate(3.9, 1.0)))
        return " ".join(
            (*self.dice.choices(self.words, cum_weights=self._weights, k=length), self._file(), self._commit())
        )

    def _file(self) -> str:
        one, two, three = self.dice.choices(self.words, k=3)
        self.files.append(f"src/{one}/{two}_{three}.py:{self.dice.randint(1, 900)}")
        return self.files[-1]

    def _commit(self) -> str:
        self.commits.append(f"{self.dice.getrandbits(160):040x}")
        return self.commits[-1]

    def session(self, number: int) -> list[JournalEntry]:
        at, name = NOW + 60 * number, f"session-{number}"
        order = f'{{"workflow": "review", "project": "group/project-{number % PROJECTS}", "mr_iid": {number}}}'
        entries: list[JournalEntry] = [
            SessionOpened(session_id=name, system="", format=1, at=at),
            RunStarted(run_id=name, model="vendor:model", at=at),
            UserSaid(text=order, source=MessageSource.ORDER, at=at),
            UserSaid(text=self.text(), at=at),
        ]
        for turn in range(TURNS):
            call = f"{turn}"
            if turn % 2:
                entries.append(ModelAnswered(call_id=call, model="m", message=AssistantMessage(self.text()), at=at))
            else:
                entries.append(ToolStarted(call_id=call, name="sandbox_exec", arguments=self.text(), at=at))
            entries.append(ToolFinished(call_id=call, name="sandbox_exec", text=self.text(), at=at))
        return entries


def queries(writing: Writing) -> list[str]:
    """Fifty of all sorts: frequent and rare words, several, beginnings, phrases, files, commits, what finds nothing."""
    dice, words = random.Random(11), writing.words
    files, commits = writing.files, writing.commits
    return [
        *words[:5],
        *(words[rank] for rank in (50, 500, 1_000, 5_000, 15_000)),
        *(f"{words[one]} {words[one + 7]}" for one in range(0, 50, 10)),
        *(" ".join(dice.sample(words[:200], 4)) for _ in range(5)),
        *(" ".join(dice.sample(words, 3)) for _ in range(5)),
        *(words[rank][:3] for rank in range(5)),
        *dice.sample(files, 5),
        *(file.split("/")[-1].split(".")[0] for file in dice.sample(files, 5)),
        *(commit[:8] for commit in dice.sample(commits, 5)),
        f'"{words[0]} {words[1]}"',
        f"{words[0]} {words[1]} thereisnosuchword",
        " ".join(words[:32]),
        " ".join(dice.choices(words, k=100_000)),
        "thereisnosuchword",
    ]


def report(*, quick: bool) -> None:
    writing = Writing(3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.sqlite"
        index = open_session_index(path, Secrets(["a value that nobody says"]).mask, print)
        began = time.perf_counter()
        sessions = SESSIONS_QUICK if quick else SESSIONS
        size = asyncio.run(_fill(index, writing, sessions))
        filling = time.perf_counter() - began
        asked = queries(writing)
        took = asyncio.run(_searched(index, asked, REPEATS_QUICK if quick else REPEATS))
        scans = _scanned(path, asked[: SCANS_QUICK if quick else SCANS])
        _print(sessions, took, scans, _size(path) / size, filling / sessions * 1_000)


def _print(sessions: int, took: list[float], scans: list[float], size: float, putting: float) -> None:
    ordered, scan = sorted(took), min(scans)
    print("## Sessions: a search beside a plain scan of the same texts\n")
    print("| sessions | p50 ms | p99 ms | p50 ÷ scan | p99 ÷ scan | file ÷ texts | put, ms a session |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    ratios = f"{p50 / scan:.3f}× | {p99 / scan:.3f}×"
    print(f"| {sessions:,} | {p50:.2f} | {p99:.2f} | {ratios} | {size:.2f}× | {putting:.2f} |\n", flush=True)


async def _fill(index: SqliteSessionIndex, writing: Writing, sessions: int) -> int:
    """How many characters of text there are. The last session is as long as many: it alone has as many texts with
    a frequent word as are compared."""
    size = 0
    for number in range(sessions):
        entries = writing.session(number)
        if number == sessions - 1:
            entries += [entry for more in range(LONG) for entry in writing.session(more)[3:]]
        size += sum(len(words.text) for entry in entries for words in texts_from_entry(entry))
        await index.put(f"session-{number}", "stamp", summarise_session(entries), entries)
    return size


async def _searched(index: SqliteSessionIndex, asked: list[str], repeats: int) -> list[float]:
    """The quickest of each query's repeats: what else the machine does meanwhile is not the index's."""
    return [min([await _timed_search(index, query) for _ in range(repeats)]) for query in asked]


async def _timed_search(index: SqliteSessionIndex, query: str) -> float:
    began = time.perf_counter()
    await index.search(query)
    return (time.perf_counter() - began) * 1_000


def _scanned(path: Path, asked: list[str]) -> list[float]:
    return [_timed(partial(_scan, path, max(query.split(), key=len))) for query in asked]


def _timed(deed: Callable[[], object]) -> float:
    began = time.perf_counter()
    deed()
    return (time.perf_counter() - began) * 1_000


def _scan(path: Path, word: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return len(connection.execute("SELECT id FROM texts WHERE text LIKE ?", (f"%{word}%",)).fetchall())
    finally:
        connection.close()


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.iterdir())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few sessions, one repeat: does it work at all?")
    report(quick=parser.parse_args().quick)
