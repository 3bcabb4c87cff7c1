"""A real SQS server on loopback: ministack, a Python package, in a process of its own.

It is not AWS in three points: an expired receipt that nobody has replaced still deletes, a receive with the same
attempt id does not give the same messages again, and a receive whose client was killed waits on and takes messages.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import boto3.session
import pytest

from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.queues.sqs import SqsQueue
from tests.contracts.storage.backends.serving import served
from tests.real_parts import missing

REGION = "us-east-1"
SURROUNDINGS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "NO_PROXY": "127.0.0.1",
}


@dataclass(frozen=True)
class SqsSite:
    url: str
    endpoint: str

    def open(self, visibility_s: int) -> SqsQueue:
        return SqsQueue(self.url, visibility_s, region=REGION, endpoint=self.endpoint)

    def words(self) -> Sequence[str]:
        return ("sqs", self.url, self.endpoint)


class Ministack:
    refuses_expired = False

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._client = boto3.session.Session(region_name=REGION).client("sqs", endpoint_url=endpoint)
        self._numbers = count(1)

    async def site(self) -> SqsSite:
        return self.site_with(QUEUE_RECEIVES)

    def site_with(self, max_receives: int, **attributes: str) -> SqsSite:
        """A queue as somebody else set it up; 0: without dead letters."""
        number = next(self._numbers)
        if max_receives:
            arn = self._arn(self.create(f"dead-{number}.fifo"))
            policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "{max_receives}"}}'
            attributes = {"RedrivePolicy": policy, **attributes}
        return SqsSite(self.create(f"orders-{number}.fifo", **attributes), self.endpoint)

    def create(self, name: str, **attributes: str) -> str:
        """The address of a new queue; a FIFO one unless its name says otherwise."""
        kind = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        return str(self._client.create_queue(QueueName=name, Attributes={**kind, **attributes})["QueueUrl"])

    def send(self, url: str, body: str) -> None:
        """Into a queue that is no FIFO one."""
        self._client.send_message(QueueUrl=url, MessageBody=body)

    def _arn(self, url: str) -> str:
        answer = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"])

    def close(self) -> None:
        self._client.close()


@contextmanager
def serving(folder: Path) -> Iterator[Ministack]:
    """Start one; whoever uses it sets SURROUNDINGS."""
    if find_spec("ministack") is None:
        missing("ministack is not installed: it is one of the development dependencies.")

    def words(port: int) -> Sequence[str]:
        return ("env", f"GATEWAY_PORT={port}", sys.executable, "-m", "ministack")

    with ExitStack() as running:
        with pytest.MonkeyPatch.context() as patch:
            _set_surroundings(patch)
            given = {**os.environ, "SERVICES": "sqs,s3", "BIND_HOST": "127.0.0.1"}
            port = running.enter_context(served(words, folder, given, _is_healthy))
            server = Ministack(f"http://127.0.0.1:{port}")
        running.callback(server.close)
        yield server


def use(patch: pytest.MonkeyPatch) -> None:
    """Set what a process needs that speaks to one; closing a queue waits for the end of a poll."""
    _set_surroundings(patch)
    patch.setattr("hummingbird.queues.sqs.QUEUE_POLL_S", 1.0)


def _set_surroundings(patch: pytest.MonkeyPatch) -> None:
    for name, value in SURROUNDINGS.items():
        patch.setenv(name, value)


def _is_healthy(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=1):
            return True
    except (URLError, OSError):
        return False
