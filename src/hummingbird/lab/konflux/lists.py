"""The cluster's lists: which objects a query selects, one page of them, and the page written piece by piece.

Facts: docs of the API's conventions, our facts section 4. Without a limit everything is sent. Objects are in the order
of their names. Knows nothing of who asks.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator
from dataclasses import dataclass

from hummingbird.lab.konflux.objects import KINDS, Item, written
from hummingbird.lab.konflux.world import KonfluxWorld
from hummingbird.lab.kubernetes.asks import Ask
from hummingbird.lab.kubernetes.refusals import Raw, Refused, bad_request
from hummingbird.lab.kubernetes.selectors import FIELDS, LabelSelector, field_selector

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_INCONSISTENT = -1  # the revision in a token that takes whatever there is now


@dataclass(frozen=True, slots=True)
class Page:
    items: list[Item]
    metadata: Raw


def page(world: KonfluxWorld, ask: Ask) -> Page:
    """Raises Refused: 400 for a query that makes no sense, 410 for a token that is too old."""
    found = _selected(world, ask)
    limit, token = _limit(ask), ask.query.get("continue", "")
    revision, after = _decoded(token, world) if token else (world.revision, "")
    rest = [each for each in found if each.name > after]
    metadata: Raw = {"resourceVersion": str(revision)}
    if not limit or len(rest) <= limit:
        # facts 4: at the end `continue` is empty for custom resources and absent for built-in ones
        return Page(rest, metadata if ask.resource == "pods" else {"continue": "", **metadata})
    kept = rest[:limit]
    metadata = {"continue": _encoded(revision, ask.namespace, kept[-1].name), **metadata}
    # facts 4: with a selector the server does not know how many remain
    if not ask.query.get("labelSelector") and not ask.query.get("fieldSelector"):
        metadata["remainingItemCount"] = len(rest) - limit
    return Page(kept, dict(sorted(metadata.items())))


def pieces(resource: str, version: str, found: Page) -> Iterator[bytes]:
    """A list's JSON. Custom resources are written with their keys in order, so that items come before metadata and
    each says what it is; built-in ones have the list's metadata first and items without kind (facts 4)."""
    kind, metadata = f"{KINDS[resource]}List", written(found.metadata)
    typed = resource != "pods"
    if typed:
        yield f'{{"apiVersion":"{version}","items":['.encode()
    else:
        yield f'{{"kind":"{kind}","apiVersion":"{version}","metadata":{metadata},"items":['.encode()
    for index, each in enumerate(found.items):
        yield (b"," if index else b"") + each.text(typed=typed)
    yield (f'],"kind":"{kind}","metadata":{metadata}}}\n' if typed else "]}\n").encode()


def _selected(world: KonfluxWorld, ask: Ask) -> list[Item]:
    labels = LabelSelector.parse(ask.query.get("labelSelector", ""))
    version = f"{ask.group}/{ask.version}" if ask.group else f"/{ask.version}"
    allowed = FIELDS if ask.resource == "pods" else ("metadata.name", "metadata.namespace")
    fields = field_selector(ask.query.get("fieldSelector", ""), f"{version}, Resource={ask.resource}", allowed)
    found = [each for each in world.live.of(ask.resource, ask.namespace) if labels(each.labels) and fields(each.thing)]
    return sorted(found, key=lambda each: each.name)


def _limit(ask: Ask) -> int:
    try:
        return max(0, int(ask.query.get("limit") or 0))
    except ValueError as problem:
        raise bad_request(f'strconv.ParseInt: parsing "{ask.query["limit"]}": invalid syntax') from problem


def _encoded(revision: int, namespace: str, last: str) -> str:
    start = f"{namespace}/{last}\0"
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}, separators=(",", ":"))
    return urlsafe_b64encode(token.encode()).decode().rstrip("=")


def _decoded(token: str, world: KonfluxWorld) -> tuple[int, str]:
    """The revision that is listed, and the name after which the list goes on."""
    try:
        found = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        revision, (namespace, _, last) = int(found["rv"]), str(found["start"]).rstrip("\0").partition("/")
    except (ValueError, KeyError, TypeError, NotBase64) as problem:
        raise bad_request(f"continue key is not valid: {problem}") from problem
    if revision not in {_INCONSISTENT, world.revision}:
        raise _expired(_encoded(_INCONSISTENT, namespace, last))
    return world.revision, last


def _expired(fresh: str) -> Refused:
    refused = Refused(410, "Expired", _EXPIRED)
    refused.status["metadata"] = {"continue": fresh}
    return refused
