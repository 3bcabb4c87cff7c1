"""docs/crashes.md: every point at which a service was killed, and what came of it. Written by tests.crash.every; the
tests take their samples from it."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.crash.points import AFTER, BEFORE, KINDS

FILE = Path(__file__).parents[2] / "docs" / "crashes.md"
_POINT = re.compile(r"(?P<kind>\w+) (?P<call>.+) (?P<when>before|after)")
_ROW = re.compile(r"\| `(?P<call>[^`]+)` \| (?P<before>[^|]*) \| (?P<after>[^|]*) \|")
_WRITE = re.compile(r"forge (POST|PUT|DELETE) .* after|model .* after|queue send \w+ order.* after")
# what goes on beside the run: how often it is done depends on how quick everything is
_BESIDE = re.compile(
    r"queue (receive|postpone)|store \S+ archive|store \w*flow|store swap|sandbox (stream_)?exec (find|tar)"
)
ABOUT = """# Killed anywhere

Written by `make crash`. A failed pipeline is analysed and a developer asks back: placeholder, a command that writes a
file, a log from GitLab, result; reply, a command that reads the file, second result. The service is a process of its
own that kills itself with SIGKILL at one point of that, and another process takes over: with SQLite and local files in
the same folders, with SQS and S3 in a home of its own, as on another host. Each row below is one call, or one entry of
the journal, and says what the second process did after a kill right before it and right after it. What goes on beside
the run (checkpoints, signs of life) does not come in the same order every time, so such rows say what happened once.

After each of them there were one placeholder, one result for the event and one for the reply, and nothing else; no
event was lost and no dead letter left; no answer that was written down was asked for again, and a request whose answer
nobody could write down stands in the session's ledger as lost; a command that had begun was not run again; the
provider's stand-in, which is strict, took every request. Events are sent again only where nobody had answered GitLab.

`make test` tries a sample of these.
"""


def is_beside(point: str) -> bool:
    return bool(_BESIDE.match(point))


def sample(points: Sequence[str], most: int) -> list[str]:
    """All that come right after something was written elsewhere, and of the others every so-manieth."""
    writes = [point for point in points if _WRITE.fullmatch(point)]
    others = [point for point in points if point not in writes]
    step = -(-len(others) // max(1, most - len(writes)))
    chosen = {*writes, *others[::step]}
    return [point for point in points if point in chosen]


def points_of(title: str) -> list[str]:
    """Those of one backend, kind by kind; none of one that is not in the table."""
    found, kind, wanted = [], "", False
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else ():
        if line.startswith("## "):
            wanted = line == f"## {title}"
        elif line.startswith("### "):
            kind = line.removeprefix("### ").lower()
        elif wanted and (row := _ROW.fullmatch(line)):
            found += [f"{kind} {row['call']} {when}" for when in (BEFORE, AFTER) if row[when].strip()]
    return found


def document(outcomes: Mapping[str, Mapping[str, str]]) -> str:
    """By backend and point, in the order in which they are reached."""
    parts = [ABOUT, *(part for title, of in outcomes.items() for part in _backend(title, of))]
    return "\n".join(parts)


def _backend(title: str, outcomes: Mapping[str, str]) -> Iterator[str]:
    yield f"## {title}\n"
    counted = Counter(_kind(point) for point in outcomes)
    told = ", ".join(f"{number} {kind}" for kind, number in counted.most_common())
    yield f"{len(outcomes)} points: {told}.\n"
    words = Counter(outcomes.values())
    yield "\n".join(["| times | the second process |", "|---|---|"])
    yield "\n".join(f"| {number} | {text} |" for text, number in words.most_common()) + "\n"
    for kind in KINDS:
        calls = _calls(kind, outcomes)
        if calls:
            yield f"### {kind.capitalize()}\n"
            yield "\n".join(["| call | killed before it | killed after it |", "|---|---|---|"])
            yield "\n".join(f"| `{call}` | {before} | {after} |" for call, (before, after) in calls.items()) + "\n"


def _calls(kind: str, outcomes: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for point, text in outcomes.items():
        if (parts := _POINT.fullmatch(point)) and parts["kind"] == kind:
            before, after = found.get(parts["call"], ("", ""))
            found[parts["call"]] = (text, after) if parts["when"] == BEFORE else (before, text)
    return found


def _kind(point: str) -> str:
    return point.split(maxsplit=1)[0]
