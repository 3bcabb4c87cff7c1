"""What the dashboard asks for. Assembly says where it comes from; nothing here can be written but a message."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from hummingbird.domain.journal import Entry
from hummingbird.domain.sessions import Summary
from hummingbird.ports.known_failures import FailureDay, KnownFailure
from hummingbird.ports.reactions import Rated
from hummingbird.ports.session_index import Day, Hit


@dataclass(frozen=True, slots=True)
class SandboxFile:
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class SandboxList:
    """`more`: there are others, which are not in it."""

    files: Sequence[SandboxFile]
    more: bool = False


class Desk(Protocol):
    """Raises HummingbirdError with a sentence for people: UsageFault for what there is not, others for what does not
    work now."""

    @property
    def gitlab(self) -> str:
        """The address of GitLab, without a slash at its end."""
        ...

    async def listed(self, limit: int, project: str = "", text: str = "") -> Sequence[Summary]: ...

    async def known(self, session_id: str) -> Summary | None:
        """In a moment; None for a session that is not in the index, or not yet."""
        ...

    async def entries(self, session_id: str) -> Sequence[Entry]:
        """As they were written: pages mask what they show. Nothing if there is no such session."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[Hit]: ...

    async def costs(self, since: date) -> Sequence[Day]:
        """The days that had any sessions, oldest first."""
        ...

    async def rated(self, since: float) -> Sequence[Rated]:
        """Results that were posted since then, newest first, with the votes on them."""
        ...

    async def projects(self) -> Sequence[str]:
        """Those with known failures; where something failed last comes first."""
        ...

    async def failures(self, project: str, limit: int) -> Sequence[KnownFailure]: ...

    async def trend(self, project: str, since: date) -> Sequence[FailureDay]: ...

    async def trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]: ...

    async def files(self, session_id: str) -> SandboxList:
        """What the session's sandbox held when it was last saved."""
        ...

    async def file(self, session_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """Its content; close it when you stop early."""
        ...

    async def go_on(self, session_id: str, message: str, once: str) -> None:
        """Puts it on the queue, the same `once` once. Raises UsageFault for a session that cannot go on from here, and
        says how it can."""
        ...
