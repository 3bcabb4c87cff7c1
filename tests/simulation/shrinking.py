"""Shorten a failing script: leave out what the failure does not need, until nothing more can be left out.

After a change the draws of the network fall differently, so a few other seeds are tried with each shorter script.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.script import EventKind, Script, ScriptEvent
from tests.simulation.simulation import Played, play

PLAIN = Script(seed=0, events=())
PLAINER = (
    "short_polls",
    "settle_s",
    "segment_bytes",
    "body_bytes",
    "tight",
    "internal",
    "projects",
    "reviews",
    "files",
    "answer_s",
)
SEEDS_TRIED = 3
PLAYS_AT_MOST = 600
_ID = re.compile(r"\b[0-9a-f]{6,}\b|\d+(\.\d+)?")


def kind_of(violation: str) -> str:
    """Return the violation without its numbers and ids, by which the same kind is recognised."""
    return _ID.sub("…", violation).split(":")[0]


def shrink(script: Script, player: Callable[[Script], Played] = play) -> Played:
    """Return the play of a script that fails in the same way and has as few events as possible."""
    best = player(script)
    assert best.violations, "The script does not fail."
    wanted, plays = kind_of(best.violations[0]), 0
    again = True
    while again:
        again = False
        for shorter in _shorten(best.script):
            for seed in range(best.script.seed, best.script.seed + SEEDS_TRIED):
                plays += 1
                if plays > PLAYS_AT_MOST:
                    return best
                played = player(replace(shorter, seed=seed))
                if played.violations and kind_of(played.violations[0]) == wanted:
                    best, again = played, True
                    break
            if again:
                break
    return best


def _shorten(script: Script) -> Iterator[Script]:
    """Yield simpler scripts, the boldest ones first."""
    events = script.events
    size = len(events) // 2
    while size > 1:
        for begin in range(0, len(events), size):
            yield replace(script, events=(*events[:begin], *events[begin + size :]))
        size //= 2
    for at in range(len(events)):
        yield replace(script, events=(*events[:at], *events[at + 1 :]))
    if script.jitter:
        yield replace(script, jitter=False)
    needs_disk = any(event.kind in (EventKind.POWER_CUT, EventKind.DISK_FULL) for event in events)
    for name in PLAINER:
        if getattr(script, name) != getattr(PLAIN, name) and not (name == "files" and needs_disk):
            yield replace(script, **{name: getattr(PLAIN, name)})
    needed = max([event.replica for event in events], default=1)
    for replicas in range(1, script.replicas):
        if replicas >= needed:
            yield replace(script, replicas=replicas)
    if script.merge_requests > 1 and not any(event.number for event in events):
        yield replace(script, merge_requests=1)
    for at, event in enumerate(events):
        if simpler := _simplify(event):
            yield replace(script, events=(*events[:at], simpler, *events[at + 1 :]))


def _simplify(event: ScriptEvent) -> ScriptEvent | None:
    if event.kind is EventKind.TROUBLE and event.count > 1:
        return replace(event, count=1)
    return None


def to_source(script: Script) -> str:
    """Return the script as Python, for a regression test."""
    rows = "".join(f"        {event!r},\n" for event in script.events)
    told = [f"seed={script.seed}", f"replicas={script.replicas}", f"merge_requests={script.merge_requests}"]
    told += [
        f"{name}={value!r}" for name in ("jitter", *PLAINER) if (value := getattr(script, name)) != getattr(PLAIN, name)
    ]
    return f"Script(\n    {', '.join(told)},\n    events=(\n{rows}    ),\n)"
