"""SQS FIFO as a simulated service, below the real `SqsQueue`: what AWS documents, with all that it leaves open.

A poll may return fewer groups than there are, in any order, but as many messages of each as fit. A poll whose client
died may still take messages. Deleting and extending need the latest receipt, and the message must still be in flight.
"""

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hummingbird.core.errors import QueueUnusable
from hummingbird.core.limits import QUEUE_ANSWER_S, QUEUE_DEDUP_S, QUEUE_HELD_S, QUEUE_RECEIVES
from hummingbird.queues.sqs import SqsClient, SqsQueue, SqsResponse
from tests.simulation.event_loop import PROCESS
from tests.simulation.network import AnswerLostError, BusyError, Network, NotDoneError

URL, DEAD_URL = "https://sqs.simulated/orders.fifo", "https://sqs.simulated/dead.fifo"
ATTEMPTS = 2
_ATTEMPT_PAUSE_S = 0.5
_REDRIVE = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:simulated:1:dead.fifo", "maxReceiveCount": QUEUE_RECEIVES})


class SqsRefusalError(Exception):
    """SQS answered with an error."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code, self.words = code, words


@dataclass(slots=True)
class SqsMessage:
    """A message on a queue; `visible_at` lies in the future while it is in flight."""

    id: str
    group: str
    body: str
    receives: int = 0
    visible_at: float = 0.0
    receipt: str = ""
    received_at: float = 0.0
    holder: str = ""


@dataclass(slots=True)
class _FifoQueue:
    messages: list[SqsMessage] = field(default_factory=list)
    sent: dict[str, tuple[str, float]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


class SimulatedSqs:
    """The service's side: a FIFO queue, and one for its dead letters.

    `short_share` is the share of polls that return fewer messages than there are, `ghost_share` that of polls which
    take messages for a client that has died. Not `strict`, an expired receipt counts until somebody receives the
    message again. `log` has every send, receive and delete, for invariants.
    """

    def __init__(
        self, network: Network, *, short_share: float = 0.0, ghost_share: float = 0.2, strict: bool = True
    ) -> None:
        self._network = network
        self.short_share, self._ghost_share, self._strict = short_share, ghost_share, strict
        self._queues = {URL: _FifoQueue(), DEAD_URL: _FifoQueue()}
        self._numbers = 0
        self.log: list[tuple[float, str, str, SqsMessage]] = []

    @property
    def messages(self) -> list[SqsMessage]:
        return self._queues[URL].messages

    @property
    def dead_letters(self) -> list[SqsMessage]:
        return self._queues[DEAD_URL].messages

    async def answer(self, verb: str, given: Mapping[str, Any], process: str) -> SqsResponse:
        """Carry out a call by boto3's name."""
        url = str(given.get("QueueUrl", ""))
        queue = self._queues.get(url)
        match verb:
            case "get_queue_url":
                return {"QueueUrl": DEAD_URL}
            case "get_queue_attributes":
                return {"Attributes": {"FifoQueue": "true", "RedrivePolicy": _REDRIVE, "QueueArn": "arn"}}
            case "send_message" if queue:
                return {"MessageId": self._send(queue, given, process)}
            case "send_message_batch" if queue:
                return {"Failed": self._each(given, lambda entry: self._send(queue, entry, process))}
            case "delete_message" if queue:
                self._delete(queue, str(given["ReceiptHandle"]), process)
            case "delete_message_batch" if queue:
                return {"Failed": self._each(given, lambda entry: self._delete(queue, entry["ReceiptHandle"], process))}
            case "change_message_visibility_batch" if queue:
                return {
                    "Failed": self._each(
                        given,
                        lambda entry: self._set_visibility(
                            queue, entry["ReceiptHandle"], int(entry["VisibilityTimeout"])
                        ),
                    )
                }
            case "change_message_visibility" if queue:
                self._set_visibility(queue, str(given["ReceiptHandle"]), int(given["VisibilityTimeout"]))
            case "receive_message" if queue:
                return await self._receive(url, queue, given, process)
            case _:
                raise SqsRefusalError("QueueDoesNotExist", "There is no such queue.")
        return {}

    def _each(self, given: Mapping[str, Any], do: Any) -> list[dict[str, str]]:
        failed = []
        for entry in given["Entries"]:
            try:
                do(entry)
            except SqsRefusalError as error:
                failed.append({"Id": entry["Id"], "Code": error.code, "Message": error.words})
        return failed

    def _now(self) -> float:
        return self._network.loop.time()

    def _next(self, what: str) -> str:
        self._numbers += 1
        return f"{what}-{self._numbers}"

    def _send(self, queue: _FifoQueue, given: Mapping[str, Any], process: str) -> str:
        dedup, now = str(given["MessageDeduplicationId"]), self._now()
        known = queue.sent.get(dedup)
        if known is not None and now - known[1] < QUEUE_DEDUP_S:
            return known[0]
        message = SqsMessage(self._next("message"), str(given["MessageGroupId"]), str(given["MessageBody"]))
        queue.sent[dedup] = (message.id, now)
        queue.messages.append(message)
        self.log.append((now, process, "send", message))
        queue.wake()
        return message.id

    def _in_flight(self, queue: _FifoQueue, receipt: str) -> SqsMessage:
        found = next((one for one in queue.messages if one.receipt and one.receipt == receipt), None)
        if found is None or (self._strict and found.visible_at <= self._now()):
            raise SqsRefusalError("ReceiptHandleIsInvalid", "The receipt handle has expired.")
        return found

    def _delete(self, queue: _FifoQueue, receipt: str, process: str) -> None:
        if receipt in queue.deleted:
            return  # deleting again succeeds
        found = self._in_flight(queue, receipt)
        queue.messages.remove(found)
        queue.deleted.add(receipt)
        self.log.append((self._now(), process, "delete", found))
        queue.wake()

    def _set_visibility(self, queue: _FifoQueue, receipt: str, seconds: int) -> None:
        found, now = self._in_flight(queue, receipt), self._now()
        if now + seconds - found.received_at > QUEUE_HELD_S:
            raise SqsRefusalError("InvalidParameterValue", "Total VisibilityTimeout is beyond the limit.")
        found.visible_at = now + seconds
        queue.wake()

    async def _receive(self, url: str, queue: _FifoQueue, given: Mapping[str, Any], process: str) -> SqsResponse:
        until = self._now() + int(given["WaitTimeSeconds"])
        while True:
            changed = queue.changed
            if self._network.loop.is_dead(process) and not self._network.happens(self._ghost_share):
                return {}
            if found := self._take(url, queue, given, process):
                return {"Messages": [_as_boto3(one) for one in found]}
            if (left := until - self._now()) <= 0:
                return {}
            later = [one.visible_at for one in queue.messages if one.visible_at > self._now()]
            await _wait(changed, min(left, min(later, default=until) - self._now() + 0.001))

    def _take(self, url: str, queue: _FifoQueue, given: Mapping[str, Any], process: str) -> list[SqsMessage]:
        now, most = self._now(), int(given["MaxNumberOfMessages"])
        locked = {one.group for one in queue.messages if one.visible_at > now}
        if url == URL:
            for spent in [one for one in queue.messages if one.group not in locked and one.receives >= QUEUE_RECEIVES]:
                self._bury(queue, spent)
        free = [one for one in queue.messages if one.group not in locked]
        if len(free) > 1 and self.short_share and self._network.happens(self.short_share):
            groups = self._network.shuffle(dict.fromkeys(one.group for one in free))
            place = {group: at for at, group in enumerate(groups[: 1 + int(self._network.draw(0, len(groups) - 1))])}
            free = sorted((one for one in free if one.group in place), key=lambda one: place[one.group])
        taken = free[:most]
        for one in taken:
            one.receives += 1
            one.receipt, one.received_at, one.holder = self._next("receipt"), now, process
            one.visible_at = now + int(given["VisibilityTimeout"])
            self.log.append((now, process, "receive", one))
        return taken

    def _bury(self, queue: _FifoQueue, spent: SqsMessage) -> None:
        queue.messages.remove(spent)
        letter = SqsMessage(spent.id, spent.group, spent.body, receives=spent.receives)
        self._queues[DEAD_URL].messages.append(letter)
        self.log.append((self._now(), "", "bury", spent))
        self._queues[DEAD_URL].wake()


async def _wait(changed: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await changed.wait()
    except TimeoutError:
        return


def _as_boto3(one: SqsMessage) -> dict[str, Any]:
    attributes = {"MessageGroupId": one.group, "ApproximateReceiveCount": str(one.receives)}
    return {"MessageId": one.id, "Body": one.body, "ReceiptHandle": one.receipt, "Attributes": attributes}


class _SimulatedSqsClient(SqsClient):
    """Calls the simulated service instead of boto3, and repeats a call like boto3."""

    def __init__(self, network: Network, service: SimulatedSqs) -> None:
        super().__init__(URL, "", "")
        self._network, self._service = network, service

    async def _run(self, threads: ThreadPoolExecutor, verb: str, arguments: Mapping[str, object]) -> SqsResponse:
        if self._closed:
            raise QueueUnusable(f"The queue {URL} is closed; open it again to use it.")
        process = PROCESS.get()
        patience_s = float(str(arguments.get("WaitTimeSeconds", 0))) + QUEUE_ANSWER_S
        for attempt in range(ATTEMPTS):
            try:
                async with asyncio.timeout(patience_s):
                    return await self._network.exchange(
                        "queue", verb, lambda: self._service.answer(verb, arguments, process), writes=_is_write(verb)
                    )
            except SqsRefusalError as error:
                raise self._error_from_code(error.code, error.words) from error
            except (NotDoneError, AnswerLostError, BusyError, TimeoutError) as error:
                if attempt == ATTEMPTS - 1:
                    raise QueueUnusable(f"The queue {URL} cannot be reached: {error} Check the network.") from error
                await asyncio.sleep(_ATTEMPT_PAUSE_S)
        raise AssertionError("The last attempt returns or raises.")


def _is_write(verb: str) -> bool:
    return not verb.startswith("get_")


def open_simulated_queue(network: Network, service: SimulatedSqs, visibility_s: int) -> SqsQueue:
    """Return the real queue, on the simulated service."""
    queue = SqsQueue(URL, visibility_s)
    queue._calls = _SimulatedSqsClient(network, service)
    return queue
