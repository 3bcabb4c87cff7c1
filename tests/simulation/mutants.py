"""Break a promise of the service on purpose: a simulation that does not notice would prove nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec

from hummingbird.gitlab.http_client import GitLabHttpClient, GitLabHttpResponse, GitLabRequest
from hummingbird.queues.sqs import SqsQueue
from hummingbird.service import publisher
from hummingbird.service.message_lease import MessageLease
from hummingbird.service.worker import Worker
from hummingbird.storage import bucket_journal


@contextmanager
def without_lease_check() -> Iterator[None]:
    """Whoever wakes up goes on writing: neither the message's lease nor that of the session is asked for."""

    async def ensure(_: MessageLease) -> None:
        return

    def parse(content: bytes) -> bucket_journal.JournalTail:
        tail = parse_tail(content)
        return bucket_journal.JournalTail(msgspec.structs.replace(tail.head, until=0.0), tail.lines)

    parse_tail = bucket_journal.parse_tail
    with patch.object(MessageLease, "ensure", ensure), patch.object(bucket_journal, "parse_tail", parse):
        yield


@contextmanager
def with_blind_retries() -> Iterator[None]:
    """A write whose outcome is unknown is sent again at once."""
    send = GitLabHttpClient.send

    async def send_again(client: GitLabHttpClient, request: GitLabRequest) -> GitLabHttpResponse:
        return await send(client, replace(request, repeatable=True))

    with patch.object(GitLabHttpClient, "send", send_again):
        yield


@contextmanager
def with_early_deletes() -> Iterator[None]:
    """A message is deleted before its work is done."""
    process = Worker._process_envelope

    async def delete_first(worker: Worker, holding: MessageLease, message: Any, *given: Any) -> None:
        queue: Any = worker._queue
        await SqsQueue.delete(queue, message)
        await process(worker, holding, message, *given)

    with patch.object(Worker, "_process_envelope", delete_first):
        yield


@contextmanager
def without_markers() -> Iterator[None]:
    """Nobody looks for the marker of a note that may have been posted already."""

    def find_nothing(*_: Any) -> Any:
        return lambda _: None

    with (
        patch.object(publisher, "placeholder_finder", find_nothing),
        patch.object(publisher, "end_note_finder", find_nothing),
    ):
        yield


MUTANTS = {
    "drop the lease check": without_lease_check,
    "retry a write blindly": with_blind_retries,
    "delete a message before its work is done": with_early_deletes,
    "ignore the marker": without_markers,
}
