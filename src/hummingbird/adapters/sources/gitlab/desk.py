"""Where tools put their questions: a thread, a visit and bounds for each call, and answers as tools return them.

A list that breaks off keeps what came and says so in its last line (D1). Knows no tool and no project.
"""

import json
from collections.abc import Callable, Iterator
from typing import TypeVar
from weakref import WeakSet

import msgspec

from hummingbird.adapters.sources.gitlab.client import Raw, Visit, visit
from hummingbird.adapters.sources.gitlab.connections import Connections
from hummingbird.adapters.sources.gitlab.effort import Effort
from hummingbird.adapters.sources.gitlab.faults import told
from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.adapters.sources.gitlab.threads import Handover, in_thread
from hummingbird.domain.errors import AnswerUnusable, HummingbirdError
from hummingbird.domain.limits import GITLAB_LIST_S, GITLAB_STREAM_S, GITLAB_TEXT_BYTES
from hummingbird.ports.tool import ByteStream

Answer = TypeVar("Answer")
_LOOKED_AT = 8 * 1024  # of a body, to see whether it is text


class Desk:
    """No connection is opened before the first question."""

    def __init__(self, settings: GitLabSettings) -> None:
        self._settings = settings
        self._connections = Connections()
        self._efforts: WeakSet[Effort] = WeakSet()

    async def ask(self, what: str, work: Callable[[Visit], Answer]) -> Answer:
        """`what` begins the sentence of an error: "Merge request !7". Raises SourceError, CredentialRefused."""
        effort = self._effort()

        def asked() -> Answer:
            with told(what):
                return work(visit(self._settings, effort, self._connections))

        return await in_thread(asked, effort, GITLAB_LIST_S)

    async def stream(
        self,
        what: str,
        work: Callable[[Visit], Iterator[bytes]],
        *,
        suffix: str,
        nothing: str,
        binary: bool | None = False,
        terminal: bool = False,
        most: int = GITLAB_TEXT_BYTES,
        note: Callable[[], str] = str,
        total_s: float = GITLAB_STREAM_S,
    ) -> ByteStream | str:
        """`nothing`: what to say of an empty body. `binary` None: as its beginning looks. `note` is asked once the
        beginning is there. Errors as in `ask`; those in the middle are raised while iterating."""
        effort = self._effort()

        def chunks() -> Iterator[bytes]:
            with told(what):
                yield from _bounded(what, work(visit(self._settings, effort, self._connections)), most)

        handover = Handover(chunks, effort, total_s)
        first = await handover.begun()
        if not first:
            return nothing
        looks_binary = b"\x00" in first[:_LOOKED_AT] if binary is None else binary
        return ByteStream(handover, suffix, looks_binary, note(), terminal)

    async def lines(self, what: str, work: Callable[[Visit], Iterator[Raw]], nothing: str) -> ByteStream | str:
        """One JSON object a line; as many as come before its tool would be given up with all of them."""
        return await self.stream(
            what, lambda there: jsonl(what, work(there)), suffix="jsonl", nothing=nothing, total_s=GITLAB_LIST_S
        )

    async def close(self) -> None:
        for effort in list(self._efforts):
            effort.stop()
        self._connections.close()

    def _effort(self) -> Effort:
        effort = Effort()
        self._efforts.add(effort)
        return effort


def jsonl(what: str, items: Iterator[Raw]) -> Iterator[bytes]:
    """Raises only what happens before the first item."""
    count = 0
    try:
        with told(what):
            for item in items:
                yield encoded(item)
                count += 1
    except HummingbirdError as error:
        if not count:
            raise
        yield encoded({"incomplete": f"The list breaks off here, after {count}. {error}"})


def encoded(item: Raw) -> bytes:
    try:
        return msgspec.json.encode(item) + b"\n"
    except UnicodeEncodeError:  # JSON can name half a character, UTF-8 cannot hold it
        return json.dumps(item).encode() + b"\n"


def _bounded(what: str, chunks: Iterator[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise AnswerUnusable(f"{what} is larger than the {most // 1024**2} MiB that are read: use what came.")
        yield chunk
