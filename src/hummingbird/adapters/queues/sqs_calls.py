"""The one door to boto3: calls to SQS in threads of their own, and its refusals told in sentences.

boto3 and not our own signing: it finds credentials wherever a pod or a laptop has them (roles, files, web identity) and
renews them. It blocks, so polls that wait have other threads than calls that must not wait, heart-beats above all.
It is loaded with the first call: a service without SQS starts without it.
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

from hummingbird.domain.errors import InvalidRequest, PlatformError, QueueUnusable, ReceiptExpired
from hummingbird.domain.limits import (
    CONNECT_TIMEOUT_S,
    ERROR_TEXT_CHARS,
    QUEUE_ANSWER_S,
    QUEUE_ATTEMPTS,
    QUEUE_CALLS,
    QUEUE_POLL_S,
    QUEUE_POLLS,
)
from hummingbird.domain.text import shortened

if TYPE_CHECKING:
    from botocore.config import Config

Answer: TypeAlias = Mapping[str, Any]

_EXPIRED = ("ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidIdFormat")
_UNFIT = ("InvalidMessageContents", "InvalidParameterValue", "MissingParameter")


class SqsCalls:
    """`queue` is its address in sentences. `region` and `endpoint`: empty for what the environment says. `ca_bundle`: a
    file with certificates; empty for what boto3 takes."""

    def __init__(self, queue: str, region: str, endpoint: str, ca_bundle: str = "") -> None:
        self._queue = queue
        self._region = region
        self._endpoint = endpoint
        self._ca_bundle = ca_bundle
        self._polls = ThreadPoolExecutor(QUEUE_POLLS, "sqs-poll")
        self._calls = ThreadPoolExecutor(QUEUE_CALLS, "sqs-call")
        self._opening = threading.Lock()
        self._client: Any = None
        self._closed = False

    async def call(self, verb: str, /, **arguments: object) -> Answer:
        """Raises QueueUnusable, ReceiptExpired, InvalidRequest."""
        return await self._run(self._calls, verb, arguments)

    async def call_batch(self, verb: str, url: str, entries: Sequence[Mapping[str, str]]) -> None:
        """Do the same to several messages with one request. Raises as `call`, also when some of them were refused."""
        numbered = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
        answer = await self.call(verb, QueueUrl=url, Entries=numbered)
        for failed in answer.get("Failed", ()):
            raise self._refusal(str(failed.get("Code", "")), str(failed.get("Message", "")))

    async def poll(self, **arguments: object) -> Answer:
        """A receive that waits. Raises as `call`."""
        return await self._run(self._polls, "receive_message", arguments)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._polls.shutdown()
        self._calls.shutdown()
        if self._client is not None:
            self._client.close()

    async def _run(self, threads: ThreadPoolExecutor, verb: str, arguments: Mapping[str, object]) -> Answer:
        if self._closed:
            raise QueueUnusable(f"The queue {self._queue} is closed; open it again to use it.")
        return await asyncio.get_running_loop().run_in_executor(threads, self._answer, verb, arguments)

    def _answer(self, verb: str, arguments: Mapping[str, object]) -> Answer:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as the module says

        try:
            answer: Answer = getattr(self._opened(), verb)(**arguments)
        except ClientError as error:
            complaint = error.response.get("Error", {})
            raise self._refusal(str(complaint.get("Code", "")), str(complaint.get("Message", ""))) from error
        except (BotoCoreError, ValueError) as error:  # boto3 has no class of its own for an address that is none
            raise QueueUnusable(
                f"The queue {self._queue} cannot be reached: {_words(error).rstrip('.')}. "
                "Check its address, the region, the network and the credentials."
            ) from error
        return answer

    def _opened(self) -> Any:
        """Takes some tenths of a second, and must not happen twice at once: sessions are not safe for threads."""
        with self._opening:
            if self._client is None:
                import boto3.session  # noqa: PLC0415 - as the module says

                self._client = boto3.session.Session(region_name=self._region or None).client(
                    "sqs", endpoint_url=self._endpoint or None, verify=self._ca_bundle or None, config=_settings()
                )
            return self._client

    def _refusal(self, code: str, words: str) -> PlatformError:
        code = code.rpartition(".")[2]
        if code in _EXPIRED or (code == "InvalidParameterValue" and "ReceiptHandle" in words):
            return ReceiptExpired("A message was held for too long or is gone; leave it to whoever receives it next.")
        if code in _UNFIT:
            return InvalidRequest(f"The queue {self._queue} does not take this: {_words(words)} Send something else.")
        if code in ("NonExistentQueue", "QueueDoesNotExist"):
            return QueueUnusable(f"There is no queue {self._queue}; create it, or correct its address.")
        if "Throttl" in code:
            return QueueUnusable(f"The queue {self._queue} is asked too often; ask less often, or raise its limits.")
        return QueueUnusable(
            f"The queue {self._queue} refused a call ({_words(code)}): {_words(words)} Check what its policy allows."
        )


def _settings() -> "Config":
    from botocore.config import Config  # noqa: PLC0415 - as the module says

    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=QUEUE_POLL_S + QUEUE_ANSWER_S,
        retries={"total_max_attempts": QUEUE_ATTEMPTS, "mode": "standard"},
        max_pool_connections=QUEUE_POLLS + QUEUE_CALLS,
    )


def _words(said: object) -> str:
    printable = "".join(char if char.isprintable() else " " for char in str(said))
    return shortened(printable, ERROR_TEXT_CHARS)
