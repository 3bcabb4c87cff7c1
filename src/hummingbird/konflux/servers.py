"""Reads lists, objects and logs from the cluster and from KubeArchive, which has the same paths.

Connections are opened when they are first needed, with the kubeconfig's credentials. These go only to the two addresses
that the operator configured: each client adds them for its own server, and redirects to another one are not followed.

A page of a list is parsed while it arrives, with one item in memory and in any order of the keys: KubeArchive writes
the items before the metadata, a cluster may do either. An event-based parser would be slower: the standard scanner
builds an item in C, and scanning an item again that came in two parts costs less than a callback for every token.
"""

import asyncio
import codecs
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from hummingbird.clients.kubeconfig import ClusterConfig, ClusterQuery, find_cluster, origin_of
from hummingbird.clients.kubernetes_client import (
    create_cluster_client,
    create_neighbour_client,
    static_secrets,
    with_server,
)
from hummingbird.clients.url_fetch import FetchedResponse, FetchRefused, UrlFetcher
from hummingbird.core.errors import (
    ClusterUnusable,
    CredentialRefused,
    HummingbirdError,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
)
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.limits import (
    KONFLUX_GATHERED_CHARS,
    KONFLUX_ITEM_CHARS,
    KONFLUX_LOG_BYTES,
    KONFLUX_OBJECT_BYTES,
    KONFLUX_PAGE,
    KONFLUX_PAGE_BYTES,
    KONFLUX_PAGES,
)
from hummingbird.konflux import KonfluxSettings, KonfluxTenant, parse_tenant
from hummingbird.konflux.objects import JsonObject

_MARKS = re.compile(r'["{}\[\]]')
_IN_TEXT = re.compile(r'["\\]')


class ObjectSkipper:
    """Finds the end of a JSON object without parsing it, so that a broken item does not spoil those after it.

    It takes one object, from its first brace on, in any number of parts, and keeps nothing of them.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def find_end(self, text: str, place: int) -> int | None:
        """Return the position after the object, or None if `text` ends before the object does."""
        if self._escaped and place < len(text):
            self._escaped, place = False, place + 1
        while (mark := (_IN_TEXT if self._in_text else _MARKS).search(text, place)) is not None:
            place = mark.end()
            if mark[0] == "\\":
                self._escaped = place == len(text)
                place += 1
            elif mark[0] == '"':
                self._in_text = not self._in_text
            else:
                self._depth += 1 if mark[0] in "{[" else -1
                if self._depth <= 0:
                    return place
        return None


_SPACE = re.compile(r"[ \t\r\n]*")
_LONGEST_WORD = 12  # an escaped surrogate pair: this close to the end of a cut text, an error may be due to the cut


class _IncompleteJson(Exception):
    """The text so far is valid, but incomplete."""


class _PageParserState(Enum):
    START = auto()
    KEY = auto()
    VALUE = auto()
    AFTER = auto()
    ITEMS = auto()
    SKIPPING = auto()
    END = auto()


class KubernetesListPage:
    """One page. Call `feed` with chunks of any size, then `end`; items are yielded one by one.

    Both methods raise SourceResponseInvalid for what is not a list; `end` also for a page that was cut off.

    Attributes:
        continue_token: The token of the next page; empty if there is none or it has not come yet.
        skipped: Number of items that were too long, too deep or not valid objects; those after them are still yielded.
    """

    def __init__(self, gathered_chars: int = KONFLUX_GATHERED_CHARS, item_chars: int = KONFLUX_ITEM_CHARS) -> None:
        self.continue_token = ""
        self.kind = ""
        self.skipped = 0
        self._gathered_chars = gathered_chars
        self._item_chars = item_chars
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._scan = json.JSONDecoder(parse_constant=_constant_as_none).raw_decode
        self._parts: list[str] = []
        self._waiting_chars = 0
        self._wanted_chars = 0
        self._text = ""
        self._position = 0
        self._key = ""
        self._has_items = False
        self._skipper = ObjectSkipper()
        self._state = _PageParserState.START

    def feed(self, chunk: bytes) -> Iterator[JsonObject]:
        self._buffer(chunk)
        if self._waiting_chars >= self._wanted_chars:
            yield from self._parse_buffer()

    def end(self) -> Iterator[JsonObject]:
        self._buffer(b"", final=True)
        yield from self._parse_buffer()
        if self._state is not _PageParserState.END:
            raise SourceResponseInvalid("A page of the list was cut off before its end.")
        if not self._has_items:
            raise SourceResponseInvalid("A page of the list is not a list: it has no items.")

    def remaining_items(self) -> Iterator[JsonObject]:
        """Yield the complete items of a page whose end will not come. Raises nothing."""
        with suppress(SourceResponseInvalid):
            yield from self._parse_buffer()

    def _buffer(self, chunk: bytes, *, final: bool = False) -> None:
        part = self._decoder.decode(chunk, final)
        self._parts.append(part)
        self._waiting_chars += len(part)

    def _parse_buffer(self) -> Iterator[JsonObject]:
        self._text = self._text[self._position :] + "".join(self._parts)
        self._parts, self._position, self._waiting_chars = [], 0, 0
        while self._state is not _PageParserState.END:
            try:
                found = self._step()
            except _IncompleteJson:
                if not self._is_too_long():
                    return
                self._start_skip()
                continue
            if found is not None:
                yield found
                del found

    def _is_too_long(self) -> bool:
        """Return whether the item is too long; if not, decide how much more text to wait for.

        Waiting until the text has doubled avoids scanning an item once for each of its many parts. The wait never
        exceeds the length that an item may have.
        """
        unread = len(self._text) - self._position
        wanted = min(max(unread, self._gathered_chars), self._item_chars + 1 - unread)
        self._wanted_chars = max(0, wanted) if unread else 0
        return unread > self._item_chars

    def _start_skip(self) -> None:
        if self._state is not _PageParserState.ITEMS or not self._text.startswith("{", self._position):
            raise SourceResponseInvalid(
                "A page of the list holds what no Kubernetes list holds, and cannot be read on."
            )
        self._skipper = ObjectSkipper()
        self._state = _PageParserState.SKIPPING

    def _step(self) -> JsonObject | None:
        letter = self._next_character()
        match self._state:
            case _PageParserState.START:
                self._expect(letter, "{", _PageParserState.KEY)
            case _PageParserState.KEY if letter == "}":
                self._state = _PageParserState.END
            case _PageParserState.KEY:
                self._read_key()
            case _PageParserState.VALUE if self._key == "items" and letter == "[":
                self._expect(letter, "[", _PageParserState.ITEMS)
            case _PageParserState.VALUE:
                self._store_field(self._key, self._parse_value())
                self._state = _PageParserState.AFTER
            case _PageParserState.AFTER if letter == ",":
                self._expect(letter, ",", _PageParserState.KEY)
            case _PageParserState.AFTER:
                self._expect(letter, "}", _PageParserState.END)
            case _PageParserState.ITEMS if letter in ",]":
                self._expect(letter, letter, _PageParserState.ITEMS if letter == "," else _PageParserState.AFTER)
            case _PageParserState.ITEMS:
                return self._parse_item()
            case _PageParserState.SKIPPING:
                self._skip_object()
        return None

    def _next_character(self) -> str:
        space = _SPACE.match(self._text, self._position)
        assert space is not None
        self._position = space.end()
        if self._position == len(self._text):
            raise _IncompleteJson
        return self._text[self._position]

    def _expect(self, letter: str, wanted: str, onward: _PageParserState) -> None:
        if letter != wanted:
            raise SourceResponseInvalid(
                f"A page of the list is not a list: {wanted!r} was expected and {letter!r} came."
            )
        self._position += 1
        self._state = onward

    def _read_key(self) -> None:
        begun = self._position
        key = self._parse_value()
        try:
            letter = self._next_character()
        except _IncompleteJson:
            self._position = begun
            raise
        self._key = str(key)
        self._has_items = self._has_items or self._key == "items"
        self._expect(letter, ":", _PageParserState.VALUE)

    def _parse_item(self) -> JsonObject | None:
        try:
            item = self._parse_value()
        except SourceResponseInvalid:
            self._start_skip()
            return None
        if isinstance(item, dict):
            return item
        self.skipped += 1
        return None

    def _skip_object(self) -> None:
        after = self._skipper.find_end(self._text, self._position)
        if after is None:
            self._position = len(self._text)
            raise _IncompleteJson
        self._position = after
        self._state = _PageParserState.ITEMS
        self.skipped += 1

    def _parse_value(self) -> Any:
        try:
            value, after = self._scan(self._text, self._position)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_WORD:
                raise _IncompleteJson from None
            raise SourceResponseInvalid(f"A page of the list is not valid JSON ({error.msg}).") from error
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits, hostile nesting
            raise SourceResponseInvalid("A page of the list holds what no Kubernetes object holds.") from error
        if after == len(self._text) and not isinstance(value, dict | list | str):
            raise _IncompleteJson  # a number may continue in the next chunk
        self._position = after
        return value

    def _store_field(self, key: str, value: Any) -> None:
        if key == "metadata" and isinstance(value, dict):
            self.continue_token = str(value.get("continue") or "")
        elif key == "kind" and isinstance(value, str):
            self.kind = value
        elif key == "items" and value is not None:
            raise SourceResponseInvalid("A page of the list has items that are not lists.")


def _constant_as_none(_constant: str) -> None:
    """Replace NaN and Infinity, which are not JSON although the parser accepts them, by None."""


GROUPS = {"pipelineruns": "apis/tekton.dev/v1", "taskruns": "apis/tekton.dev/v1", "pods": "api/v1"}
SERVER_ERRORS = (SourceError, CredentialRefused, ClusterUnusable)  # after these, the other server may still answer
_JSON = {"Accept": "application/json"}
_STATUS_REASON = re.compile(r"[A-Z][A-Za-z]{2,39}")  # Forbidden, BadRequest: from the API server, never from a user
_NO_HEADER = re.compile(r"\bauthorization (?:header|bearer token)\b", re.IGNORECASE)
_LIST_CHANGED = "The list changed while it was read."
_INCONSISTENT = " It was read on and may be inconsistent: objects that came or went meanwhile may be missing."


class ListTokenExpired(SourceRefused):
    """410: the token of a page is too old. `fresh_token` continues from the same place, if there is one."""

    def __init__(self, sentence: str, fresh: str) -> None:
        super().__init__(sentence)
        self.fresh_token = fresh


class KonfluxServer:
    """One of the two servers. `name` is how messages call it: "the cluster" or "KubeArchive"."""

    def __init__(self, name: str, reader: UrlFetcher, address: str, namespace: str) -> None:
        self.name = name
        self._title = name[:1].upper() + name[1:]
        self._reader = reader
        self._address = address
        self._namespace = namespace

    async def list_items(self, resource: str, selector: str, gaps: list[str]) -> AsyncGenerator[JsonObject, None]:
        """Yield all items of all pages, and add a message to `gaps` for what is missing.

        If nothing came at all, raise CredentialRefused, ClusterUnusable or a SourceError instead.
        """
        token, seen, came = "", {""}, False
        for _ in range(KONFLUX_PAGES):
            page = KubernetesListPage()
            try:
                async with aclosing(self._read_page(page, resource, selector, token)) as items:
                    async for item in items:
                        came = True
                        yield item
                token = page.continue_token
            except ListTokenExpired as error:
                gaps.append(f"{self._list_name(resource)}: {error}")
                token = error.fresh_token
            except SERVER_ERRORS as error:
                if not came and not page.continue_token:
                    raise
                rest = (
                    "The rest of that page is missing." if page.continue_token else "The rest of the list is missing."
                )
                gaps.append(f"{self._list_name(resource)}: {error} {rest}")
                token = page.continue_token
            if page.skipped:
                gaps.append(f"{self._list_name(resource)}: {page.skipped} items could not be read and were left out.")
            if token in seen:
                if token:
                    gaps.append(f"{self._list_name(resource)}: the list leads in a circle, so its rest was not read.")
                return
            seen.add(token)
        gaps.append(f"{self._list_name(resource)}: the list has over {KONFLUX_PAGES} pages; its rest was not read.")

    async def _read_page(
        self, page: KubernetesListPage, resource: str, selector: str, token: str
    ) -> AsyncGenerator[JsonObject, None]:
        query = {"labelSelector": selector, "limit": str(KONFLUX_PAGE), **({"continue": token} if token else {})}
        async with self._open(resource, query=query, most_bytes=KONFLUX_PAGE_BYTES) as answer:
            async with aclosing(answer.chunks()) as chunks:
                try:
                    async for chunk in chunks:
                        for item in page.feed(chunk):
                            yield item
                except SourceError:
                    for item in page.remaining_items():
                        yield item
                    raise
            for item in page.end():
                yield item

    async def get_object(self, resource: str, name: str) -> JsonObject:
        """Return one object. Raises SourceNotFound, CredentialRefused, ClusterUnusable, SourceError."""
        async with self._open(resource, name, most_bytes=KONFLUX_OBJECT_BYTES) as answer:
            found = _decode_json(await answer.read_all())
        if not isinstance(found, dict):
            raise SourceResponseInvalid(
                f"{self._title} answered with something that is not a JSON object. Ask for something else."
            )
        return found

    @asynccontextmanager
    async def open_log(self, pod: str, container: str) -> AsyncIterator[FetchedResponse]:
        """Open a log; without a container, KubeArchive chooses one. Raises the same errors as `get_object`."""
        query = {"container": container} if container else {}
        async with self._open("pods", pod, log=True, query=query, most_bytes=KONFLUX_LOG_BYTES) as answer:
            if "html" in answer.headers.get("content-type", "").lower():
                raise SourceResponseInvalid(
                    f"{self._title} answered with a web page in place of a log, as a login in front of it would: the "
                    "operator must set the address of the server itself."
                )
            yield answer

    @asynccontextmanager
    async def _open(
        self,
        resource: str,
        name: str = "",
        *,
        log: bool = False,
        query: Mapping[str, str] | None = None,
        most_bytes: int,
    ) -> AsyncIterator[FetchedResponse]:
        parts = ["namespaces", self._namespace, resource, *filter(None, (name, "log" if log else ""))]
        path = "/".join([GROUPS[resource], *(quote(part, safe="") for part in parts)])
        headers = {} if log else _JSON  # servers do not negotiate the type of a log
        try:
            async with self._reader.open(
                f"{self._address}/{path}", params=query, headers=headers, most_bytes=most_bytes
            ) as answer:
                yield answer
        except FetchRefused as refused:
            raise self._error_from_refusal(refused, resource, name, log=log) from refused

    def _error_from_refusal(self, refused: FetchRefused, resource: str, name: str, *, log: bool) -> HummingbirdError:
        """Return an error in our words, because an outsider may have chosen names that the server's own text quotes."""
        status = _decode_json(refused.body)
        status = status if isinstance(status, dict) else {}
        reason = status.get("reason")
        known = isinstance(reason, str) and _STATUS_REASON.fullmatch(reason)
        said = f"{refused.status} {reason}" if known else f"{refused.status}"
        if refused.status in {401, 403} or (refused.status == 400 and _wants_credential(status)):
            return CredentialRefused(
                f"{self._title} does not let us read {resource} in the tenant {self._namespace} ({said}): "
                "the operator must log in again, or grant get and list there."
            )
        if refused.status == 404:
            what = f"{resource.removesuffix('s')} {name}" if name else resource
            what = f"log of the {what}" if log else what
            return SourceNotFound(f"{self._title} has no {what} in the tenant {self._namespace} ({said}).")
        if refused.status == 410:
            metadata = status.get("metadata")
            fresh = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
            return ListTokenExpired(_LIST_CHANGED + (_INCONSISTENT if fresh else " The rest of it is missing."), fresh)
        hint = " Is there such a container in the pod, and has it begun? The pod itself says." if log else ""
        return SourceRefused(f"{self._title} refuses this request ({said}).{hint}")

    def _list_name(self, resource: str) -> str:
        return f"{self._title}, {resource}"


def _decode_json(content: bytes) -> Any:
    try:
        return decode_lenient_json(content)
    except InvalidJson:
        return None


def _wants_credential(status: Mapping[str, Any]) -> bool:
    """Return whether KubeArchive asks for a credential: its errors have only a message, a cluster's have a kind."""
    return "kind" not in status and _NO_HEADER.search(str(status.get("message") or "")) is not None


# names by which a pod reaches the cluster that it runs in
_OWN_CLUSTER = frozenset({"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "kubernetes.default"})


@dataclass(frozen=True, slots=True)
class KonfluxServers:
    """Both servers; `archive` is None where none is configured."""

    cluster: KonfluxServer
    archive: KonfluxServer | None

    @property
    def live_first(self) -> tuple[KonfluxServer, ...]:
        return (self.cluster, self.archive) if self.archive else (self.cluster,)

    @property
    def archive_first(self) -> tuple[KonfluxServer, ...]:
        return self.live_first[::-1]


class KonfluxConnections:
    """Opens the connections to both servers when they are needed; after `close` they can be opened again."""

    def __init__(
        self,
        settings: KonfluxSettings,
        tenant: KonfluxTenant,
        environment: Mapping[str, str],
        reading: Callable[[httpx2.AsyncClient], UrlFetcher],
    ) -> None:
        self._settings = settings
        self._tenant = tenant
        self._environment = environment
        self._reading = reading
        self._clients: list[httpx2.AsyncClient] = []
        self._servers: KonfluxServers | None = None
        self._connect_lock = asyncio.Lock()

    async def connect(self) -> KonfluxServers:
        """Return the servers. Raises ClusterUnusable."""
        async with self._connect_lock:
            if self._servers is None:
                self._servers = await asyncio.to_thread(self._open_servers)  # reads files
            return self._servers

    def secrets(self) -> tuple[str, ...]:
        """Return the kubeconfig's secrets; none if it cannot be used."""
        try:
            return static_secrets(self._find_cluster())
        except ClusterUnusable:
            return ()

    async def close(self) -> None:
        clients, self._clients, self._servers = self._clients, [], None
        for client in clients:
            await client.aclose()

    def _find_cluster(self) -> ClusterConfig:
        chosen = self._settings
        sought = ClusterQuery(chosen.kubeconfig, chosen.context, chosen.ca_bundle, server=self._tenant.server)
        found = check_service_account(self._tenant.server, find_cluster(sought, self._environment), self._environment)
        if not (chosen.kubeconfig or chosen.context or found.in_cluster):
            refuse_other_cluster(self._tenant.server, found)
        return with_server(found, self._tenant.server, chosen.ca_bundle)

    def _open_servers(self) -> KonfluxServers:
        found, tenant = self._find_cluster(), self._tenant
        client = create_cluster_client(found)
        self._clients.append(client)
        cluster = KonfluxServer("the cluster", self._reading(client), tenant.server, tenant.namespace)
        if not tenant.archive:
            return KonfluxServers(cluster, None)
        if origin_of(tenant.archive) != origin_of(tenant.server):
            client = create_neighbour_client(found, tenant.archive, self._settings.ca_bundle)
            self._clients.append(client)
        return KonfluxServers(
            cluster, KonfluxServer("KubeArchive", self._reading(client), tenant.archive, tenant.namespace)
        )


def refuse_other_cluster(server: str, found: ClusterConfig) -> None:
    """Raise ClusterUnusable if the usual kubeconfig is for another cluster, whose token this server must not see."""
    if found.server != origin_of(server):
        raise ClusterUnusable(
            f"The usual kubeconfig has no context for {origin_of(server)}, and the token of its current one is for "
            "another cluster: log in to that cluster, or name a kubeconfig or a context for Konflux."
        )


def check_service_account(server: str, found: ClusterConfig, environment: Mapping[str, str]) -> ClusterConfig:
    """Raise ClusterUnusable if only our pod's service account is there and the server belongs to another cluster."""
    own = _OWN_CLUSTER | {environment.get("KUBERNETES_SERVICE_HOST", "").lower()}
    if found.in_cluster and urlsplit(server).hostname not in own:
        raise ClusterUnusable(
            f"There is no kubeconfig for {origin_of(server)}, and this pod's own service account is "
            "not shown to another "
            "cluster: name a kubeconfig for Konflux."
        )
    return found


_MATCHES_NOTHING = "hummingbird/doctor=asks"


async def check_servers(settings: KonfluxSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Check for `hummingbird doctor` that each configured server can be read, with a short list request.

    Return, by the server's name, why it cannot be read, or an empty string. Raises UsageError, ClusterUnusable.
    """
    servers = KonfluxConnections(settings, parse_tenant(settings), environment, UrlFetcher)
    try:
        return {server.name: await _check_server(server) for server in (await servers.connect()).live_first}
    finally:
        await servers.close()


async def _check_server(server: KonfluxServer) -> str:
    gaps: list[str] = []
    try:
        async with aclosing(server.list_items("pipelineruns", _MATCHES_NOTHING, gaps)) as items:
            async for _ in items:
                break
    except HummingbirdError as error:
        return str(error)
    return gaps[0] if gaps else ""
