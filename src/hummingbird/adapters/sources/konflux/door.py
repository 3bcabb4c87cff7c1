"""One of the two servers that know of Konflux's objects: the cluster, or KubeArchive, which has the same paths.

Asks, and says in sentences what a refusal means. Knows nothing of the other server, nor of what an object is for.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import quote

from hummingbird.adapters.sources.http.answer import Answer, Refused
from hummingbird.adapters.sources.http.reader import Reader
from hummingbird.adapters.sources.konflux.objects import Raw
from hummingbird.adapters.sources.konflux.pages import Page
from hummingbird.domain.errors import (
    AnswerUnusable,
    ClusterUnusable,
    CredentialRefused,
    HummingbirdError,
    NothingThere,
    SourceError,
    SourceRefused,
)
from hummingbird.domain.limits import (
    KONFLUX_LOG_BYTES,
    KONFLUX_OBJECT_BYTES,
    KONFLUX_PAGE,
    KONFLUX_PAGE_BYTES,
    KONFLUX_PAGES,
)

GROUPS = {"pipelineruns": "apis/tekton.dev/v1", "taskruns": "apis/tekton.dev/v1", "pods": "api/v1"}
UNANSWERED = (SourceError, CredentialRefused, ClusterUnusable)  # the other server may still know
_JSON = {"Accept": "application/json"}
_REASON = re.compile(r"[A-Z][A-Za-z]{2,39}")  # Forbidden, BadRequest: words of the API server, never of a user
_NO_HEADER = re.compile(r"\bauthorization (?:header|bearer token)\b", re.IGNORECASE)
_CHANGED = "The list changed while it was read."
_INCONSISTENT = " It was read on and may be inconsistent: objects that came or went meanwhile may be missing."


class Expired(SourceRefused):
    """410: the token of a page is too old. `fresh` leads on from where it stood, if there is one."""

    def __init__(self, sentence: str, fresh: str) -> None:
        super().__init__(sentence)
        self.fresh = fresh


class Door:
    """`name` is how sentences call it: "the cluster" or "KubeArchive"."""

    def __init__(self, name: str, reader: Reader, address: str, namespace: str) -> None:
        self.name = name
        self._title = name[:1].upper() + name[1:]
        self._reader = reader
        self._address = address
        self._namespace = namespace

    async def items(self, resource: str, selector: str, gaps: list[str]) -> AsyncGenerator[Raw, None]:
        """All items of all pages. What is missing is told to `gaps`, unless nothing came at all: then it is raised, as
        CredentialRefused, ClusterUnusable or a SourceError."""
        token, seen, came = "", {""}, False
        for _ in range(KONFLUX_PAGES):
            page = Page()
            try:
                async with aclosing(self._paged(page, resource, selector, token)) as items:
                    async for item in items:
                        came = True
                        yield item
                token = page.more
            except Expired as error:
                gaps.append(f"{self._named(resource)}: {error}")
                token = error.fresh
            except UNANSWERED as error:
                if not came and not page.more:
                    raise
                rest = "The rest of that page is missing." if page.more else "The rest of the list is missing."
                gaps.append(f"{self._named(resource)}: {error} {rest}")
                token = page.more
            if page.skipped:
                gaps.append(f"{self._named(resource)}: {page.skipped} items could not be read and were left out.")
            if token in seen:
                if token:
                    gaps.append(f"{self._named(resource)}: the list leads in a circle, so its rest was not read.")
                return
            seen.add(token)
        gaps.append(f"{self._named(resource)}: the list has over {KONFLUX_PAGES} pages; its rest was not read.")

    async def _paged(self, page: Page, resource: str, selector: str, token: str) -> AsyncGenerator[Raw, None]:
        query = {"labelSelector": selector, "limit": str(KONFLUX_PAGE), **({"continue": token} if token else {})}
        async with self._opened(resource, query=query, most_bytes=KONFLUX_PAGE_BYTES) as answer:
            async with aclosing(answer.chunks()) as chunks:
                try:
                    async for chunk in chunks:
                        for item in page.feed(chunk):
                            yield item
                except SourceError:
                    for item in page.rest():
                        yield item
                    raise
            for item in page.end():
                yield item

    async def get(self, resource: str, name: str) -> Raw:
        """Raises NothingThere, CredentialRefused, ClusterUnusable, SourceError."""
        async with self._opened(resource, name, most_bytes=KONFLUX_OBJECT_BYTES) as answer:
            found = _decoded(await answer.content())
        if not isinstance(found, dict):
            raise AnswerUnusable(f"{self._title} answered with what is no object. Ask for something else.")
        return found

    @asynccontextmanager
    async def log(self, pod: str, container: str) -> AsyncIterator[Answer]:
        """Raises as `get` does. Without a container, KubeArchive chooses one."""
        query = {"container": container} if container else {}
        async with self._opened("pods", pod, log=True, query=query, most_bytes=KONFLUX_LOG_BYTES) as answer:
            if "html" in answer.headers.get("content-type", "").lower():
                raise AnswerUnusable(
                    f"{self._title} answered with a web page in place of a log, as a login in front of it would: the "
                    "operator must set the address of the server itself."
                )
            yield answer

    @asynccontextmanager
    async def _opened(
        self,
        resource: str,
        name: str = "",
        *,
        log: bool = False,
        query: Mapping[str, str] | None = None,
        most_bytes: int,
    ) -> AsyncIterator[Answer]:
        parts = ["namespaces", self._namespace, resource, *filter(None, (name, "log" if log else ""))]
        path = "/".join([GROUPS[resource], *(quote(part, safe="") for part in parts)])
        headers = {} if log else _JSON  # a log's answer is negotiated with nobody
        try:
            async with self._reader.open(
                f"{self._address}/{path}", params=query, headers=headers, most_bytes=most_bytes
            ) as answer:
                yield answer
        except Refused as refused:
            raise self._told(refused, resource, name, log=log) from refused

    def _told(self, refused: Refused, resource: str, name: str, *, log: bool) -> HummingbirdError:
        """Its kind, in our words: what a server says to a refusal names pods, containers and images, which are an
        outsider's to name."""
        status = _decoded(refused.body)
        status = status if isinstance(status, dict) else {}
        reason = status.get("reason")
        known = isinstance(reason, str) and _REASON.fullmatch(reason)
        said = f"{refused.status} {reason}" if known else f"{refused.status}"
        if refused.status in {401, 403} or (refused.status == 400 and _wants_a_header(status)):
            return CredentialRefused(
                f"{self._title} does not let us read {resource} in the tenant {self._namespace} ({said}): "
                "the operator must log in again, or grant get and list there."
            )
        if refused.status == 404:
            what = f"{resource.removesuffix('s')} {name}" if name else resource
            what = f"log of the {what}" if log else what
            return NothingThere(f"{self._title} has no {what} in the tenant {self._namespace} ({said}).")
        if refused.status == 410:
            metadata = status.get("metadata")
            fresh = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
            return Expired(_CHANGED + (_INCONSISTENT if fresh else " The rest of it is missing."), fresh)
        hint = " Is there such a container in the pod, and has it begun? The pod itself says." if log else ""
        return SourceRefused(f"{self._title} refuses this request ({said}).{hint}")

    def _named(self, resource: str) -> str:
        return f"{self._title}, {resource}"


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _wants_a_header(status: Mapping[str, Any]) -> bool:
    """KubeArchive's way to ask for a credential; its errors are a message alone, a cluster's say what kind they are."""
    return "kind" not in status and _NO_HEADER.search(str(status.get("message") or "")) is not None
