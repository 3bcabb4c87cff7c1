"""What happens in a simulated world, as a list of events: what people do, and what goes wrong.

A seed makes a script. The same script always plays alike, so a script that fails can be shortened and kept as a test.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.simulation.network import Fate


class EventKind(StrEnum):
    """What can happen."""

    FAIL_PIPELINE = "a pipeline fails"
    PASS_PIPELINE = "a pipeline succeeds"
    PUSH = "a push"
    REPLY = "a developer replies"
    COMMAND = "a developer asks for a run"
    OUTSIDER = "an outsider replies"
    RESOLVE = "a developer resolves the threads"
    EDIT = "a developer edits the last note"
    DELETE = "a developer deletes the last note"
    CLOSE = "the merge request is closed"
    RELOAD = "the configuration changes"
    CRASH = "crash"
    PAUSE = "pause"
    STOP = "gentle stop"
    SKEW = "clock skew"
    TROUBLE = "trouble"
    DUPLICATE_HOOK = "a webhook is sent twice"
    DELAY_HOOK = "a webhook is late"


PEOPLE = tuple(EventKind)[: tuple(EventKind).index(EventKind.CRASH)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEvent:
    """One event at a time. Which of the other fields count depends on the kind.

    `replica` 0 is any, `number` is that of a merge request. A crash and a pause come after `count` more steps of the
    process, or `count` steps after its next call of `service` and `within`. Trouble is for the next `count` calls
    within `seconds`.
    """

    at: float
    kind: EventKind
    replica: int = 0
    number: int = 0
    count: int = 0
    seconds: float = 0.0
    service: str = ""
    fate: Fate = Fate.FINE
    within: str = ""

    def describe(self) -> str:
        """Return the row of a table."""
        who = f"replica {self.replica}" if self.replica else "all replicas"
        after = f" after its next call of {self.service} {self.within}".rstrip() if self.service else ""
        match self.kind:
            case EventKind.CRASH:
                what = (
                    f"{who} dies {self.count} steps{after or ' later'}; its successor comes {self.seconds:.0f} s later"
                )
            case EventKind.PAUSE:
                what = f"{who} stands still for {self.seconds:.0f} s, {self.count} steps{after or ' later'}"
            case EventKind.STOP:
                what = f"{who} is stopped gently; its successor comes {self.seconds:.0f} s later"
            case EventKind.SKEW:
                what = f"the clock of {who} is {self.seconds:+.0f} s off"
            case EventKind.TROUBLE:
                calls = f"{self.service or 'any service'} {self.within}".strip()
                what = f"{who}: the next {self.count} calls of {calls} within {self.seconds:.0f} s: {self.fate}"
            case EventKind.DUPLICATE_HOOK | EventKind.DELAY_HOOK:
                what = f"{self.kind.value} ({self.seconds:.0f} s)"
            case _:
                what = f"!{self.number}: {self.kind.value}"
        return f"{self.at:8.1f} s | {what}"

    def __repr__(self) -> str:
        """Return what a test can hold."""
        parts = [f"at={self.at!r}", f"kind=EventKind.{self.kind.name}"]
        parts += [
            f"{name}={value!r}" for name in ("replica", "number", "count", "seconds") if (value := getattr(self, name))
        ]
        parts += [f"{name}={value!r}" for name in ("service", "within") if (value := getattr(self, name))]
        parts += [f"fate=Fate.{self.fate.name}"] if self.fate is not Fate.FINE else []
        return f"ScriptEvent({', '.join(parts)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A world and what happens in it. `seed` decides what the events leave open; without `jitter`, nothing is drawn."""

    seed: int
    events: tuple[ScriptEvent, ...]
    replicas: int = 2
    merge_requests: int = 1
    settle_s: int = 0
    short_polls: float = 0.0
    jitter: bool = True

    def table(self) -> str:
        """Return the script for people."""
        head = f"seed {self.seed}: {self.replicas} replicas, {self.merge_requests} merge requests"
        head += f", settle_seconds {self.settle_s}" if self.settle_s else ""
        head += f", {self.short_polls:.0%} of polls return too few messages" if self.short_polls else ""
        head += "" if self.jitter else ", all calls take the same time"
        return "\n".join([head, *(event.describe() for event in self.events)])


CALM_AT = 1800.0  # from then on nothing goes wrong any more
_POINTS = (
    ("gitlab", "GET discussions"),
    *[("gitlab", "POST placeholder"), ("gitlab", "POST result")] * 3,
    ("gitlab", "POST"),
    ("gitlab", "PUT"),
    ("gitlab", ""),
    ("bucket", "swap sessions tail.jsonl"),
    ("bucket", "put sessions"),
    ("bucket", ""),
    ("queue", "send_message"),
    ("queue", "delete_message"),
    ("queue", "receive_message"),
    ("queue", "change_message_visibility"),
    ("queue", ""),
    ("model", "answer"),
    ("source", ""),
    ("sandbox", ""),
)
_FATES = (*(fate for fate in Fate if fate is not Fate.FINE), Fate.ANSWER_LOST, Fate.ANSWER_LOST)


def make_script(seed: int) -> Script:
    """Return the script of a seed."""
    draw = random.Random(f"script {seed}")
    replicas, requests = draw.choice((1, 2, 2, 3, 3, 4, 5)), draw.choice((1, 1, 2, 3))
    acts = list(_draw_acts(draw, requests))
    busy = [act.at for act in acts]
    faults = [_draw_fault(draw, replicas, busy) for _ in range(draw.choice((0, 1, 2, 3, 4, 6, 8)))]
    return Script(
        seed=seed,
        events=tuple(sorted((*acts, *faults), key=lambda event: event.at)),
        replicas=replicas,
        merge_requests=requests,
        settle_s=draw.choice((0, 0, 0, 30)),
        short_polls=draw.choice((0.0, 0.0, 0.3)),
    )


def without_faults(script: Script) -> Script:
    """Return the same world with people, and with nothing that goes wrong."""
    acts = tuple(event for event in script.events if event.kind in PEOPLE)
    return replace(script, events=acts, short_polls=0.0)


def _draw_acts(draw: random.Random, requests: int) -> Sequence[ScriptEvent]:
    """Return what people do: at least one pipeline fails, and others follow soon, while the first is worked on."""
    at = draw.uniform(1, 30)
    acts = [ScriptEvent(at=round(at, 1), kind=EventKind.FAIL_PIPELINE, number=draw.randrange(requests))]
    kinds = dict.fromkeys(PEOPLE, 1)
    kinds |= {EventKind.FAIL_PIPELINE: 4, EventKind.REPLY: 5, EventKind.COMMAND: 2, EventKind.PUSH: 2}
    for _ in range(draw.choice((0, 1, 2, 3, 4, 6))):
        at += draw.choice((0.0, draw.uniform(0, 3), draw.uniform(0, 60), draw.uniform(0, 300)))
        (kind,) = draw.choices(list(kinds), list(kinds.values()))
        acts.append(ScriptEvent(at=round(at, 1), kind=kind, number=draw.randrange(requests)))
    return acts


def _draw_fault(draw: random.Random, replicas: int, busy: Sequence[float]) -> ScriptEvent:
    at = round(max(0.0, draw.choice(busy) + draw.choice((0.0, draw.uniform(0, 5), draw.uniform(0, 90)))), 1)
    replica = draw.randrange(replicas) + 1
    steps = int(2 ** draw.uniform(0, 9))
    aim = draw.choice(_POINTS) if draw.random() < 0.5 else ("", "")
    if aim[0]:
        steps = draw.choice((0, 1, 2, 3, 5, 8))
    kind = draw.choices(
        (
            EventKind.CRASH,
            EventKind.PAUSE,
            EventKind.STOP,
            EventKind.SKEW,
            EventKind.TROUBLE,
            EventKind.DUPLICATE_HOOK,
            EventKind.DELAY_HOOK,
        ),
        (5, 5, 1, 1, 9, 1, 1),
    )[0]
    match kind:
        case EventKind.CRASH:
            away = round(draw.uniform(0, 200))
            return ScriptEvent(
                at=at, kind=kind, replica=replica, count=steps, seconds=away, service=aim[0], within=aim[1]
            )
        case EventKind.PAUSE:
            seconds = round(draw.choice((draw.uniform(1, 100), draw.uniform(130, 300), draw.uniform(130, 900))))
            return ScriptEvent(
                at=at, kind=kind, replica=replica, count=steps, seconds=seconds, service=aim[0], within=aim[1]
            )
        case EventKind.STOP:
            return ScriptEvent(at=at, kind=kind, replica=replica, seconds=round(draw.uniform(0, 60)))
        case EventKind.SKEW:
            return ScriptEvent(at=0.0, kind=kind, replica=replica, seconds=round(draw.uniform(-120, 120)))
        case EventKind.DUPLICATE_HOOK | EventKind.DELAY_HOOK:
            return ScriptEvent(at=max(0.0, at - 1), kind=kind, seconds=round(draw.uniform(1, 200)))
    service, within = draw.choice(_POINTS)
    fate = draw.choice(_FATES)
    lasting = draw.random() < 0.3
    return ScriptEvent(
        at=at,
        kind=EventKind.TROUBLE,
        replica=draw.choice((0, replica)),
        service=service,
        within="" if lasting else within,
        fate=fate,
        count=10_000 if lasting else draw.choice((1, 1, 2, 5)),
        seconds=round(draw.uniform(5, 400)) if lasting else 600,
    )
