"""Where the work is done and kept: sandbox, state folder, queue, store. Whatever a check makes, it takes away."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from hummingbird.adapters.queues.sqlite import SqliteQueue
from hummingbird.adapters.queues.sqs_calls import SqsCalls
from hummingbird.adapters.sandboxes.check import self_check
from hummingbird.adapters.sandboxes.registry import Sandboxes
from hummingbird.adapters.stores.objects import BucketObjects, objects_at
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.assembly.places import HOME_VARIABLE, Places, places
from hummingbird.assembly.queueing import open_queue, region_of
from hummingbird.assembly.sandboxes import wanted_sandbox
from hummingbird.domain.errors import ObjectsUnusable, PlatformError
from hummingbird.domain.limits import DOCTOR_FREE_BYTES, DOCTOR_FREE_LEAST_BYTES, QUEUE_TAKEN_S
from hummingbird.ports.objects import Objects, VersionedObjects
from hummingbird.ports.queue import Queue

_MIB = 1024 * 1024


def place_checks(patient: Patient) -> Iterator[Check]:
    yield Check("sandbox", lambda: _sandbox(patient))
    yield Check("state folder", lambda: _state(patient))
    yield Check("queue", lambda: _queue(patient))
    if patient.settings.sqs_queue_url:
        yield Check("events' queue", lambda: _events(patient))
    yield Check("store", lambda: _store(patient))


async def _sandbox(patient: Patient) -> Findings:
    wanted, warnings = wanted_sandbox(patient.settings, patient.chosen), list[str]()
    sandboxes = Sandboxes(wanted, patient.environment, SystemClock(), warnings.append)
    try:
        await sandboxes.open()
        async with aclosing(self_check(sandboxes.make())) as lines:
            fault = ""
            async for line in lines:
                fault = line.fault
        if fault:
            yield Standing.FAIL, f"A {wanted.backend} sandbox does not keep its promises: {fault}"
        else:
            yield Standing.OK, f"A {wanted.backend} sandbox starts and keeps what it promises."
        for warning in warnings:
            yield Standing.WARN, warning
    finally:
        await sandboxes.close()


async def _state(patient: Patient) -> Findings:
    there = places(patient.settings, patient.environment)
    for folder in dict.fromkeys((there.state, there.sessions)):
        yield await asyncio.to_thread(_folder, folder)


def _folder(folder: Path) -> tuple[Standing, str]:
    nearest = _nearest(folder)
    how = f"set {HOME_VARIABLE} to a folder that this user may write to, or give it this one"
    try:
        with TemporaryDirectory(dir=nearest, prefix=".doctor-") as probe:
            (Path(probe) / "probe").write_bytes(b"probe")
        free = shutil.disk_usage(nearest).free
    except OSError as error:
        return Standing.FAIL, f"{folder} cannot be written ({os.strerror(error.errno or 0)}): {how}."
    words = f"{free // _MIB:,} MiB are free for {folder}"
    if free < DOCTOR_FREE_LEAST_BYTES:
        return Standing.FAIL, f"Only {words}: make room."
    if free < DOCTOR_FREE_BYTES:
        return Standing.WARN, f"Only {words}: make room soon."
    made = "can be written" if folder == nearest else "will be made when it is needed"
    return Standing.OK, f"{folder} {made}; {free // _MIB:,} MiB are free."


def _nearest(folder: Path) -> Path:
    """The folder itself, or the first one above it that is there."""
    return next((one for one in (folder, *folder.parents) if is_there(one)), Path(folder.anchor))


def is_there(path: Path) -> bool:
    """What this user may not look at is not there for us."""
    try:
        return path.exists()
    except OSError:
        return False


async def _queue(patient: Patient) -> Findings:
    """An old queue is opened and its dead letters are counted, which reads and writes; where there is none yet, a
    message goes through another one beside it. Nothing is sent through the real one: somebody might receive it."""
    there = places(patient.settings, patient.environment)
    if not patient.settings.sqs_fifo_queue_url and not is_there(there.queue):
        await _tried_beside(there)
        yield Standing.OK, f"{there.queue} will be made when it is needed; a queue works there."
        return
    queue = open_queue(patient.settings, patient.environment)
    try:
        dead = len(await queue.dead())
    finally:
        await queue.close()
    yield Standing.OK, f"{patient.settings.sqs_fifo_queue_url or there.queue} can be used."
    if dead:
        words = "One message was" if dead == 1 else f"{dead} messages were"
        yield Standing.WARN, f"{words} given up: see `hummingbird queue list`."


async def _tried_beside(there: Places) -> None:
    """Raises PlatformError."""
    with beside(there.queue) as folder:
        queue = SqliteQueue(Path(folder) / there.queue.name, QUEUE_TAKEN_S)
        try:
            await _passed_through(queue)
        finally:
            await queue.close()


def beside(wanted: Path) -> "TemporaryDirectory[str]":
    """Raises PlatformError."""
    try:
        return TemporaryDirectory(dir=_nearest(wanted), prefix=".doctor-")
    except OSError as error:
        raise PlatformError(
            f"{wanted} cannot be made ({os.strerror(error.errno or 0)}): set {HOME_VARIABLE} to a folder that this "
            "user may write to."
        ) from error


async def _passed_through(queue: Queue) -> None:
    """Raises PlatformError."""
    name = uuid4().hex
    await queue.send(name, group=name, dedup_id=name)
    received = await queue.receive(1, 0)
    if [message.body for message in received] != [name]:
        raise PlatformError("A message that was sent did not come back: see whether the disk works.")
    await queue.delete(received[0])


async def _events(patient: Patient) -> Findings:
    url = patient.settings.sqs_queue_url
    calls = SqsCalls(url, region_of(url), "", patient.settings.ca_bundle)
    try:
        await calls.call("get_queue_attributes", QueueUrl=url, AttributeNames=["QueueArn"])
        yield Standing.OK, f"{url} can be reached."
    finally:
        await calls.close()


async def _store(patient: Patient) -> Findings:
    """Something is put there, taken back and removed; beside it, where a folder is not there yet."""
    there = places(patient.settings, patient.environment)
    folder = Path(there.objects)
    if there.remote or is_there(folder):
        objects = objects_at(there.objects, ca_bundle=patient.settings.ca_bundle)
        await _kept(objects)
        yield Standing.OK, f"{there.objects} keeps what is put there."
        if isinstance(objects, BucketObjects):
            await check_conditions(objects)
            yield Standing.OK, f"{there.objects} tells who was first."
        return
    with beside(folder) as name:
        await _kept(objects_at(name))
    yield Standing.OK, f"{folder} will be made when it is needed; a store works there."


async def check_conditions(objects: VersionedObjects) -> None:
    """Sessions of several hosts rest on it (S1). Raises ObjectsUnusable."""
    name = f"doctor-{uuid4().hex}"
    try:
        first = await objects.swap(name, b"first", None)
        second = await objects.swap(name, b"second", None)
        third = await objects.swap(name, b"third", first)
        fourth = await objects.swap(name, b"fourth", first)
    finally:
        await objects.delete(name)
    if first is None or third is None or second or fourth:
        raise ObjectsUnusable(
            "The store writes whatever the condition says, so two hosts could go on with one session: use one that "
            "keeps If-None-Match and If-Match, as S3, Google and Azure do."
        )


async def _kept(objects: Objects) -> None:
    """Raises ObjectsUnusable."""
    name, content = f"doctor-{uuid4().hex}", uuid4().bytes
    await objects.put(name, content)
    found = await objects.get(name)
    await objects.delete(name)
    if found != content:
        raise ObjectsUnusable("What was put into the store did not come back the same: see what else writes to it.")
