"""An event loop with virtual time and a seeded order, which runs several simulated processes side by side.

Time stands still while anything can run, and jumps to the next timer otherwise. Each simulated process is a name in a
context variable, which its tasks inherit. Its callbacks run in their order, as asyncio promises; whose callback is next
is drawn. So a process can be paused, or killed between any two steps: then none of its code runs any more, not even a
`finally`. Functions for threads are called in the loop, each as one step after a drawn time.
"""

import asyncio
import gc
import heapq
import random
import sys
import warnings
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any
from unittest.mock import patch

WORLD = "world"
PROCESS: ContextVar[str] = ContextVar("simulated process", default=WORLD)
CLOSES = 50  # of one coroutine, each of which ends one `await` in a `finally`
_THREAD_S = 0.002  # the longest time until a function that was given to a thread is called


class SimulationStuckError(Exception):
    """Nothing can run any more, and nobody has ended the simulation."""


class _SimulatedTask(asyncio.Task[Any]):
    """A task whose hash is its number, so that sets of tasks have the same order in every run."""

    __slots__ = ("_number",)

    def __init__(self, *given: Any, number: int, **named: Any) -> None:
        self._number = number
        super().__init__(*given, **named)

    def __hash__(self) -> int:
        return self._number


class _SimulatedFuture(asyncio.Future[Any]):
    """A future whose hash is its number."""

    __slots__ = ("_number",)

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class _ReadyCallbacks:
    """What is ready to run, by process."""

    def __init__(self) -> None:
        self.by_process: dict[str, deque[asyncio.Handle]] = {}
        self.held: set[str] = set()
        self.dead: set[str] = set()

    def append(self, handle: Any) -> None:
        name = handle._context.get(PROCESS, WORLD)
        if name in self.dead:
            return
        found = self.by_process.get(name)
        if found is None:
            found = self.by_process[name] = deque()
        found.append(handle)

    def runnable(self) -> list[str]:
        return [name for name, found in self.by_process.items() if found and name not in self.held]

    def __len__(self) -> int:
        return sum(len(found) for name, found in self.by_process.items() if name not in self.held)

    def clear(self) -> None:
        self.by_process.clear()


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop. `on_step` is called with the process before each of its steps, and may kill or pause it."""

    def __init__(self, seed: int, *, jitter: bool = True) -> None:
        super().__init__()
        self._random = random.Random(f"loop {seed}")
        self._jitter = jitter
        self._now = 0.0
        self._numbers = 0
        self._ready: Any = _ReadyCallbacks()
        self._scheduled: list[Any] = []
        self._timer_cancelled_count = 0
        self._stopping = False
        self._clock_resolution = 1e-6
        self._kept: list[Any] = []  # tasks of killed processes must not be collected: that would run their `finally`
        self.steps: dict[str, int] = {}
        self.on_step: Callable[[str], None] | None = None
        self.unhandled: list[str] = []
        self.set_exception_handler(self._note_unhandled)
        self.set_task_factory(self._create_simulated_task)

    def _note_unhandled(self, _: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
        self.unhandled.append(f"{told.get('message')}: {told.get('exception')!r}")

    def _create_simulated_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **named: Any) -> Any:
        self._numbers += 1
        task = _SimulatedTask(coro, loop=loop, number=self._numbers, **named)
        if PROCESS.get() != WORLD:
            self._kept.append(task)
        return task

    def create_future(self) -> Any:
        self._numbers += 1
        return _SimulatedFuture(self._numbers, self)

    def time(self) -> float:
        return self._now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Call the function in the loop, as one step of the process, after a drawn time."""
        done = self.create_future()

        def call() -> None:
            if done.done():
                return
            try:
                answer = func(*args)
            except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                done.set_exception(error)
            else:
                done.set_result(answer)

        self.call_later(self._random.uniform(0, _THREAD_S) if self._jitter else 0.0, call, context=copy_context())
        return done

    def kill(self, process: str) -> None:
        """End the process at once: nothing of it runs any more."""
        self._ready.dead.add(process)
        self._ready.by_process.pop(process, None)

    def pause(self, process: str, seconds: float) -> None:
        """Stop the process for that time; its timers go on, and what is due then runs when it wakes up."""
        self._ready.held.add(process)
        self.call_later(seconds, self._ready.held.discard, process, context=_world_context())

    def is_paused(self, process: str) -> bool:
        return process in self._ready.held

    def is_dead(self, process: str) -> bool:
        return process in self._ready.dead

    def _write_to_self(self) -> None:
        """Do nothing: no thread wakes the loop."""

    def _process_events(self, event_list: Any) -> None:
        """Do nothing: there is no selector."""

    def _run_once(self) -> None:
        ready = self._ready
        names = ready.runnable()
        if not names and not self._stopping:
            self._jump()
            names = ready.runnable()
        if not names:
            return
        name = names[0]
        if len(names) > 1 and self._jitter:
            name = names[self._random.randrange(len(names))]
        handle = ready.by_process[name].popleft()
        if handle._cancelled:
            return
        if name != WORLD:
            self.steps[name] = self.steps.get(name, 0) + 1
            if self.on_step is not None:
                self.on_step(name)
                if name in ready.dead:
                    return
                if name in ready.held:
                    ready.by_process[name].appendleft(handle)
                    return
        handle._run()

    def _jump(self) -> None:
        """Move time to the next timer, and make ready what is due."""
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1
        if not scheduled:
            raise SimulationStuckError("Nothing can run any more.")
        self._now = max(self._now, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                self._ready.append(handle)

    def close(self) -> None:
        """Close the loop, and throw away what is left in it."""
        self._ready.dead.update(self.steps)
        self.on_step = None
        super().close()
        events._set_running_loop(self)
        try:
            with warnings.catch_warnings(), patch.object(sys, "unraisablehook", lambda _: None):
                warnings.simplefilter("ignore")
                for task in {*self._kept, *asyncio.all_tasks(self)}:
                    task._log_destroy_pending = False
                    _end_coroutine(task.get_coro())
                self._kept.clear()
                self._ready.clear()
                self._scheduled.clear()
                gc.collect()
        finally:
            events._set_running_loop(None)

    def _check_closed(self) -> None:
        """Do nothing: what a coroutine does when it is thrown away is of no effect."""


def _end_coroutine(coroutine: Any) -> None:
    """Close a coroutine, also one that waits in its `finally`."""
    for _ in range(CLOSES):
        try:
            coroutine.close()
        except BaseException:  # noqa: BLE001 - nobody is interested in how it ends
            continue
        return


def _world_context() -> Any:
    context = copy_context()
    context.run(PROCESS.set, WORLD)
    return context


def start_in(process: str, function: Callable[..., Any], *given: Any) -> Any:
    """Call a function as code of that process; tasks that it creates belong to the process."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context.run(function, *given)
