"""What happens in a simulated world, as a list of events: what people do, and what goes wrong.

A seed makes a script. The same script always plays alike, so a script that fails can be shortened and kept as a test.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.simulation.network import STREAM_FATES, Fate

HOST_STEP_S = 60  # half of the time for which a message is received


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
    ASK_REVIEW = "a developer asks for a review"
    DISMISS = "a developer dismisses a finding"
    VOTE = "a developer votes"
    OUTSIDER_VOTE = "an outsider votes"
    REMOVE_OURS = "a maintainer deletes the last note of the bot"
    CLOSE = "the merge request is closed"
    REOPEN = "the merge request is opened again"
    RETRY = "a developer retries the failed jobs"
    REVIVE = "an operator retries the dead letters"
    RELOAD = "the configuration changes"
    BREAK_CONFIG = "the configuration cannot be read"
    DROP_WORKFLOW = "the workflow is taken out of the configuration"
    CRASH = "crash"
    PAUSE = "pause"
    STOP = "gentle stop"
    SKEW = "clock skew"
    TROUBLE = "trouble"
    CUT_OFF = "cut off from everything"
    POWER_CUT = "power cut"
    DISK_FULL = "disk full"
    DUPLICATE_HOOK = "a webhook is sent twice"
    DELAY_HOOK = "a webhook is late"


PEOPLE = tuple(EventKind)[: tuple(EventKind).index(EventKind.CRASH)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEvent:
    """One event at a time. Which of the other fields count depends on the kind.

    `replica` 0 is any, `number` is that of a merge request. A crash and a pause come after `count` more steps of the
    process, or `count` steps after its next call of `service` and `within`. Trouble is for the next `count` calls
    within `seconds`. Retried jobs take `seconds`, and succeed if `count` is not 0; a configuration is as before after
    `seconds`.
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
        aims = EventKind.CRASH, EventKind.PAUSE, EventKind.POWER_CUT
        who = f"replica {self.replica}" if self.replica else "a replica" if self.kind in aims else "all replicas"
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
            case EventKind.POWER_CUT:
                what = (
                    f"the host loses power when {who} is {self.count} steps{after or ' further'}; "
                    f"it is back {self.seconds:.0f} s later"
                )
            case EventKind.CUT_OFF:
                what = f"{who} is cut off from everything for {self.seconds:.0f} s: {self.fate}"
            case EventKind.DISK_FULL:
                what = f"the disk is full for {self.seconds:.0f} s"
            case EventKind.TROUBLE:
                calls = f"{self.service or 'any service'} {self.within}".strip()
                what = f"{who}: the next {self.count} calls of {calls} within {self.seconds:.0f} s: {self.fate}"
            case EventKind.DUPLICATE_HOOK | EventKind.DELAY_HOOK | EventKind.BREAK_CONFIG | EventKind.DROP_WORKFLOW:
                what = f"{self.kind.value} ({self.seconds:.0f} s)"
            case EventKind.RETRY:
                what = f"!{self.number}: {self.kind.value}, which {'succeed' if self.count else 'fail'} "
                what += f"{self.seconds:.0f} s later"
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
    """A world and what happens in it. `seed` decides what the events leave open; without `jitter`, nothing is drawn.

    `files`: all replicas are on one host, with the queue in SQLite and the sessions in folders. `reviews`: each push is
    reviewed, with findings on lines. `tight`: the model wants more than the budgets allow: money or, with reviews,
    turns. `internal`: notes are for members. `projects` is 2 if every other merge request is in a second project, which
    has settings of its own. An answer of a model takes up to `answer_s`. `segment_bytes` is the size at which a journal
    in a bucket is split, and `body_bytes` that at which an event is stored beside the queue; 0 is the usual one.
    """

    seed: int
    events: tuple[ScriptEvent, ...]
    replicas: int = 2
    merge_requests: int = 1
    settle_s: int = 0
    short_polls: float = 0.0
    jitter: bool = True
    files: bool = False
    reviews: bool = False
    tight: bool = False
    internal: bool = False
    projects: int = 1
    segment_bytes: int = 0
    body_bytes: int = 0
    answer_s: float = 0.0

    def table(self) -> str:
        """Return the script for people."""
        head = f"seed {self.seed}: {self.replicas} replicas, {self.merge_requests} merge requests"
        head += f", settle_seconds {self.settle_s}" if self.settle_s else ""
        head += f", {self.short_polls:.0%} of polls return too few messages" if self.short_polls else ""
        head += "" if self.jitter else ", all calls take the same time"
        head += ", one host with SQLite and folders" if self.files else ""
        head += "".join(f", {name}" for name in ("reviews", "tight", "internal") if getattr(self, name))
        head += ", 2 projects" if self.projects > 1 else ""
        head += f", answers take up to {self.answer_s:.0f} s" if self.answer_s else ""
        head += f", journals in pieces of {self.segment_bytes} bytes" if self.segment_bytes else ""
        head += f", events of more than {self.body_bytes} bytes beside the queue" if self.body_bytes else ""
        return "\n".join([head, *(event.describe() for event in self.events)])


MANY = 10_000  # calls: all of a time
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
    ("queue", "change_message_visibility"),
    ("queue", ""),
    *[("model", "answer")] * 4,
    ("source", ""),
    *[("sandbox", "")] * 2,
)
_FILE_POINTS = (
    ("disk", "write journal"),
    ("disk", "flush journal"),
    ("disk", "flush folder"),
    ("disk", "commit queue"),
)
_REVIEW_POINTS = (
    *[("gitlab", "POST draft_notes finding"), ("gitlab", "POST draft_notes result")] * 2,
    *[("gitlab", "POST bulk_publish")] * 3,
    ("gitlab", "GET draft_notes"),
    ("gitlab", "DELETE draft_notes"),
    ("gitlab", "PUT discussions"),
)


def _points_of_attack(*, files: bool, reviews: bool) -> Sequence[tuple[str, str]]:
    """Return services and parts of the names of calls, the important ones several times."""
    points = [point for point in _POINTS if not files or point[0] not in ("bucket", "queue")]
    return [*points, *(_FILE_POINTS if files else ()), *(_REVIEW_POINTS * 2 if reviews else ())]


_FATES = (
    *(fate for fate in Fate if fate is not Fate.FINE and fate not in STREAM_FATES),
    Fate.ANSWER_LOST,
    Fate.ANSWER_LOST,
)


def make_script(seed: int) -> Script:
    """Return the script of a seed."""
    draw = random.Random(f"script {seed}")
    replicas, requests = draw.choice((1, 2, 2, 3, 3, 4, 5)), draw.choice((1, 1, 2, 3))
    files, reviews = draw.random() < 0.3, draw.random() < 0.5
    acts = list(_draw_acts(draw, requests, reviews=reviews))
    busy = [act.at for act in acts]
    body_bytes = draw.choice((0, 0, 0, 600))
    points = _points_of_attack(files=files, reviews=reviews)
    faults = [_draw_fault(draw, replicas, busy, points, files=files) for _ in range(draw.choice((0, 1, 2, 3, 4, 6, 8)))]
    if draw.random() < 0.1:  # work that kills whoever does it
        service, within = draw.choice([point for point in points if point[0] != "queue"])
        deadly = ScriptEvent(at=busy[0], kind=EventKind.CRASH, count=1, seconds=9, service=service, within=within)
        faults += [deadly] * 4
        if draw.random() < 0.7:
            acts.append(ScriptEvent(at=round(busy[-1] + draw.uniform(100, 1500)), kind=EventKind.REVIVE))
    faults += _draw_batch_fault(random.Random(f"batch {seed}"), busy[0]) if reviews else ()
    acts += _draw_rounds(random.Random(f"author {seed}"), requests)
    return Script(
        seed=seed,
        events=tuple(sorted((*acts, *faults), key=lambda event: event.at)),
        replicas=replicas,
        merge_requests=requests,
        settle_s=draw.choice((0, 0, 0, 30)),
        short_polls=draw.choice((0.0, 0.0, 0.3)),
        files=files,
        reviews=reviews,
        tight=draw.random() < 0.3,
        internal=draw.random() < 0.15,
        projects=draw.choice((1, 2)) if requests > 1 else 1,
        segment_bytes=0 if files else draw.choice((0, 0, 2048)),
        body_bytes=body_bytes,
        answer_s=draw.choice((0.0, 10.0, 30.0)),
    )


def without_faults(script: Script) -> Script:
    """Return the same world with people, and with nothing that goes wrong."""
    acts = tuple(event for event in script.events if event.kind in PEOPLE)
    return replace(script, events=acts, short_polls=0.0)


def _draw_acts(draw: random.Random, requests: int, *, reviews: bool) -> Sequence[ScriptEvent]:
    """Return what people do: at least one pipeline fails, and others follow soon, while the first is worked on."""
    at = draw.uniform(1, 30)
    first = EventKind.PUSH if reviews and draw.random() < 0.7 else EventKind.FAIL_PIPELINE
    acts = [ScriptEvent(at=round(at, 1), kind=first, number=draw.randrange(requests))]
    kinds = dict.fromkeys(PEOPLE, 1)
    kinds |= {EventKind.FAIL_PIPELINE: 4, EventKind.REPLY: 5, EventKind.COMMAND: 2, EventKind.PUSH: 2}
    kinds |= {EventKind.RETRY: 2, EventKind.REVIVE: 0}
    kinds |= {EventKind.PUSH: 5, EventKind.ASK_REVIEW: 2} if reviews else {}
    for _ in range(draw.choice((0, 1, 2, 3, 4, 6, 10))):
        at += draw.choice((0.0, draw.uniform(0, 3), draw.uniform(0, 60), draw.uniform(0, 300)))
        (kind,) = draw.choices(list(kinds), list(kinds.values()))
        act = ScriptEvent(at=round(at, 1), kind=kind, number=draw.randrange(requests))
        if kind is EventKind.RETRY:
            act = replace(act, count=draw.randrange(2), seconds=round(draw.uniform(1, 200)))
        elif kind in (EventKind.BREAK_CONFIG, EventKind.DROP_WORKFLOW):
            act = replace(act, number=0, seconds=round(draw.uniform(30, 300)))
        acts.append(act)
    return acts


def _draw_rounds(draw: random.Random, requests: int) -> Iterator[ScriptEvent]:
    """Yield what an author does who pushes again and again, and whose pipelines all fail; most authors do not."""
    at, number = draw.uniform(1, 60), draw.randrange(requests)
    for _ in range(draw.choice((2, 3, 4)) if draw.random() < 0.1 else 0):
        for kind in (EventKind.PUSH, EventKind.FAIL_PIPELINE):
            yield ScriptEvent(at=round(at, 1), kind=kind, number=number)
            at += draw.choice((draw.uniform(0, 5), draw.uniform(5, 120)))


def _draw_batch_fault(draw: random.Random, at: float) -> Iterator[ScriptEvent]:
    """Yield, now and then, trouble when the drafts of a review are released."""
    if draw.random() < 0.2:
        fate, times = draw.choice((*_FATES, Fate.REFUSED, Fate.BUSY)), draw.choice((1, 3, 9))
        point = ScriptEvent(at=at, kind=EventKind.TROUBLE, service="gitlab", within="POST bulk_publish")
        yield replace(point, fate=fate, count=times, seconds=600)


def _draw_fault(
    draw: random.Random, replicas: int, busy: Sequence[float], points: Sequence[tuple[str, str]], *, files: bool
) -> ScriptEvent:
    at = round(max(0.0, draw.choice(busy) + draw.choice((0.0, draw.uniform(0, 5), draw.uniform(0, 90)))), 1)
    replica = draw.randrange(replicas) + 1
    steps = int(2 ** draw.uniform(0, 9))
    busy_one = draw.choice((0, 0, replica))  # whichever makes the call
    aim = draw.choice(points) if draw.random() < 0.7 else ("", "")
    if aim[0]:
        replica = busy_one
        steps = draw.choice((0, 1, 2, 3, 5, 8, 30))
    kind = draw.choices(
        (
            EventKind.CRASH,
            EventKind.PAUSE,
            EventKind.STOP,
            EventKind.SKEW,
            EventKind.TROUBLE,
            EventKind.DUPLICATE_HOOK,
            EventKind.DELAY_HOOK,
            EventKind.POWER_CUT,
            EventKind.DISK_FULL,
            EventKind.CUT_OFF,
        ),
        (5, 5, 1, 1, 9, 1, 1, 5 if files else 0, 4 if files else 0, 1),
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
            return ScriptEvent(at=at, kind=kind, replica=max(1, replica), seconds=round(draw.uniform(0, 60)))
        case EventKind.SKEW:
            at = draw.choice((0.0, at))
            seconds = round(draw.choice((draw.uniform(-120, 120), draw.uniform(-900, 900))))
            if files:  # leases of its queue end by this clock, so a long step forward ends them for all
                seconds = min(seconds, HOST_STEP_S)
            return ScriptEvent(at=at, kind=kind, replica=0 if files else max(1, replica), seconds=seconds)
        case EventKind.POWER_CUT:
            away = round(draw.uniform(1, 200))
            return ScriptEvent(
                at=at, kind=kind, replica=replica, count=steps, seconds=away, service=aim[0], within=aim[1]
            )
        case EventKind.DISK_FULL:
            return ScriptEvent(
                at=at, kind=kind, seconds=round(draw.choice((draw.uniform(1, 20), draw.uniform(20, 300))))
            )
        case EventKind.DUPLICATE_HOOK | EventKind.DELAY_HOOK:
            away = round(draw.choice((draw.uniform(1, 200), draw.uniform(1, 900))))
            return ScriptEvent(at=max(0.0, at - 1), kind=kind, seconds=away)
        case EventKind.CUT_OFF:
            fate = draw.choice((Fate.REFUSED, Fate.SILENT, Fate.SILENT_DONE))
            away = round(draw.uniform(5, 400))
            return ScriptEvent(at=at, kind=kind, replica=max(1, replica), fate=fate, seconds=away)
    service, within = draw.choice([point for point in points if point[0] != "disk"])
    fate = draw.choice((*_FATES, *STREAM_FATES * 3) if service == "model" else _FATES)
    lasting = draw.random() < 0.3
    return ScriptEvent(
        at=at,
        kind=EventKind.TROUBLE,
        replica=draw.choice((0, replica)),
        service=service,
        within="" if lasting else within,
        fate=fate,
        count=MANY if lasting else draw.choice((1, 1, 2, 5)),
        seconds=round(draw.uniform(5, 400)) if lasting else 600,
    )
