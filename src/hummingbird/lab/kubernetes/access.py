"""Who asks, and whether they may: bearer tokens, roles in one namespace, and a record of every request.

A role is a table of resources and verbs. Nothing is granted beyond it but what every Kubernetes grants to all who
are known: discovery, version and health.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hummingbird.lab.kubernetes.asks import Ask
from hummingbird.lab.kubernetes.refusals import Refused, forbidden, unauthorized
from hummingbird.lab.kubernetes.store import GROUPS

Rules = Mapping[str, Iterable[str]]
SANDBOX_RULES: Rules = {
    "pods": ("create", "get", "list", "delete", "patch"),
    "pods/exec": ("create", "get"),
}
ANONYMOUS = "system:anonymous"
_OPEN_TO_ALL = {"/version", "/healthz", "/livez", "/readyz"}
_DISCOVERY = ("/api", "/apis")  # and what is below them, where no resource is


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as authorisation saw it; `resource` is as roles name it, or the path of what is no resource."""

    verb: str
    resource: str
    namespace: str
    name: str
    user: str
    allowed: bool


@dataclass(slots=True)
class Account:
    """`rules` None means everything, everywhere: the administrator."""

    user: str
    namespace: str = ""
    rules: dict[str, frozenset[str]] | None = None

    def may(self, ask: Ask) -> bool:
        if not ask.resource:
            return ask.method in {"GET", "HEAD"} and self._is_open(ask.path.rstrip("/"))
        if self.rules is None:
            return True
        known_group = GROUPS.get(ask.resource, ask.group) == ask.group
        granted = self.rules.get(ask.full_resource, frozenset())
        return known_group and ask.namespace == self.namespace and bool(self.namespace) and ask.verb in granted

    def _is_open(self, path: str) -> bool:
        below = tuple(f"{place}/" for place in _DISCOVERY)
        known = self.user != ANONYMOUS and (path in _DISCOVERY or path.startswith(below))
        return known or path in _OPEN_TO_ALL


@dataclass
class Access:
    accounts: dict[str, Account] = field(default_factory=dict)
    requests: list[Recorded] = field(default_factory=list)

    def add(self, account: Account) -> str:
        token = secrets.token_urlsafe(24)
        self.accounts[token] = account
        return token

    def grant(self, namespace: str, rules: Rules = SANDBOX_RULES, name: str = "hummingbird") -> str:
        return self.add(Account(f"system:serviceaccount:{namespace}:{name}", namespace, _frozen(rules)))

    def narrow(self, token: str, rules: Rules) -> None:
        self.accounts[token].rules = _frozen(rules)

    def admit(self, token: str, ask: Ask) -> str:
        """The user's name; raises 401 for an unknown token and 403 for what the role does not hold."""
        account = self.accounts.get(token) if token else Account(ANONYMOUS, rules={})
        if account is None:
            raise unauthorized()
        allowed = account.may(ask)
        what = ask.full_resource or ask.path
        self.requests.append(Recorded(ask.verb, what, ask.namespace, ask.name, account.user, allowed))
        if not allowed:
            raise _refusal(account.user, ask)
        return account.user


def _frozen(rules: Rules) -> dict[str, frozenset[str]]:
    return {resource: frozenset(verbs) for resource, verbs in rules.items()}


def _refusal(user: str, ask: Ask) -> Refused:
    if not ask.resource:
        return Refused(403, "Forbidden", f'forbidden: User "{user}" cannot {ask.verb} path "{ask.path}"')
    where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    what = f'cannot {ask.verb} resource "{ask.full_resource}" in API group "{ask.group}" {where}'
    qualified = f"{ask.resource}.{ask.group}" if ask.group else ask.resource
    return forbidden(qualified, ask.name, f'User "{user}" {what}')
