"""The queue of the cloud (E3): SQS FIFO with a FIFO queue for dead letters. Whoever runs us creates both.

Knows no SNS envelope: a body is a text.
"""

import asyncio
import json
import math
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from hummingbird.adapters.queues.acceptable import check_holdable, check_receivable, check_sendable
from hummingbird.adapters.queues.sqs_calls import SqsCalls
from hummingbird.adapters.queues.unclaimed import Unclaimed
from hummingbird.domain.errors import QueueUnusable, ReceiptExpired, UsageFault
from hummingbird.domain.limits import (
    QUEUE_BATCH,
    QUEUE_BODY_BYTES,
    QUEUE_DEAD_LISTED,
    QUEUE_LISTING_S,
    QUEUE_POLL_S,
    QUEUE_RECEIVES,
)
from hummingbird.ports.queue import DeadLetter, Message, Successor

_SURELY_S = 1.0  # a poll that does not wait asks only some of SQS's servers and may miss what is there
_ASKED_FOR = ["MessageGroupId", "ApproximateReceiveCount"]


class SqsQueue:
    """Whoever receives a message has it for `visibility_s`, unless it is kept. Belongs to one event loop."""

    def __init__(
        self, url: str, visibility_s: int, *, region: str = "", endpoint: str = "", ca_bundle: str = ""
    ) -> None:
        self._url = url
        self._visibility_s = visibility_s
        self._calls = SqsCalls(url, region, endpoint, ca_bundle)
        self._unclaimed = Unclaimed(self._give_back)
        self._looking = asyncio.Lock()
        self._dead_url = ""

    async def send(self, body: str, *, group: str, dedup_id: str) -> str:
        check_sendable(body, group, dedup_id)
        await self._open()
        return await self._send(body, group, dedup_id)

    async def receive(self, most: int, wait_s: float) -> Sequence[Message]:
        check_receivable(most, wait_s)
        self._unclaimed.check_open()
        until = time.monotonic() + wait_s
        while True:
            left = max(0.0, until - time.monotonic())
            messages = await self._unclaimed.claim(self._take(most, left))
            if messages or time.monotonic() >= until or self._unclaimed.is_closing():
                return messages

    async def keep(self, message: Message, seconds: int) -> None:
        check_holdable(seconds, least=1)
        await self._hold(self._url, message, seconds)

    async def postpone(self, message: Message, seconds: int) -> None:
        check_holdable(seconds, least=0)
        await self._hold(self._url, message, seconds)

    async def delete(self, message: Message) -> None:
        await self._calls.call("delete_message", QueueUrl=self._url, ReceiptHandle=message.receipt)

    async def replace(self, messages: Sequence[Message], successors: Sequence[Successor]) -> None:
        """Two requests, however many there are, so that a process that dies is hardly ever in the middle. The first
        message is kept before, which says whether all are still ours and locks the group until the end."""
        for successor in successors:
            check_sendable(successor.body, messages[0].group, successor.dedup_id)
        await self._open()
        await self._hold(self._url, messages[0], self._visibility_s)
        await self._replace(messages, successors)

    async def dead(self) -> Sequence[DeadLetter]:
        """Whoever else looks at the same time sees those that this one does not hold."""
        await self._open()
        async with self._looking, aclosing(self._letters()) as letters:
            return [DeadLetter(letter.id, letter.group, letter.body) async for letter in letters]

    async def retry(self, letter_id: str) -> str:
        """Should we die in between, the letter is still there, and a second retry soon afterwards sends nothing."""
        await self._open()
        async with self._looking, aclosing(self._letters()) as letters:
            letter = await _found(letters, letter_id)
            new_id = await self._send(letter.body, letter.group, f"retry-{letter.id}")
            await self._calls.call("delete_message", QueueUrl=self._dead_url, ReceiptHandle=letter.receipt)
            return new_id

    async def drop(self, letter_id: str) -> None:
        await self._open()
        async with self._looking, aclosing(self._letters()) as letters:
            letter = await _found(letters, letter_id)
            await self._calls.call("delete_message", QueueUrl=self._dead_url, ReceiptHandle=letter.receipt)

    async def check(self) -> None:
        await self._open()
        await self._calls.call("get_queue_attributes", QueueUrl=self._url, AttributeNames=["QueueArn"])

    async def close(self) -> None:
        """May take as long as a poll that is under way."""
        self._unclaimed.begin_closing()
        await self._unclaimed.settled()
        await self._calls.close()

    async def _send(self, body: str, group: str, dedup_id: str) -> str:
        answer = await self._calls.call(
            "send_message",
            QueueUrl=self._url,
            MessageBody=body,
            MessageGroupId=group,
            MessageDeduplicationId=dedup_id,
        )
        return str(answer["MessageId"])

    async def _take(self, most: int, left_s: float) -> Sequence[Message]:
        await self._open()
        return await self._poll(self._url, most, left_s)

    async def _poll(self, url: str, most: int, left_s: float) -> Sequence[Message]:
        """boto3 tries again when the answer is lost; by its attempt's id SQS then gives the same messages again."""
        answer = await self._calls.poll(
            QueueUrl=url,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=math.ceil(min(left_s, QUEUE_POLL_S)),
            VisibilityTimeout=self._visibility_s if url == self._url else QUEUE_LISTING_S,
            MessageSystemAttributeNames=_ASKED_FOR,
            ReceiveRequestAttemptId=str(uuid.uuid4()),
        )
        return [_message(raw) for raw in answer.get("Messages", ())]

    async def _hold(self, url: str, message: Message, seconds: int) -> None:
        await self._calls.call(
            "change_message_visibility", QueueUrl=url, ReceiptHandle=message.receipt, VisibilityTimeout=seconds
        )

    async def _replace(self, messages: Sequence[Message], successors: Sequence[Successor]) -> None:
        group = messages[0].group
        for some in _fitting(successors):
            entries = [
                {"MessageBody": one.body, "MessageGroupId": group, "MessageDeduplicationId": one.dedup_id}
                for one in some
            ]
            await self._calls.call_batch("send_message_batch", self._url, entries)
        receipts = [{"ReceiptHandle": message.receipt} for message in messages]
        await self._calls.call_batch("delete_message_batch", self._url, receipts)

    async def _give_back(self, messages: Sequence[Message]) -> None:
        """Nobody has tried them. Of a group with one that was received for the last time all are sent anew: given back,
        it would be a dead letter. What the receive left in the queue of such a group then comes before them; SQS has no
        other way to keep them. What fails ends it; the rest comes by itself."""
        groups = {message.group for message in messages if message.receives >= QUEUE_RECEIVES}
        for group in groups:
            spent = [message for message in messages if message.group == group]
            await self._replace(spent, [Successor(message.body, f"again-{message.id}") for message in spent])
        for message in messages:
            if message.group not in groups:
                await self._hold(self._url, message, 0)

    async def _letters(self) -> AsyncGenerator[Message, None]:
        """Holds what it gives until it is closed; there is no other way to see more than the first ones."""
        held: list[Message] = []
        try:
            while len(held) < QUEUE_DEAD_LISTED and (some := await self._poll(self._dead_url, QUEUE_BATCH, _SURELY_S)):
                held.extend(some)
                for letter in some:
                    yield letter
        finally:
            for letter in held:
                await self._put_back(letter)

    async def _put_back(self, letter: Message) -> None:
        try:
            await self._hold(self._dead_url, letter, 0)
        except ReceiptExpired:
            return  # it was deleted, or is back already

    async def _open(self) -> None:
        """Finds the queue for dead letters, and out whether both are what the rest relies on. Raises QueueUnusable."""
        if not self._dead_url:
            answer = await self._calls.call("get_queue_attributes", QueueUrl=self._url, AttributeNames=["All"])
            redrive = _checked(self._url, answer["Attributes"])
            *_, owner, name = redrive.dead_letters.split(":")
            found = await self._calls.call("get_queue_url", QueueName=name, QueueOwnerAWSAccountId=owner)
            self._dead_url = str(found["QueueUrl"])


@dataclass(frozen=True, slots=True)
class _Redrive:
    dead_letters: str
    receives: int


def _checked(url: str, attributes: Any) -> _Redrive:
    redrive = _redrive(attributes.get("RedrivePolicy", ""))
    if attributes.get("FifoQueue") != "true":
        raise QueueUnusable(f"The queue {url} is not a FIFO queue; create one whose name ends in .fifo.")
    if attributes.get("DeduplicationScope", "queue") != "queue":
        raise QueueUnusable(f"The queue {url} deduplicates by group; set its DeduplicationScope to queue.")
    if redrive.receives != QUEUE_RECEIVES or not redrive.dead_letters:
        raise QueueUnusable(
            f"The queue {url} needs a RedrivePolicy that names a FIFO queue for dead letters, "
            f"with a maxReceiveCount of {QUEUE_RECEIVES}; set it."
        )
    if int(attributes.get("MaximumMessageSize", QUEUE_BODY_BYTES)) < QUEUE_BODY_BYTES:
        raise QueueUnusable(f"The queue {url} carries too little; set its MaximumMessageSize to {QUEUE_BODY_BYTES}.")
    return redrive


def _redrive(policy: str) -> _Redrive:
    try:
        raw = json.loads(policy or "{}")
        return _Redrive(str(raw.get("deadLetterTargetArn", "")), int(raw.get("maxReceiveCount", 0)))
    except (ValueError, TypeError, AttributeError):
        return _Redrive("", 0)


def _message(raw: Any) -> Message:
    attributes = raw["Attributes"]
    return Message(
        id=str(raw["MessageId"]),
        group=str(attributes["MessageGroupId"]),
        body=str(raw["Body"]),
        receives=int(attributes["ApproximateReceiveCount"]),
        receipt=str(raw["ReceiptHandle"]),
    )


def _fitting(successors: Sequence[Successor]) -> Iterator[Sequence[Successor]]:
    """Cut into what one request can carry."""
    some: list[Successor] = []
    weight = 0
    for one in successors:
        weight += len(one.body.encode())
        if some and (len(some) == QUEUE_BATCH or weight > QUEUE_BODY_BYTES):
            yield some
            some, weight = [], len(one.body.encode())
        some.append(one)
    yield some


async def _found(letters: AsyncGenerator[Message, None], letter_id: str) -> Message:
    async for letter in letters:
        if letter.id == letter_id:
            return letter
    raise UsageFault(f"There is no dead letter {letter_id[:80]!a}; list them to see their ids.")
