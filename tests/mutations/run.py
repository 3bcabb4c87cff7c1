"""Breaks each invariant on purpose and looks whether a test turns red: `python -m tests.mutations.run` (make mutate).

    --only sandbox      the mutations of one invariant; may be given several times
    --jobs 2       so many at once, each in a room of its own
    --no-baseline  without running the same tests on the unbroken copy first

Ends with 0 if every mutation was caught, 1 if one survived, 2 if something could not be judged. A run with its baseline
renews the rows of docs/mutations.md that it judged.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.mutations.judging import Judged, Verdict, judged, ran, unproven
from tests.mutations.mutation import Mutation
from tests.mutations.room import ROOT, Room
from tests.mutations.table import INVARIANTS, TABLE

T = TypeVar("T")
U = TypeVar("U")
DOCUMENT = ROOT / "docs" / "mutations.md"
_HEAD = """\
# Mutations

For every invariant, walls are broken on purpose, one at a time, in a copy of the sources; the named tests are run on
that copy and one of them has to turn red. `make mutate` does all of them and writes this page; the table itself is
`tests/mutations/table.py`. Before that, the same tests are run on an unbroken copy and have to be green. A mutant that
cannot be imported, or tests that were skipped, count for nothing.

"""


def main(arguments: Sequence[str] | None = None, table: Sequence[Mutation] = TABLE, document: Path = DOCUMENT) -> int:
    wanted = _parsed(arguments)
    chosen = [each for each in table if not wanted.only or each.invariant in wanted.only]
    with tempfile.TemporaryDirectory(prefix="hummingbird-mutations-") as folder:
        rooms = [Room(Path(folder, str(number))) for number in range(min(wanted.jobs, len(chosen)))]
        faults = [] if wanted.no_baseline else _baseline(rooms, chosen)
        if faults:
            _say("Nothing can be concluded: unbroken, some tests are not green.", *faults)
            return 2
        found = _shared(rooms, chosen, _judged_aloud)
    _say("", _summary(found))
    if not wanted.no_baseline:
        document.write_text(page(table, renewed_rows(table, chosen, found, document)), encoding="utf-8")
    return _code(found)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.run", description="Breaks invariants on purpose.")
    parser.add_argument("--only", action="append", choices=INVARIANTS, help="the mutations of this invariant alone")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests unbroken first")
    return parser.parse_args(arguments)


def _baseline(rooms: Sequence[Room], chosen: Sequence[Mutation]) -> list[str]:
    tests = list(dict.fromkeys(test for mutation in chosen for test in mutation.tests))
    shares = [tests[start :: len(rooms)] for start in range(len(rooms))]
    shares = [share for share in shares if share]
    faults = _shared(rooms, shares, lambda room, share: unproven(ran(room, share, 600.0), share))
    _say(f"{len(tests)} tests on the unbroken copy: {'not all of them green' if any(faults) else 'green'}.")
    return [fault for each in faults for fault in each]


def _shared(rooms: Iterable[Room], work: Sequence[T], do: Callable[[Room, T], U]) -> list[U]:
    """Each piece in a room that is free; in the order of the pieces."""
    free: SimpleQueue[Room] = SimpleQueue()
    for room in rooms:
        free.put(room)

    def done(piece: T) -> U:
        room = free.get()
        try:
            return do(room, piece)
        finally:
            free.put(room)

    with ThreadPoolExecutor(free.qsize()) as pool:
        return list(pool.map(done, work))


def _judged_aloud(room: Room, mutation: Mutation) -> Judged:
    found = judged(room, mutation)
    lines = [f"{mutation.invariant:4}{found.verdict.value}, {found.seconds:.1f} s: {mutation.broken}"]
    lines += [f"      {text}" for text in (found.test, found.said) if text]
    _say(*lines)
    return found


def _summary(found: Sequence[Judged]) -> str:
    counts = {verdict.value: sum(each.verdict is verdict for each in found) for verdict in Verdict}
    return "; ".join(f"{count} {name}" for name, count in counts.items() if count)


def _code(found: Sequence[Judged]) -> int:
    if any(each.verdict is Verdict.SURVIVED for each in found):
        return 1
    return 0 if all(each.verdict.caught for each in found) else 2


def page(table: Sequence[Mutation], rows: Mapping[str, str]) -> str:
    """Return the page with the row of each mutation that was ever judged, in the order of the table."""
    head = ["| invariant | what is broken | where | outcome | red | s |", "|---|---|---|---|---|---|"]
    return _HEAD + "\n".join([*head, *(rows[_key(each)] for each in table if _key(each) in rows)]) + "\n"


def renewed_rows(
    table: Sequence[Mutation], chosen: Sequence[Mutation], found: Sequence[Judged], document: Path
) -> dict[str, str]:
    """Return the rows of the page by their first cells: those of this run, and the page's own for what was not run."""
    old = document.read_text(encoding="utf-8").splitlines() if document.exists() else []
    rows = {_key(each): line for each in table for line in old if line.startswith(_key(each))}
    return rows | {_key(mutation): _row(mutation, judged) for mutation, judged in zip(chosen, found, strict=True)}


def _key(mutation: Mutation) -> str:
    return f"| {mutation.invariant} | {mutation.broken} | `{mutation.file}` | "


def _row(mutation: Mutation, judged: Judged) -> str:
    name = judged.test.partition("[")[0]  # without its arguments, which may hold anything
    red = f"`{name.removeprefix('tests/')}`" if name else ""
    return f"{_key(mutation)}{judged.verdict.value} | {red} | {judged.seconds:.0f} |"


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
