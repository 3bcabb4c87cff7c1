"""What a request asks for: an address and a method, taken apart the way the real API server does it.

Knows paths and verbs; not who may use them, nor what is behind them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


@dataclass(frozen=True, slots=True)
class Ask:
    """`resource` is empty for addresses that are no resource: discovery, version, health."""

    method: str
    path: str
    verb: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_resource(self) -> str:
        """As roles name it: pods, pods/exec."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def parse(method: str, path: str, query: Mapping[str, str]) -> Ask:
    parts = [part for part in path.split("/") if part]
    plain = Ask(method, path, _VERBS.get(method, method.lower()), query=query)
    if parts[:1] == ["api"] and len(parts) > 2:
        return _resource(replace(plain, version=parts[1]), parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _resource(replace(plain, group=parts[1], version=parts[2]), parts[3:])
    return plain


def _resource(ask: Ask, rest: list[str]) -> Ask:
    namespace, verb = "", ask.verb
    if rest[0] == "namespaces" and len(rest) > 1:
        # a namespace itself is asked for in itself
        namespace, rest = rest[1], rest[2:] or rest
    resource, name, subresource = (*rest[:3], "", "")[:3]
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb in {"get", "list"} and ask.query.get("watch") in {"true", "1"}:
        verb = "watch"
    return replace(ask, verb=verb, namespace=namespace, resource=resource, name=name, subresource=subresource)
