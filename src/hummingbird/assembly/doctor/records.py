"""What is written down besides sessions: their index, known failures, what was spent. Each is opened and asked as the
service does; where one is not there yet, one like it is tried beside."""

from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path

from hummingbird.adapters.stores.index import opened
from hummingbird.adapters.stores.known_failures import SqliteKnownFailures
from hummingbird.adapters.stores.spending import SqliteSpending
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.assembly.doctor.workplace import beside, is_there
from hummingbird.assembly.keeping import SPENDING
from hummingbird.assembly.places import places
from hummingbird.assembly.session_desk import index_file
from hummingbird.assembly.shared_stores import known_failures_of, spending_of

_PROJECT = "hummingbird/doctor"


def record_checks(patient: Patient) -> Iterator[Check]:
    yield Check("session index", lambda: _index(patient))
    yield Check("known failures", lambda: _known_failures(patient))
    yield Check("spending", lambda: _spending(patient))


async def _index(patient: Patient) -> Findings:
    there, trouble = places(patient.settings, patient.environment), list[str]()
    file = index_file(there, patient.settings, SystemClock().now)

    async def asked(path: Path) -> None:
        await opened(path, str, trouble.append).listed(1)

    async for found in _tried(file, asked):
        yield found
    for sentence in trouble:
        yield Standing.WARN, sentence


async def _known_failures(patient: Patient) -> Findings:
    there = places(patient.settings, patient.environment)
    if there.remote:
        await known_failures_of(there, patient.settings).projects(1)
        yield Standing.OK, f"They can be read in {there.remote}."
        return

    async def asked(path: Path) -> None:
        await SqliteKnownFailures(path).projects(1)

    async for found in _tried(there.known_failures, asked):
        yield found


async def _spending(patient: Patient) -> Findings:
    """Nothing is added: it is what a day's budget is held to."""
    there, now = places(patient.settings, patient.environment), SystemClock().now
    if there.remote:
        await spending_of(there, patient.settings, now).spent_today(_PROJECT)
        yield Standing.OK, f"It can be read in {there.remote}."
        return

    async def asked(path: Path) -> None:
        spending = SqliteSpending(path, now)
        if path != there.sessions / SPENDING:
            await spending.add(_PROJECT, Decimal("0.01"))
        await spending.spent_today(_PROJECT)

    async for found in _tried(there.sessions / SPENDING, asked):
        yield found


async def _tried(file: Path, ask: Callable[[Path], Awaitable[None]]) -> Findings:
    if is_there(file):
        await ask(file)
        yield Standing.OK, f"{file} can be used."
        return
    with beside(file) as folder:
        await ask(Path(folder) / file.name)
    yield Standing.OK, f"{file} will be made when it is needed; one works there."
