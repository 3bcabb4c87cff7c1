"""What a stage may do to a worker."""

import asyncio

from hummingbird.core.errors import GitLabUnavailable, GitLabWriteUncertain, SandboxUnavailable
from hummingbird.core.orders import WorkOrder
from hummingbird.core.protocols.queues import QueueMessage
from hummingbird.service.envelopes import parse_envelope
from tests.service.working import Deed


async def down(one: WorkOrder) -> None:
    raise SandboxUnavailable("The cluster is away; try again later.")


async def away(one: WorkOrder) -> None:
    raise GitLabUnavailable("GitLab is away.")


async def doubtful(one: WorkOrder) -> None:
    raise GitLabWriteUncertain("Whether GitLab has it, nobody knows.")


async def forever(one: WorkOrder) -> None:
    await asyncio.Event().wait()


def bodies(messages: list[QueueMessage]) -> list[tuple[str, int, int]]:
    found = [(parse_envelope(message.body), message.receives) for message in messages]
    return [(one.id, one.waits, receives) for one, receives in found if isinstance(one, WorkOrder)]


async def done(one: WorkOrder) -> None:
    return None


def held_by(release: asyncio.Event) -> Deed:
    async def deed(one: WorkOrder) -> None:
        await release.wait()

    return deed


def told_when_cancelled(stopped: asyncio.Event) -> Deed:
    async def deed(one: WorkOrder) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    return deed
