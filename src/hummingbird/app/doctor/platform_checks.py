"""Checks where work is done and stored: sandbox, state folder, queue, session store. Each check cleans up."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from hummingbird.app.console import SystemClock
from hummingbird.app.doctor import CheckOutcomes, CheckStatus, DoctorCheck, DoctorContext
from hummingbird.app.sandboxes import cluster_api, resolve_sandbox, sandbox_sentence
from hummingbird.app.session_catalog import session_index_file
from hummingbird.app.session_holder import SPENDING_FILE
from hummingbird.app.stores import (
    HOME_VARIABLE,
    StatePaths,
    failure_ledger,
    open_queue,
    spending_ledger,
    sqs_region,
    state_paths,
)
from hummingbird.core.errors import ObjectStoreUnusable, PlatformError
from hummingbird.core.limits import (
    DOCTOR_CLAIM_S,
    DOCTOR_FREE_BYTES,
    DOCTOR_FREE_LEAST_BYTES,
    DOCTOR_SANDBOX_S,
    QUEUE_TAKEN_S,
)
from hummingbird.core.protocols.queues import Queue
from hummingbird.core.protocols.storage import ObjectStore, VersionedObjectStore
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.queues.sqs import SqsClient, SqsQueue
from hummingbird.sandboxes.registry import KUBERNETES, POOL, SandboxRegistry
from hummingbird.sandboxes.self_check import self_check
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.registry import open_bucket, open_object_store
from hummingbird.storage.session_index import open_session_index
from hummingbird.storage.spending_store import SqliteSpendingStore

_MIB = 1024 * 1024


def platform_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    yield DoctorCheck("sandbox", lambda: _check_sandbox(context))
    yield DoctorCheck("state folder", lambda: _check_state_folders(context))
    yield DoctorCheck("queue", lambda: _check_queue(context))
    if context.settings.sqs_queue_url:
        yield DoctorCheck("events' queue", lambda: _check_event_queue(context))
    yield DoctorCheck("store", lambda: _check_store(context))


async def _check_sandbox(context: DoctorContext) -> CheckOutcomes:
    wanted, warnings = resolve_sandbox(context.settings, context.chosen), list[str]()
    clock, environment = SystemClock(), context.environment
    sandboxes = SandboxRegistry(wanted, environment, clock, warnings.append, claim_warning_s=DOCTOR_CLAIM_S)
    try:
        fault = await _try_sandbox(sandboxes, cluster_api(environment))
        if fault is None:
            waited = f"A {wanted.backend} sandbox was not ready within {DOCTOR_SANDBOX_S:g} seconds."
            yield CheckStatus.FAIL, " ".join((waited, *(warnings or ["Check what blocks it."])))
            return
        if fault:
            yield CheckStatus.FAIL, f"A {wanted.backend} sandbox does not keep its promises: {fault}"
        else:
            why = sandbox_sentence(context.settings, context.chosen)
            yield CheckStatus.OK, f"A {wanted.backend} sandbox starts and keeps what it promises. {why}"
            if wanted.backend in (KUBERNETES, POOL):
                yield CheckStatus.OK, _POD_NETWORK
        for warning in warnings:
            yield CheckStatus.WARN, warning
    finally:
        await sandboxes.close()


async def _try_sandbox(sandboxes: SandboxRegistry, api: tuple[str, int] | None) -> str | None:
    """Return the promise that a sandbox does not keep, "" if it keeps all, or None if there is none in time."""
    fault = ""
    try:
        async with asyncio.timeout(DOCTOR_SANDBOX_S):
            await sandboxes.open()
            async with aclosing(self_check(sandboxes.make(), api)) as lines:
                async for line in lines:
                    fault = line.fault
    except TimeoutError:
        return None
    return fault


_POD_NETWORK = (
    "From inside a pod neither the cluster's API nor a name server of it answered. That a NetworkPolicy is enforced "
    "for everything else cannot be seen from there: see whether the cluster's network plug-in enforces policies."
)


async def _check_state_folders(context: DoctorContext) -> CheckOutcomes:
    there = state_paths(context.settings, context.environment)
    for folder in dict.fromkeys((there.state, there.sessions)):
        yield await asyncio.to_thread(_judge_folder, folder)


def _judge_folder(folder: Path) -> tuple[CheckStatus, str]:
    nearest = _nearest_existing(folder)
    how = f"set {HOME_VARIABLE} to a folder that this user may write to, or give it this one"
    try:
        with TemporaryDirectory(dir=nearest, prefix=".doctor-") as probe:
            (Path(probe) / "probe").write_bytes(b"probe")
        free = shutil.disk_usage(nearest).free
    except OSError as error:
        return CheckStatus.FAIL, f"{folder} cannot be written ({os.strerror(error.errno or 0)}): {how}."
    words = f"{free // _MIB:,} MiB are free for {folder}"
    if free < DOCTOR_FREE_LEAST_BYTES:
        return CheckStatus.FAIL, f"Only {words}: make room."
    if free < DOCTOR_FREE_BYTES:
        return CheckStatus.WARN, f"Only {words}: make room soon."
    made = "can be written" if folder == nearest else "will be created when it is needed"
    return CheckStatus.OK, f"{folder} {made}; {free // _MIB:,} MiB are free."


def _nearest_existing(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next((one for one in (folder, *folder.parents) if path_exists(one)), Path(folder.anchor))


def path_exists(path: Path) -> bool:
    """Return whether the path exists; a path that this user may not look at counts as missing."""
    try:
        return path.exists()
    except OSError:
        return False


async def _check_queue(context: DoctorContext) -> CheckOutcomes:
    """Check the queue without sending anything through it, because a worker might receive it.

    An existing queue is opened and its dead letters are counted. If there is none yet, a message goes through another
    queue beside it.
    """
    there = state_paths(context.settings, context.environment)
    if not context.settings.sqs_fifo_queue_url and not path_exists(there.queue):
        await _try_new_queue(there)
        yield CheckStatus.OK, f"{there.queue} will be created when it is needed; a queue works there."
        return
    queue = open_queue(context.settings, context.environment)
    try:
        dead = len(await queue.list_dead_letters())
        weaknesses = await queue.find_weaknesses() if isinstance(queue, SqsQueue) else ()
    finally:
        await queue.close()
    yield CheckStatus.OK, f"{context.settings.sqs_fifo_queue_url or there.queue} can be used."
    for sentence in weaknesses:
        yield CheckStatus.WARN, sentence
    if dead:
        words = "One message was" if dead == 1 else f"{dead} messages were"
        yield CheckStatus.WARN, f"{words} given up: see `hummingbird queue list`."


async def _try_new_queue(there: StatePaths) -> None:
    """Send a message through a new queue beside the configured one.

    Raises PlatformError.
    """
    with temporary_folder_beside(there.queue) as folder:
        queue = SqliteQueue(Path(folder) / there.queue.name, QUEUE_TAKEN_S)
        try:
            await _send_and_receive(queue)
        finally:
            await queue.close()


def temporary_folder_beside(wanted: Path) -> "TemporaryDirectory[str]":
    """Create a temporary folder beside the wanted one.

    Raises PlatformError.
    """
    try:
        return TemporaryDirectory(dir=_nearest_existing(wanted), prefix=".doctor-")
    except OSError as error:
        raise PlatformError(
            f"{wanted} cannot be created ({os.strerror(error.errno or 0)}): set {HOME_VARIABLE} to a folder that this "
            "user may write to."
        ) from error


async def _send_and_receive(queue: Queue) -> None:
    """Send a message and receive it again.

    Raises PlatformError.
    """
    name = uuid4().hex
    await queue.send(name, group=name, dedup_id=name)
    received = await queue.receive(1, 0)
    if [message.body for message in received] != [name]:
        raise PlatformError("A message that was sent did not come back: see whether the disk works.")
    await queue.delete(received[0])


async def _check_event_queue(context: DoctorContext) -> CheckOutcomes:
    url = context.settings.sqs_queue_url
    calls = SqsClient(url, sqs_region(url), "", context.settings.ca_bundle)
    try:
        await calls.call("get_queue_attributes", QueueUrl=url, AttributeNames=["QueueArn"])
        yield CheckStatus.OK, f"{url} can be reached."
    finally:
        await calls.close()


async def _check_store(context: DoctorContext) -> CheckOutcomes:
    """Write an object to the store, read it and remove it; if the folder is missing, do so beside it."""
    there = state_paths(context.settings, context.environment)
    folder = Path(there.objects)
    if there.remote:
        bucket = open_bucket(there.objects, ca_bundle=context.settings.ca_bundle)
        await _check_round_trip(bucket)
        yield CheckStatus.OK, f"{there.objects} stores and returns data."
        await check_conditional_writes(bucket)
        yield CheckStatus.OK, f"{there.objects} refuses conflicting writes."
        return
    if path_exists(folder):
        await _check_round_trip(open_object_store(there.objects))
        yield CheckStatus.OK, f"{there.objects} stores and returns data."
        return
    with temporary_folder_beside(folder) as name:
        await _check_round_trip(open_object_store(name))
    yield CheckStatus.OK, f"{folder} will be created when it is needed; a store works there."


async def check_conditional_writes(objects: VersionedObjectStore) -> None:
    """Check that the store refuses conflicting writes, which sessions that several hosts share depend on.

    Raises ObjectStoreUnusable.
    """
    name = f"doctor-{uuid4().hex}"
    try:
        first = await objects.compare_and_swap(name, b"first", None)
        second = await objects.compare_and_swap(name, b"second", None)
        third = await objects.compare_and_swap(name, b"third", first)
        fourth = await objects.compare_and_swap(name, b"fourth", first)
    finally:
        await objects.delete(name)
    if first is None or third is None or second or fourth:
        raise ObjectStoreUnusable(
            "The store writes whatever the condition says, so two hosts could continue the same session: use one that "
            "keeps If-None-Match and If-Match, as S3, Google and Azure do."
        )


async def _check_round_trip(objects: ObjectStore) -> None:
    """Write, read and remove an object.

    Raises ObjectStoreUnusable.
    """
    name, content = f"doctor-{uuid4().hex}", uuid4().bytes
    await objects.put(name, content)
    found = await objects.get(name)
    await objects.delete(name)
    if found != content:
        raise ObjectStoreUnusable("What was put into the store did not come back the same: see what else writes to it.")


# Other stored data: session index, known failures, spending. Each is opened as the service does; if it does not exist
# yet, a temporary one beside it is tried.


_PROBE_PROJECT = "hummingbird/doctor"


def record_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    yield DoctorCheck("session index", lambda: _check_index(context))
    yield DoctorCheck("known failures", lambda: _check_known_failures(context))
    yield DoctorCheck("spending", lambda: _check_spending(context))


async def _check_index(context: DoctorContext) -> CheckOutcomes:
    there, trouble = state_paths(context.settings, context.environment), list[str]()
    file = session_index_file(there, context.settings, SystemClock().now)

    async def query_index(path: Path) -> None:
        await open_session_index(path, str, trouble.append).list_sessions(1)

    async for found in _check_file(file, query_index):
        yield found
    for sentence in trouble:
        yield CheckStatus.WARN, sentence


async def _check_known_failures(context: DoctorContext) -> CheckOutcomes:
    there = state_paths(context.settings, context.environment)
    if there.remote:
        await failure_ledger(there, context.settings).list_projects(1)
        yield CheckStatus.OK, f"They can be read in {there.remote}."
        return

    async def query_failures(path: Path) -> None:
        await SqliteKnownFailureStore(path).list_projects(1)

    async for found in _check_file(there.known_failures, query_failures):
        yield found


async def _check_spending(context: DoctorContext) -> CheckOutcomes:
    """Read the record of spending, which daily budgets are compared with; add nothing."""
    there, now = state_paths(context.settings, context.environment), SystemClock().now
    if there.remote:
        await spending_ledger(there, context.settings, now).usd_today(_PROBE_PROJECT)
        yield CheckStatus.OK, f"It can be read in {there.remote}."
        return

    async def query_spending(path: Path) -> None:
        spending = SqliteSpendingStore(path, now)
        if path != there.sessions / SPENDING_FILE:
            await spending.add(_PROBE_PROJECT, Decimal("0.01"))
        await spending.usd_today(_PROBE_PROJECT)

    async for found in _check_file(there.sessions / SPENDING_FILE, query_spending):
        yield found


async def _check_file(file: Path, ask: Callable[[Path], Awaitable[None]]) -> CheckOutcomes:
    if path_exists(file):
        await ask(file)
        yield CheckStatus.OK, f"{file} can be used."
        return
    with temporary_folder_beside(file) as folder:
        await ask(Path(folder) / file.name)
    yield CheckStatus.OK, f"{file} will be created when it is needed; one works there."
