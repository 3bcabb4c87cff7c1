"""A standard SQS queue that SNS or others fill (E1). Whoever runs us creates it and says how long a receive holds."""

import math
import time
from collections.abc import Sequence
from typing import Any

from hummingbird.adapters.queues.sqs_calls import SqsCalls
from hummingbird.adapters.queues.unclaimed import Unclaimed
from hummingbird.domain.errors import ReceiptExpired
from hummingbird.domain.limits import QUEUE_BATCH, QUEUE_POLL_S
from hummingbird.ports.inbox import Letter


class SqsInbox:
    """`region` and `endpoint`: empty for what the environment says. `ca_bundle`: a file with certificates. Belongs to
    one event loop."""

    def __init__(self, url: str, *, region: str = "", endpoint: str = "", ca_bundle: str = "") -> None:
        self._url = url
        self._calls = SqsCalls(url, region, endpoint, ca_bundle)
        self._unclaimed = Unclaimed(self._give_back)

    async def receive(self, wait_s: float) -> Sequence[Letter]:
        self._unclaimed.check_open()
        until = time.monotonic() + wait_s
        while True:
            letters = await self._unclaimed.claim(self._poll(max(0.0, until - time.monotonic())))
            if letters or time.monotonic() >= until or self._unclaimed.is_closing():
                return letters

    async def _poll(self, left_s: float) -> Sequence[Letter]:
        answer = await self._calls.poll(
            QueueUrl=self._url,
            MaxNumberOfMessages=QUEUE_BATCH,
            WaitTimeSeconds=math.ceil(min(left_s, QUEUE_POLL_S)),
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return [_letter(raw) for raw in answer.get("Messages", ())]

    async def delete(self, letter: Letter) -> None:
        try:
            await self._calls.call("delete_message", QueueUrl=self._url, ReceiptHandle=letter.receipt)
        except ReceiptExpired:
            return  # it comes again, and is recognised by its identity

    async def close(self) -> None:
        """May take as long as a poll that is under way."""
        self._unclaimed.begin_closing()
        await self._unclaimed.settled()
        await self._calls.close()

    async def _give_back(self, letters: Sequence[Letter]) -> None:
        """Once: of many replicas that stop together each would get it, and it would soon be a dead letter."""
        for letter in letters:
            if letter.receives == 1:
                await self._calls.call(
                    "change_message_visibility", QueueUrl=self._url, ReceiptHandle=letter.receipt, VisibilityTimeout=0
                )


def _letter(raw: Any) -> Letter:
    attributes = raw.get("MessageAttributes", {})
    return Letter(
        id=str(raw["MessageId"]),
        body=str(raw["Body"]),
        receives=int(raw["Attributes"]["ApproximateReceiveCount"]),
        receipt=str(raw["ReceiptHandle"]),
        attributes={name: str(one["StringValue"]) for name, one in attributes.items() if "StringValue" in one},
    )
