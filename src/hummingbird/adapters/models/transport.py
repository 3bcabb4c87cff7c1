"""HTTP for model calls: one client, bytes in, decoded JSON or server-sent events out.

The only door to httpx2 in this room. Foreign errors become ours here, with the original chained and what is
quoted from a server capped. Knows nothing of any wire format.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import httpx2
import msgspec

from hummingbird.domain.errors import ConnectionLost, HummingbirdError, ReplyUnreadable, TimedOut, Unavailable
from hummingbird.domain.limits import CONNECT_TIMEOUT_S, REPLY_BYTES, STALL_TIMEOUT_S
from hummingbird.domain.text import plain, shortened

Classify: TypeAlias = Callable[[int, Any], HummingbirdError]


class Transport:
    """`now` is the wall clock, for Retry-After given as a date."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        stall_timeout_s: float = STALL_TIMEOUT_S,
        whole_timeout_s: float = 600.0,
        ca_bundle: str | None = None,
    ) -> None:
        self._now = now
        self._stall_timeout_s = stall_timeout_s
        self._whole_timeout_s = whole_timeout_s
        self._ca_bundle = ca_bundle
        self._client: httpx2.AsyncClient | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, classify: Classify) -> Any:
        """The decoded answer of a call that is not streamed."""
        async with self._send(url, headers, body, self._whole_timeout_s) as response:
            content = await _read(response)
        if response.status_code >= 400:
            raise self._refusal(response, content, classify)
        return decoded(content)

    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, classify: Classify
    ) -> AsyncGenerator[tuple[str, Any], None]:
        """(event name, decoded data) pairs. A [DONE] sentinel ends the stream and comes as ("[DONE]", None): where
        nothing else marks the end, a stream without it was cut."""
        async with self._send(url, headers, body, self._stall_timeout_s) as response:
            if response.status_code >= 400:
                raise self._refusal(response, await _read(response), classify)
            event, lines = "", []
            async for line in _lines(response):
                if line.startswith("data:"):
                    lines.append(line[5:].removeprefix(" "))
                elif line.startswith("event:"):
                    event = line[6:].strip()
                elif not line and lines:
                    text = "\n".join(lines)
                    if text == "[DONE]":
                        yield text, None
                        return
                    yield event, decoded(text.encode())
                    event, lines = "", []

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    @asynccontextmanager
    async def _send(
        self, url: str, headers: Mapping[str, str], body: bytes, read_s: float
    ) -> AsyncIterator[httpx2.Response]:
        timeout = httpx2.Timeout(read_s, connect=CONNECT_TIMEOUT_S, pool=None)
        sent = {"content-type": "application/json", **headers}
        try:
            async with self._open().stream("POST", url, content=body, headers=sent, timeout=timeout) as response:
                yield response
        except httpx2.TimeoutException as error:
            raise TimedOut(
                f"The model did not answer in time ({type(error).__name__} after {read_s:.0f} s)."
            ) from error
        except httpx2.InvalidURL as error:
            raise ConnectionLost(f"The model's address is not a URL: {shortened(str(error), 200)}") from error
        except httpx2.HTTPError as error:
            reason = shortened(str(error) or type(error).__name__, 200)
            raise ConnectionLost(f"The connection to the model broke: {reason}") from error

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
            verify: Any = True
            if self._ca_bundle is not None:
                import ssl  # noqa: PLC0415 - 20 ms that only a private CA needs

                verify = ssl.create_default_context(cafile=self._ca_bundle)
            self._client = httpx2.AsyncClient(limits=limits, verify=verify)
        return self._client

    def _refusal(self, response: httpx2.Response, content: bytes, classify: Classify) -> HummingbirdError:
        try:
            answer = decoded(content)
        except ReplyUnreadable:
            answer = content[:2000].decode("utf-8", "replace")
        error = classify(response.status_code, answer)
        if isinstance(error, Unavailable) and error.retry_after_s is None:
            error.retry_after_s = self._retry_after(response.headers.get("retry-after", ""))
        return error

    def _retry_after(self, value: str) -> float | None:
        """Seconds from now; the header is a number or a date."""
        try:
            return max(0.0, float(value))
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - self._now())
        except (ValueError, TypeError):
            return None


def decoded(content: bytes) -> Any:
    """JSON of a provider. Lone surrogates, which msgspec refuses, are replaced."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _cleaned(json.loads(content.decode("utf-8", "replace")))
    except (ValueError, RecursionError) as error:
        seen = shortened(content[:200].decode("utf-8", "replace"), 120) or "nothing"
        raise ReplyUnreadable(f"The model's answer is not JSON; it begins with: {seen}") from error


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): _cleaned(item) for key, item in value.items()}
    return value


async def _read(response: httpx2.Response) -> bytes:
    parts, size = [], 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > REPLY_BYTES:
            raise ReplyUnreadable(f"The model's answer is larger than {REPLY_BYTES} bytes; it was not read.")
        parts.append(chunk)
    return b"".join(parts)


async def _lines(response: httpx2.Response) -> AsyncIterator[str]:
    """Lines as server-sent events define them, each bounded; `aiter_lines` would also break at U+2028."""
    rest = b""
    async for chunk in response.aiter_bytes():
        *whole, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
        if len(rest) > REPLY_BYTES:
            raise ReplyUnreadable(f"One event of the model's stream is larger than {REPLY_BYTES} bytes.")
    if rest:
        yield rest.decode("utf-8", "replace")
