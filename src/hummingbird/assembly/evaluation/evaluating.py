"""Many trials: so many at once, within one purse, told as they end. Knows nothing of how a result is shown."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from hummingbird.assembly.evaluation.recordings import place_of, recorded
from hummingbird.assembly.evaluation.trials import Result, Setting, Trial, tried
from hummingbird.domain.errors import UsageFault
from hummingbird.lab.case import Case

Telling = Callable[[Result], None]


async def evaluated(
    trials: Sequence[Trial], setting: Setting, told: Telling, *, jobs: int = 1, max_usd: Decimal | None = None
) -> None:
    """Tells of each trial when it has ended. `max_usd`: of all of them together; those for which nothing is left are
    told as not run. Cancelling it ends what is under way; what was told stays told."""
    slots, purse = asyncio.Semaphore(jobs), Purse(max_usd, jobs)

    async def one(trial: Trial) -> None:
        async with slots:
            with purse.share() as share:
                if share is not None and share <= 0:
                    told(Result(trial=trial, failed="It was not run: what --max-usd allows is spent."))
                    return
                done = await tried(trial, setting, share)
                if trial.recording is None:
                    purse.pay(done.bill.known_usd)
                told(done)

    async with asyncio.TaskGroup() as group:
        for trial in trials:
            group.create_task(one(trial))


class Purse:
    """What may be spent together: each run is given an equal part of what is left, so that no number of them at once
    spends more."""

    def __init__(self, usd: Decimal | None, jobs: int) -> None:
        self._left, self._idle = usd, jobs

    @contextmanager
    def share(self) -> Iterator[Decimal | None]:
        """None: without a ceiling."""
        part = None if self._left is None else max(Decimal(0), self._left / self._idle)
        self._take(part, -1)
        try:
            yield part
        finally:
            self._take(-part if part is not None else None, 1)

    def pay(self, usd: Decimal) -> None:
        if self._left is not None:
            self._left -= usd

    def _take(self, part: Decimal | None, idle: int) -> None:
        self._idle += idle
        if part is not None and self._left is not None:
            self._left -= part


def planned(
    cases: Sequence[Case], models: Sequence[str], *, workflow: str = "", repeat: int = 1, record: Path | None = None
) -> list[Trial]:
    """Every case with every model, all models of a case next to each other. Raises UsageFault."""
    return [
        Trial(
            case=case,
            model=model,
            workflow=workflow,
            number=number,
            kept=None if record is None else place_of(record, case, model, number),
        )
        for case in cases
        for model in models
        for number in range(1, repeat + 1)
    ]


def replayed(
    cases: Sequence[Case], folder: Path | None, models: Sequence[str], *, workflow: str = "", repeat: int = 1
) -> tuple[list[Trial], list[str]]:
    """Every recording that there is, and the names of the cases that have none. Raises UsageFault if there is none."""
    found = [(case, recorded(case, folder, models)) for case in cases]
    trials = [
        Trial(case=case, model=recording.model, workflow=workflow, number=number, recording=recording)
        for case, recordings in found
        for recording in recordings
        for number in range(1, repeat + 1)
    ]
    if not trials:
        where = "in their folders" if folder is None else f"in {folder}"
        raise UsageFault(f"None of these cases has a recording {where}: make one with --record DIR.")
    return trials, [case.name for case, recordings in found if not recordings]
