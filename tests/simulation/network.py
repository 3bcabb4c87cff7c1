"""What lies between simulated processes and the services that they call: delays, and what a script does to calls.

A call that was sent is carried out even if its sender has died or given up meanwhile, as in a real network. The
service's side runs in the world, where nothing is ever killed.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from tests.simulation.event_loop import PROCESS, WORLD, SimulatedLoop, start_in

Answer = TypeVar("Answer")
HANG_S = 3600.0  # longer than anybody waits for an answer
LATE_S = (5.0, 55.0)  # GitLab itself ends a request that takes a minute


class Fate(StrEnum):
    """What becomes of one call."""

    FINE = "fine"
    REFUSED = "refused"  # not done, and the caller learns it at once
    ANSWER_LOST = "done, answered with an error"
    SILENT = "not done, never answered"
    SILENT_DONE = "done, never answered"
    LATE = "done and answered late"
    BUSY = "answered with 429"
    DRIPS = "answered in drips"  # this and the following are of streams, after a call that went well
    STALLED = "stalled in the middle of the answer"
    CUT_OFF = "cut off in the middle of the answer"


STREAM_FATES = (Fate.DRIPS, Fate.STALLED, Fate.CUT_OFF)


class NotDoneError(Exception):
    """The service was not reached."""


class AnswerLostError(Exception):
    """The connection broke before the answer came."""


class BusyError(Exception):
    """The service is asked too often."""


@dataclass(slots=True)
class Trouble:
    """What happens to calls of a service: to the next `count` ones, until a time. Empty fields fit every call."""

    service: str
    fate: Fate
    until: float
    count: int
    process: str = ""
    writes: bool = False
    within: str = ""  # part of the name of the call

    def fits(self, process: str, service: str, what: str, now: float, *, writes: bool) -> bool:
        if self.service not in ("", service) or self.process not in ("", process):
            return False
        return self.count > 0 and now < self.until and (writes or not self.writes) and self.within in what


class Network:
    """All calls between processes and services. `covered` counts pairs of a fault and what it interrupted."""

    def __init__(self, loop: SimulatedLoop, seed: int, *, jitter: bool = True, slow_share: float = 0.01) -> None:
        self.loop = loop
        self._random = random.Random(f"network {seed}")
        self._jitter, self._slow_share = jitter, slow_share
        self.troubles: list[Trouble] = []
        self.activity: dict[str, str] = {}
        self.covered: Counter[tuple[str, str]] = Counter()
        self.failed_at: dict[tuple[str, str], float] = {}
        self.calls = 0
        self.trace: list[str] | None = None
        self.on_call: Callable[[str, str, str], None] | None = None

    def draw(self, low: float, high: float) -> float:
        return self._random.uniform(low, high) if self._jitter else low

    def happens(self, share: float) -> bool:
        return self._random.random() < share

    def shuffle(self, names: Iterable[str]) -> list[str]:
        """Return the names in a drawn order."""
        shuffled = list(names)
        if self._jitter:
            self._random.shuffle(shuffled)
        return shuffled

    def note_fault(self, fault: str, process: str) -> None:
        """Count a fault together with what the process was doing."""
        self.covered[fault, self.activity.get(process, "nothing yet")] += 1

    async def exchange(
        self, service: str, what: str, work: Callable[[], Awaitable[Answer]], *, writes: bool = False
    ) -> Answer:
        """Send a call and return its answer.

        Raises NotDoneError, AnswerLostError, BusyError, and what `work` raises.
        """
        process = PROCESS.get()
        self.calls += 1
        fate = self._fate(process, service, what, writes=writes)
        if process != WORLD:
            self.activity[process] = f"{service}: {what}"
            if self.on_call is not None:
                self.on_call(process, service, what)
        if self.trace is not None:
            told = "" if fate is Fate.FINE else f"   ** {fate}"
            self.trace.append(f"{self.loop.time():10.3f} {process:6} {service} {what}{told}")
        answer: asyncio.Future[Answer] = self.loop.create_future()
        serving: Any = self._serve(answer, fate, work)
        start_in(WORLD, self.loop.create_task, serving)
        return await answer

    def note_use(self, process: str, what: str) -> None:
        """Note a call that needs no network: one of the disk."""
        self.activity[process] = f"disk: {what}"
        if self.on_call is not None:
            self.on_call(process, "disk", what)

    def _fate(self, process: str, service: str, what: str, *, writes: bool) -> Fate:
        for trouble in self.troubles:
            is_whole = trouble.fate not in STREAM_FATES
            if is_whole and trouble.fits(process, service, what, self.loop.time(), writes=writes):
                trouble.count -= 1
                self.failed_at[process, service] = self.loop.time()
                self.covered[f"{service}: {trouble.fate}", f"{service}: {what}"] += 1
                return trouble.fate
        return Fate.FINE

    def draw_stream_fate(self, process: str) -> Fate:
        """Return what becomes of the next answer of a model, if it comes at all."""
        for trouble in self.troubles:
            fits = trouble.fits(process, "model", "answer", self.loop.time(), writes=True)
            if trouble.fate in STREAM_FATES and fits:
                trouble.count -= 1
                self.covered[f"model: {trouble.fate}", "model: answer"] += 1
                return trouble.fate
        return Fate.FINE

    def _latency(self) -> float:
        if not self._jitter:
            return 0.005
        return self._random.uniform(0.5, 3.0) if self.happens(self._slow_share) else self._random.uniform(0.001, 0.03)

    async def _serve(self, answer: "asyncio.Future[Answer]", fate: Fate, work: Callable[[], Awaitable[Answer]]) -> None:
        await asyncio.sleep(self._latency())
        problem: BaseException | None = None
        result: Any = None
        if fate is Fate.LATE:
            await asyncio.sleep(self.draw(*LATE_S))
        if fate in (Fate.REFUSED, Fate.SILENT):
            problem = NotDoneError("It cannot be reached.")
        elif fate is Fate.BUSY:
            problem = BusyError("It is asked too often.")
        else:
            try:
                result = await work()
            except Exception as error:  # noqa: BLE001 - raised again where the answer is awaited
                problem = error
        if fate in (Fate.SILENT, Fate.SILENT_DONE):
            await asyncio.sleep(HANG_S)
        if fate in (Fate.ANSWER_LOST, Fate.SILENT_DONE):
            problem = AnswerLostError("The connection broke.")
        await asyncio.sleep(self._latency())
        if answer.done():
            return
        if problem is not None:
            answer.set_exception(problem)
        else:
            answer.set_result(result)
