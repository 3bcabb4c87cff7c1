"""The queue in the cloud: SQS FIFO with a FIFO dead-letter queue, and the standard SQS queue that events come from.

The operator creates these queues. This is the only module that uses boto3, which finds and renews credentials wherever
a pod or a laptop has them (roles, files, web identity). boto3 is imported with the first call, so that a service
without SQS starts without it.
"""

import asyncio
import json
import math
import os
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hummingbird.core.errors import (
    InvalidRequest,
    PlatformError,
    QueueUnusable,
    ReceiptExpired,
    UsageError,
    require_extra,
)
from hummingbird.core.limits import (
    CONNECT_TIMEOUT_S,
    ERROR_TEXT_CHARS,
    QUEUE_ANSWER_S,
    QUEUE_ATTEMPTS,
    QUEUE_BATCH,
    QUEUE_BODY_BYTES,
    QUEUE_CALLS,
    QUEUE_DEAD_LISTED,
    QUEUE_LISTING_S,
    QUEUE_POLL_S,
    QUEUE_POLLS,
    QUEUE_RECEIVES,
)
from hummingbird.core.protocols.queues import DeadLetter, InboxMessage, QueueMessage, SuccessorMessage
from hummingbird.core.text import shorten_line
from hummingbird.queues.queue_rules import UnclaimedMessages, check_holdable, check_receivable, check_sendable

if TYPE_CHECKING:
    from botocore.config import Config

SqsResponse: TypeAlias = Mapping[str, Any]

_COUNTS = tuple(f"ApproximateNumberOfMessages{which}" for which in ("", "NotVisible", "Delayed"))
_EXPIRED = ("ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidIdFormat")
_UNFIT = ("InvalidMessageContents", "InvalidParameterValue", "MissingParameter")


class SqsClient:
    """Call SQS through boto3 in threads, and translate its errors.

    boto3 blocks, so long polls use other threads than calls that must not wait, such as lease extensions. `queue` is
    the queue's address for messages. An empty `region` or `endpoint` means: what the environment says. `ca_bundle` is
    a file with certificates; empty means boto3's default.
    """

    def __init__(self, queue: str, region: str, endpoint: str, ca_bundle: str = "") -> None:
        """Raises MissingSetting if boto3 is not installed."""
        require_extra("boto3", "aws", "An SQS queue")
        self._queue = queue
        self._region = region
        self._endpoint = endpoint
        self._ca_bundle = ca_bundle
        self._polls = ThreadPoolExecutor(QUEUE_POLLS, "sqs-poll")
        self._calls = ThreadPoolExecutor(QUEUE_CALLS, "sqs-call")
        self._opening = threading.Lock()
        self._client: Any = None
        self._closed = False

    async def call(self, verb: str, /, **arguments: object) -> SqsResponse:
        """Call an SQS operation by boto3's name. Raises QueueUnusable, ReceiptExpired, InvalidRequest."""
        return await self._run(self._calls, verb, arguments)

    async def call_batch(self, verb: str, url: str, entries: Sequence[Mapping[str, str | int]]) -> None:
        """Call an operation for several messages in one request. Raises as `call`, also if SQS refuses only some."""
        numbered = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
        answer = await self.call(verb, QueueUrl=url, Entries=numbered)
        for failed in answer.get("Failed", ()):
            raise self._error_from_code(str(failed.get("Code", "")), str(failed.get("Message", "")))

    async def poll(self, **arguments: object) -> SqsResponse:
        """Receive messages with a long poll, in the threads for polls. Raises as `call`."""
        return await self._run(self._polls, "receive_message", arguments)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._polls.shutdown()
        self._calls.shutdown()
        if self._client is not None:
            self._client.close()

    async def _run(self, threads: ThreadPoolExecutor, verb: str, arguments: Mapping[str, object]) -> SqsResponse:
        if self._closed:
            raise QueueUnusable(f"The queue {self._queue} is closed; open it again to use it.")
        return await asyncio.get_running_loop().run_in_executor(threads, self._call_blocking, verb, arguments)

    def _call_blocking(self, verb: str, arguments: Mapping[str, object]) -> SqsResponse:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as the module says

        try:
            answer: SqsResponse = getattr(self._get_client(), verb)(**arguments)
        except ClientError as error:
            complaint = error.response.get("Error", {})
            raise self._error_from_code(str(complaint.get("Code", "")), str(complaint.get("Message", ""))) from error
        except (BotoCoreError, ValueError) as error:  # boto3 raises ValueError for an invalid address
            raise QueueUnusable(
                f"The queue {self._queue} cannot be reached: {_printable(error).rstrip('.')}. "
                "Check its address, the region, the network and the credentials."
            ) from error
        return answer

    def _get_client(self) -> Any:
        """Return the client; create it once, under a lock, because boto3 sessions are not thread-safe.

        Creating it takes some tenths of a second.
        """
        with self._opening:
            if self._client is None:
                import boto3.session  # noqa: PLC0415 - as the module says

                region = self._region or os.environ.get("AWS_REGION", "")  # boto3 itself reads AWS_DEFAULT_REGION only
                self._client = boto3.session.Session(region_name=region or None).client(
                    "sqs", endpoint_url=self._endpoint or None, verify=self._ca_bundle or None, config=_client_config()
                )
            return self._client

    def _error_from_code(self, code: str, words: str) -> PlatformError:
        code = code.rpartition(".")[2]
        if code in _EXPIRED or (code == "InvalidParameterValue" and "ReceiptHandle" in words):
            return ReceiptExpired("A message was held for too long or is gone; leave it to whoever receives it next.")
        if code in _UNFIT:
            return InvalidRequest(
                f"The queue {self._queue} does not take this: {_printable(words)} Send something else."
            )
        if code in ("NonExistentQueue", "QueueDoesNotExist"):
            return QueueUnusable(f"There is no queue {self._queue}; create it, or correct its address.")
        if "Throttl" in code:
            return QueueUnusable(f"The queue {self._queue} is asked too often; ask less often, or raise its limits.")
        return QueueUnusable(
            f"The queue {self._queue} refused a call ({_printable(code)}): {_printable(words)} Check "
            "what its policy allows."
        )


def _client_config() -> "Config":
    from botocore.config import Config  # noqa: PLC0415 - as the module says

    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=QUEUE_POLL_S + QUEUE_ANSWER_S,
        retries={"total_max_attempts": QUEUE_ATTEMPTS, "mode": "standard"},
        max_pool_connections=QUEUE_POLLS + QUEUE_CALLS,
    )


def _printable(said: object) -> str:
    printable = "".join(char if char.isprintable() else " " for char in str(said))
    return shorten_line(printable, ERROR_TEXT_CHARS)


_LISTING_WAIT_S = 1.0  # a poll without a wait asks only some of SQS's servers and may miss messages
_SYSTEM_ATTRIBUTES = ["MessageGroupId", "ApproximateReceiveCount"]


class SqsQueue:
    """The `Queue` protocol on an SQS FIFO queue.

    A received message is held for `visibility_s` seconds unless its lease is extended. A queue belongs to one event
    loop.
    """

    def __init__(
        self, url: str, visibility_s: int, *, region: str = "", endpoint: str = "", ca_bundle: str = ""
    ) -> None:
        self._url = url
        self._visibility_s = visibility_s
        self._calls = SqsClient(url, region, endpoint, ca_bundle)
        self._unclaimed = UnclaimedMessages(self._return_messages)
        self._listing_lock = asyncio.Lock()
        self._facts: QueueFacts | None = None
        self._dead_url = ""

    @property
    def most_receives(self) -> int:
        """The queue's maxReceiveCount, once it is known and where it is lower than our own count."""
        own = self._facts.max_receives if self._facts else 0
        return min(own, QUEUE_RECEIVES) if own else QUEUE_RECEIVES

    async def send(self, body: str, *, group: str, dedup_id: str) -> str:
        check_sendable(body, group, dedup_id)
        await self._ensure_open()
        return await self._send(body, group, dedup_id)

    async def receive(self, most: int, wait_s: float) -> Sequence[QueueMessage]:
        check_receivable(most, wait_s)
        self._unclaimed.check_open()
        until = time.monotonic() + wait_s
        while True:
            left = max(0.0, until - time.monotonic())
            messages = await self._unclaimed.claim(self._receive_now(most, left))
            if messages or time.monotonic() >= until or self._unclaimed.is_closing():
                return messages

    async def extend_lease(self, message: QueueMessage, seconds: int) -> None:
        check_holdable(seconds, least=1)
        await self._set_visibility(self._url, message, seconds)

    async def postpone(self, message: QueueMessage, seconds: int) -> None:
        check_holdable(seconds, least=0)
        await self._set_visibility(self._url, message, seconds)

    async def delete(self, message: QueueMessage) -> None:
        await self._calls.call("delete_message", QueueUrl=self._url, ReceiptHandle=message.receipt)

    async def bury(self, message: QueueMessage) -> bool:
        """Give the message up, whatever maxReceiveCount says.

        A queue that would move it with the next receive is left to do so: that keeps the message's id and needs no
        right to send to the other queue. Without that right, a message goes round until its maxReceiveCount is reached.
        """
        facts = await self._ensure_open()
        if facts.max_receives and message.receives >= facts.max_receives:
            await self._set_visibility(self._url, message, 0)
            return True
        if not facts.dead_letters:
            await self.delete(message)
            return False
        try:
            await self._calls.call(
                "send_message",
                QueueUrl=await self._find_dead_letters(),
                MessageBody=message.body,
                MessageGroupId=message.group,
                MessageDeduplicationId=f"dead-{message.id}",
            )
        except QueueUnusable:
            await self._set_visibility(self._url, message, 0)
        else:
            await self.delete(message)
        return True

    async def replace(self, messages: Sequence[QueueMessage], successors: Sequence[SuccessorMessage]) -> None:
        """Send the successors, then delete the messages.

        Batches keep the requests few, so that a crash rarely happens between them. Extending all leases beforehand
        shows whether the messages are still ours, and locks the group until the end.
        """
        for successor in successors:
            check_sendable(successor.body, messages[0].group, successor.dedup_id)
        await self._ensure_open()
        await self._extend_all(messages)
        await self._replace(messages, successors)

    async def _extend_all(self, messages: Sequence[QueueMessage]) -> None:
        entries: list[Mapping[str, str | int]] = [
            {"ReceiptHandle": message.receipt, "VisibilityTimeout": self._visibility_s} for message in messages
        ]
        await self._calls.call_batch("change_message_visibility_batch", self._url, entries)

    async def count_messages(self) -> int:
        answer = await self._calls.call("get_queue_attributes", QueueUrl=self._url, AttributeNames=list(_COUNTS))
        found = answer.get("Attributes", {})
        return sum(int(found.get(name, 0)) for name in _COUNTS)

    async def list_dead_letters(self) -> Sequence[DeadLetter]:
        """List the dead letters. Listing receives them, so another listing at the same time sees only the others."""
        if not await self._find_dead_letters():
            return ()
        async with self._listing_lock, aclosing(self._receive_dead_letters()) as letters:
            return [DeadLetter(letter.id, letter.group, letter.body) async for letter in letters]

    async def retry_dead_letter(self, letter_id: str) -> str:
        """Send the letter again, then delete it.

        After a crash between the two the letter is still there; the deduplication id keeps a second retry soon
        afterwards from sending it twice.
        """
        await self._find_dead_letters()
        async with self._listing_lock, aclosing(self._receive_dead_letters()) as letters:
            letter = await _find_letter(letters, letter_id)
            new_id = await self._send(letter.body, letter.group, f"retry-{letter.id}")
            await self._calls.call("delete_message", QueueUrl=self._dead_url, ReceiptHandle=letter.receipt)
            return new_id

    async def delete_dead_letter(self, letter_id: str) -> None:
        await self._find_dead_letters()
        async with self._listing_lock, aclosing(self._receive_dead_letters()) as letters:
            letter = await _find_letter(letters, letter_id)
            await self._calls.call("delete_message", QueueUrl=self._dead_url, ReceiptHandle=letter.receipt)

    async def find_weaknesses(self) -> Sequence[str]:
        """Return what could be better about the queue, a sentence each; the service works all the same."""
        return (await self._ensure_open()).weaknesses()

    async def check(self) -> None:
        await self._ensure_open()
        await self._calls.call("get_queue_attributes", QueueUrl=self._url, AttributeNames=["QueueArn"])

    async def close(self) -> None:
        """Close the queue. This may take as long as a poll that is under way."""
        self._unclaimed.begin_closing()
        await self._unclaimed.wait_until_returned()
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

    async def _receive_now(self, most: int, left_s: float) -> Sequence[QueueMessage]:
        await self._ensure_open()
        return await self._poll(self._url, most, left_s)

    async def _poll(self, url: str, most: int, left_s: float) -> Sequence[QueueMessage]:
        """Receive messages once.

        boto3 repeats a request whose response was lost; the attempt id makes SQS return the same messages again.
        """
        answer = await self._calls.poll(
            QueueUrl=url,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=math.ceil(min(left_s, QUEUE_POLL_S)),
            VisibilityTimeout=self._visibility_s if url == self._url else QUEUE_LISTING_S,
            MessageSystemAttributeNames=_SYSTEM_ATTRIBUTES,
            ReceiveRequestAttemptId=str(uuid.uuid4()),
        )
        return [_message_from_sqs(raw) for raw in answer.get("Messages", ())]

    async def _set_visibility(self, url: str, message: QueueMessage, seconds: int) -> None:
        await self._calls.call(
            "change_message_visibility", QueueUrl=url, ReceiptHandle=message.receipt, VisibilityTimeout=seconds
        )

    async def _replace(self, messages: Sequence[QueueMessage], successors: Sequence[SuccessorMessage]) -> None:
        """Send the successors and delete the messages, the first one last: while it is in flight, its group is locked.

        Deleting it while another one stays would let that one overtake the successor.
        """
        group, began = messages[0].group, time.monotonic()
        for some in _split_batches(successors):
            entries: list[Mapping[str, str | int]] = [
                {"MessageBody": one.body, "MessageGroupId": group, "MessageDeduplicationId": one.dedup_id}
                for one in some
            ]
            await self._calls.call_batch("send_message_batch", self._url, entries)
        if time.monotonic() - began > self._visibility_s / 2:
            await self._extend_all(messages)
        behind: list[Mapping[str, str | int]] = [{"ReceiptHandle": message.receipt} for message in messages[1:]]
        if behind:
            await self._calls.call_batch("delete_message_batch", self._url, behind)
        await self.delete(messages[0])

    async def _return_messages(self, messages: Sequence[QueueMessage]) -> None:
        """Make messages that nobody has worked on available again.

        A message in its last allowed receive would become a dead letter, so all messages of its group are sent anew.
        Messages of that group that were not received then come before them; SQS offers no way to avoid that. The first
        failure ends the loop, and the remaining messages come back after their visibility timeout.
        """
        groups = {message.group for message in messages if message.receives >= self.most_receives}
        for group in groups:
            spent = [message for message in messages if message.group == group]
            await self._replace(spent, [SuccessorMessage(message.body, f"again-{message.id}") for message in spent])
        for message in messages:
            if message.group not in groups:
                await self._set_visibility(self._url, message, 0)

    async def _receive_dead_letters(self) -> AsyncGenerator[QueueMessage, None]:
        """Yield dead letters and hold them until the generator closes; otherwise SQS would repeat the first ones."""
        held: list[QueueMessage] = []
        try:
            while len(held) < QUEUE_DEAD_LISTED and (
                some := await self._poll(self._dead_url, QUEUE_BATCH, _LISTING_WAIT_S)
            ):
                held.extend(some)
                for letter in some:
                    yield letter
        finally:
            for letter in held:
                await self._return_letter(letter)

    async def _return_letter(self, letter: QueueMessage) -> None:
        try:
            await self._set_visibility(self._dead_url, letter, 0)
        except ReceiptExpired:
            return  # it was deleted, or its visibility timeout has ended

    async def _ensure_open(self) -> "QueueFacts":
        """Return what the queue is like, asked once. Raises QueueUnusable if it is not a FIFO queue."""
        if self._facts is None:
            answer = await self._calls.call("get_queue_attributes", QueueUrl=self._url, AttributeNames=["All"])
            self._facts = _read_attributes(self._url, answer["Attributes"])
        return self._facts

    async def _find_dead_letters(self) -> str:
        """Return the address of the queue of dead letters; empty if there is none. Raises QueueUnusable."""
        facts = await self._ensure_open()
        if facts.dead_letters and not self._dead_url:
            *_, owner, name = facts.dead_letters.split(":")
            found = await self._calls.call("get_queue_url", QueueName=name, QueueOwnerAWSAccountId=owner)
            self._dead_url = str(found["QueueUrl"])
        return self._dead_url


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """How the operator set a queue up.

    `dead_letters` is the ARN of the queue of dead letters, empty without one. `max_receives` is its maxReceiveCount, 0
    without a redrive policy.
    """

    url: str
    dead_letters: str
    max_receives: int
    max_bytes: int

    def weaknesses(self) -> Sequence[str]:
        found = []
        if not self.dead_letters:
            found.append(
                f"{self.url} has no queue for dead letters: work that fails {QUEUE_RECEIVES} times is deleted, and "
                "`hummingbird queue list` cannot show it. Give it a RedrivePolicy."
            )
        elif self.max_receives < QUEUE_RECEIVES:
            found.append(
                f"{self.url} has a maxReceiveCount of {self.max_receives}: work whose process dies as often is given "
                f"up before its {QUEUE_RECEIVES} tries. Set it to {QUEUE_RECEIVES} or more."
            )
        if self.max_bytes < QUEUE_BODY_BYTES:
            found.append(
                f"{self.url} carries messages of {self.max_bytes} bytes, and larger ones are refused: set its "
                f"MaximumMessageSize to {QUEUE_BODY_BYTES}."
            )
        return found


def _read_attributes(url: str, attributes: Any) -> QueueFacts:
    if attributes.get("FifoQueue") != "true":
        raise QueueUnusable(f"The queue {url} is not a FIFO queue; create one whose name ends in .fifo.")
    dead_letters, receives = _parse_redrive_policy(attributes.get("RedrivePolicy", ""))
    return QueueFacts(url, dead_letters, receives, int(attributes.get("MaximumMessageSize", QUEUE_BODY_BYTES)))


def _parse_redrive_policy(policy: str) -> tuple[str, int]:
    """Return the ARN of the dead letters and the maxReceiveCount; nothing for what is not a policy."""
    try:
        raw = json.loads(policy or "{}")
        found = str(raw.get("deadLetterTargetArn", "")), int(raw.get("maxReceiveCount", 0))
    except (ValueError, TypeError, AttributeError):
        return "", 0
    return found if all(found) else ("", 0)


def _message_from_sqs(raw: Any) -> QueueMessage:
    attributes = raw["Attributes"]
    return QueueMessage(
        id=str(raw["MessageId"]),
        group=str(attributes["MessageGroupId"]),
        body=str(raw["Body"]),
        receives=int(attributes["ApproximateReceiveCount"]),
        receipt=str(raw["ReceiptHandle"]),
    )


def _split_batches(successors: Sequence[SuccessorMessage]) -> Iterator[Sequence[SuccessorMessage]]:
    """Split the messages into batches that one request can carry."""
    some: list[SuccessorMessage] = []
    weight = 0
    for one in successors:
        weight += len(one.body.encode())
        if some and (len(some) == QUEUE_BATCH or weight > QUEUE_BODY_BYTES):
            yield some
            some, weight = [], len(one.body.encode())
        some.append(one)
    yield some


async def _find_letter(letters: AsyncGenerator[QueueMessage, None], letter_id: str) -> QueueMessage:
    async for letter in letters:
        if letter.id == letter_id:
            return letter
    raise UsageError(f"There is no dead letter {letter_id[:80]!a}; list them to see their ids.")


class SqsInbox:
    """The `Inbox` protocol on a standard SQS queue that SNS or another service fills.

    The operator creates the queue and sets its visibility timeout. An empty `region` or `endpoint` means: what the
    environment says. `ca_bundle` is a file with certificates. An inbox belongs to one event loop.
    """

    def __init__(self, url: str, *, region: str = "", endpoint: str = "", ca_bundle: str = "") -> None:
        self._url = url
        self._calls = SqsClient(url, region, endpoint, ca_bundle)
        self._unclaimed = UnclaimedMessages(self._return_messages)

    async def receive(self, wait_s: float) -> Sequence[InboxMessage]:
        self._unclaimed.check_open()
        until = time.monotonic() + wait_s
        while True:
            letters = await self._unclaimed.claim(self._poll(max(0.0, until - time.monotonic())))
            if letters or time.monotonic() >= until or self._unclaimed.is_closing():
                return letters

    async def _poll(self, left_s: float) -> Sequence[InboxMessage]:
        answer = await self._calls.poll(
            QueueUrl=self._url,
            MaxNumberOfMessages=QUEUE_BATCH,
            WaitTimeSeconds=math.ceil(min(left_s, QUEUE_POLL_S)),
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return [_letter_from_sqs(raw) for raw in answer.get("Messages", ())]

    async def delete(self, letter: InboxMessage) -> None:
        try:
            await self._calls.call("delete_message", QueueUrl=self._url, ReceiptHandle=letter.receipt)
        except ReceiptExpired:
            return  # the event comes again, and its identity shows that it was handled

    async def close(self) -> None:
        """Close the inbox. This may take as long as a poll that is under way."""
        self._unclaimed.begin_closing()
        await self._unclaimed.wait_until_returned()
        await self._calls.close()

    async def _return_messages(self, letters: Sequence[InboxMessage]) -> None:
        """Make messages available again, unless they were received before.

        If many replicas stop together, each could receive and return a message in turn, and it would soon be a dead
        letter.
        """
        for letter in letters:
            if letter.receives == 1:
                await self._calls.call(
                    "change_message_visibility", QueueUrl=self._url, ReceiptHandle=letter.receipt, VisibilityTimeout=0
                )


def _letter_from_sqs(raw: Any) -> InboxMessage:
    attributes = raw.get("MessageAttributes", {})
    return InboxMessage(
        id=str(raw["MessageId"]),
        body=str(raw["Body"]),
        receives=int(raw["Attributes"]["ApproximateReceiveCount"]),
        receipt=str(raw["ReceiptHandle"]),
        attributes={name: str(one["StringValue"]) for name, one in attributes.items() if "StringValue" in one},
    )
