"""Requests to GitLab with the token that writes (N3): what is tried again, and for how long.

A read, and a write that does no more when it is done twice, are tried again. Any other write is tried again only if
GitLab surely did nothing: it refused to listen, or was never reached. The token goes to the configured address alone,
since redirects are not followed, and stands in no error. Knows no endpoint.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

from hummingbird.adapters.forge import faults
from hummingbird.adapters.forge.answers import Answer, Row
from hummingbird.adapters.forge.faults import Asked
from hummingbird.adapters.forge.waiting import growing_s, pause_s
from hummingbird.domain.errors import ForgeError, ForgeRefused
from hummingbird.domain.limits import (
    FORGE_ATTEMPTS,
    FORGE_JSON_BYTES,
    FORGE_PAGES,
    FORGE_PER_PAGE,
    FORGE_REFUSAL_BYTES,
    FORGE_WAIT_S,
)
from hummingbird.ports.forge import OrchestratorToken

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "hummingbird"}
Params = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Door:
    """What all projects share. `api` is where GitLab's API begins, without a slash at its end."""

    http: httpx2.AsyncClient
    api: str
    answer_s: float
    pause: Callable[[float], Awaitable[None]]
    now: Callable[[], float]


class _Again(Exception):
    """Another try may end otherwise. `error` is what to say if there is none."""

    def __init__(self, error: ForgeError, answer: Answer | None = None) -> None:
        super().__init__()
        self.error = error
        self.answer = answer


class _Signed(httpx2.Auth):
    """Puts the token where GitLab looks for it; what stands in the address or in a netrc file does not count."""

    def __init__(self, token: OrchestratorToken) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["PRIVATE-TOKEN"] = self._token.reveal()
        yield request


class Client:
    """Speaks to GitLab as one project's bot. A `path` is below /api/v4; `what` begins a sentence: "The thread"."""

    def __init__(self, door: Door, token: OrchestratorToken, project: str) -> None:
        self._door = door
        self._signed = _Signed(token)
        self._token = token
        self._project = project

    async def get(self, what: str, path: str, params: Params | None = None) -> Answer:
        """Raises ForgeMissing, ForgeRefused, ForgeDown, CredentialRefused."""
        return await self._asked(Asked(what, "GET", path, dict(params or {}), None, True))

    async def pages(self, what: str, path: str, params: Params | None = None) -> AsyncGenerator[list[Row], None]:
        """All of a list; a page may be empty and not the last one (facts 2.3). Raises as `get`."""
        page = 1
        for _ in range(FORGE_PAGES):
            answer = await self.get(what, path, {**(params or {}), "per_page": FORGE_PER_PAGE, "page": page})
            yield answer.rows()
            page = answer.next_page(page)
            if not page:
                return
        raise ForgeRefused(f"{what} came on more than {FORGE_PAGES} pages, which is too much to read.")

    async def write(self, what: str, method: str, path: str, body: dict[str, Any]) -> Answer:
        """Done once. Raises as `get`, and WriteUncertain."""
        return await self._asked(Asked(what, method, path, {}, body, False))

    async def settle(
        self, what: str, method: str, path: str, body: dict[str, Any] | None = None, *, fine: tuple[int, ...] = ()
    ) -> Answer:
        """A write that does no more when it is done twice; a refusal with a `fine` status is an answer. Raises as
        `write`."""
        return await self._asked(Asked(what, method, path, {}, body, True, fine))

    async def _asked(self, asked: Asked) -> Answer:
        waited = 0.0
        for attempt in range(1, FORGE_ATTEMPTS + 1):
            try:
                return await self._tried(asked)
            except _Again as again:
                pause = pause_s(again.answer.headers, attempt, self._door.now()) if again.answer else growing_s(attempt)
                waited += pause
                if attempt == FORGE_ATTEMPTS or waited > FORGE_WAIT_S:
                    raise again.error from again.__cause__
            await self._door.pause(pause)
        raise AssertionError("The last attempt returns or raises.")

    async def _tried(self, asked: Asked) -> Answer:
        """Raises _Again, and what another try would not change."""
        answer = await self._sent(asked)
        if answer.status < 300:
            return answer
        if answer.status == 429:
            raise _Again(faults.busy(asked), answer)
        if answer.status in (408, 425) or answer.status >= 500:
            raise self._unclear(asked, f"it failed with status {answer.status}", answer)
        error = faults.refused(asked, answer, self._project)
        if answer.status in asked.fine and isinstance(error, ForgeError):
            return answer
        raise error

    def _unclear(self, asked: Asked, why: str, answer: Answer | None = None) -> Exception:
        error = faults.lost(asked, why)
        return _Again(error, answer) if asked.repeatable else error

    async def _sent(self, asked: Asked) -> Answer:
        """Foreign errors become ours."""
        try:
            async with asyncio.timeout(self._door.answer_s):
                return await self._heard(asked)
        except faults.NOT_SENT as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise faults.untrusted(asked) from error
            raise _Again(faults.down(asked, f"it cannot be reached ({faults.why(error)})")) from error
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise self._unclear(asked, "it did not answer in time") from error
        except faults.NOWHERE as error:
            raise faults.nowhere(error) from error
        except httpx2.LocalProtocolError:  # its text may hold a header
            raise self._unclear(asked, "the request could not be put into words") from None
        except faults.LOST as error:
            raise self._unclear(asked, f"the connection broke ({faults.why(error)})") from error

    async def _heard(self, asked: Asked) -> Answer:
        body = None if asked.body is None else msgspec.json.encode(asked.body)
        headers = _HEADERS if body is None else {**_HEADERS, "Content-Type": "application/json"}
        async with self._door.http.stream(
            asked.method,
            self._door.api + asked.path,
            params=asked.params or None,
            content=body,
            headers=headers,
            auth=self._signed,
        ) as response:
            content = await self._body(asked, response)
            return Answer(asked.what, response.status_code, response.headers, content)

    async def _body(self, asked: Asked, response: httpx2.Response) -> bytes:
        """A refusal is cut; an answer that is too large is none."""
        most = FORGE_JSON_BYTES if response.status_code < 300 else FORGE_REFUSAL_BYTES
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > most and response.status_code < 300:
                why = f"its answer is larger than {most} bytes"
                raise faults.lost(asked, why) if asked.writes else ForgeRefused(f"{asked.what} was not read: {why}.")
            if len(content) > most:
                break
        return bytes(content) if response.status_code < 300 else self._without_token(bytes(content))

    def _without_token(self, refusal: bytes) -> bytes:
        """GitLab does not repeat it; if something before it did, it would stand in our sentences (I1)."""
        return refusal.replace(self._token.reveal().encode(), b"")
