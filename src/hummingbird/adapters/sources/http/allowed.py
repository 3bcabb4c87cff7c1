"""The operator's allow-list for addresses that a model supplies (D7): scheme, host, port and path prefix.

Says which address to ask for, or why none. Whether a host's name leads to an address of one's own network is decided
where connections are made (network.py).
"""

from hummingbird.adapters.sources.http.addresses import is_literal, literal, reachable
from hummingbird.adapters.sources.http.urls import Odd, Target, taken_apart
from hummingbird.domain.errors import CallDenied, UsageFault
from hummingbird.domain.text import plain, shortened

_SHOWN_CHARS = 120
_SITE_CHARS = 80


class Allowed:
    """`bases` are web addresses; what is below one of them may be read. `private`: they may be addresses of one's own
    network. Raises UsageFault for a base that is none."""

    def __init__(self, bases: tuple[str, ...], private: bool = False) -> None:
        self._tops = tuple(_top(text, private) for text in bases)

    @property
    def bases(self) -> tuple[str, ...]:
        """As they are compared, with a slash at their end."""
        return tuple(map(str, self._tops))

    def admits(self, url: str) -> str:
        """The address to ask for. An http address whose https twin is allowed becomes that. Raises CallDenied."""
        try:
            target = taken_apart(url)
        except Odd as odd:
            raise CallDenied(f"The address {shown(url)} {odd}, so it was not read: {self._which()}") from odd
        for candidate in (target, target.secured()):
            if any(candidate.origin == top.origin and candidate.path.startswith(top.path) for top in self._tops):
                return str(candidate)
        kind = " is a number, no name, and" if is_literal(target.host) else ""
        raise CallDenied(
            f"The address {shown(url)}{kind} is not on the allow-list, so it was not read: {self._which()}"
        )

    def _which(self) -> str:
        if not self._tops:
            return "the operator allows no addresses here."
        return f"only addresses below {' or '.join(self.bases)} may be asked for."


def shown(url: str) -> str:
    """For a sentence: short, printable, and without a password or a query, which may hold a signature."""
    whole, question, _ = url.partition("?")
    before, at, rest = whole.rpartition("@")
    text = (f"…@{rest}" if at and before else whole) + ("?…" if question else "")
    return "".join(letter if letter.isprintable() else "�" for letter in shortened(plain(text), _SHOWN_CHARS))


def site(url: str) -> str:
    """For a sentence about an address that somebody else wrote: where it is, without any words that its path holds."""
    try:
        target = taken_apart(url)
    except Odd:
        return "an address that cannot be read"
    return str(Target(*target.origin, path="")) if len(target.host) <= _SITE_CHARS else "a host with a very long name"


def _top(text: str, private: bool) -> Target:
    try:
        target = taken_apart(text)
    except Odd as odd:
        raise UsageFault(
            f"The allowed address {shown(text)} {odd}: write it like https://artifacts.example.org/results/."
        ) from odd
    address = literal(target.host)
    if target.query:
        raise UsageFault(f"The allowed address {shown(text)} has a query: leave out everything from the ? on.")
    if address is not None and not reachable(address, private=private):
        could_be_allowed = reachable(address, private=True)
        raise UsageFault(
            f"The allowed address {shown(text)} is in a network that may not be read: name a public host"
            + (", or allow private addresses for this source." if could_be_allowed else ".")
        )
    return target if target.path.endswith("/") else Target(*target.origin, target.path + "/")
