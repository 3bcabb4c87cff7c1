"""What was said in a session, looked up in its own entries (C7): by plain letters first, then by words. No index: what
was said a moment ago is found too, and an identifier is found as it is written.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from heapq import nlargest
from itertools import islice
from typing import NamedTuple
from unicodedata import normalize

from hummingbird.domain.journal import Delegated, Entry, ModelAnswered, ToolFinished, ToolStarted, UserSaid
from hummingbird.domain.mind_limits import RECALL_WORDS
from hummingbird.domain.session_words import Who, Words, words_of
from hummingbird.domain.text import plain


class Said(NamedTuple):
    """`number` of its entry in the journal, which begins with 1; `part` of it, not 0 only in a history of several
    messages."""

    number: int
    part: int
    who: Who
    text: str
    at: float = 0.0


class Place(NamedTuple):
    """A text that has what was looked for, and the term by which it was found."""

    said: Said
    term: str

    def snippet(self, mask: Callable[[str], str], chars: int) -> str:
        """Around the term, on one line; masked before it is cut."""
        text = mask(plain(self.said.text))
        middle = _original(text, folded(text).find(self.term))
        start = max(0, middle - chars // 3)
        part = " ".join(text[start : start + chars].split())
        return ("…" if start else "") + part + ("…" if start + chars < len(text) else "")


def found_here(entries: Sequence[Entry], query: str, limit: int, without: str = "") -> list[Place]:
    """Best first: texts with the query as it stands, then those with all of its words, then with most of them. Of equal
    ones the newest. What the tool `without` was asked and said is left out: it repeats what is looked for."""
    whole, words = _terms(query)
    never = _never_ran(entries, without)
    found: list[tuple[int, int, Entry]] = []
    for number, entry in enumerate(entries, 1):
        text = folded(_letters(entry, never))
        if score := _score(text, whole, words):
            call = entry.entry if isinstance(entry, Delegated) else entry
            if isinstance(call, ToolStarted | ToolFinished) and call.name == without:
                continue
            found.append((score, number, entry))
    best = nlargest(limit, found, key=lambda one: one[:2])
    return [place for _, number, entry in best for place in _places(entry, number, whole, words, never)][:limit]


def _never_ran(entries: Sequence[Entry], without: str = "") -> Set[str]:
    """Calls that were denied, wrong or skipped: what they would have done stands only in the answer that wanted it."""
    wanted: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, ToolStarted):
            wanted.pop(entry.call_id, None)
        elif isinstance(entry, ModelAnswered):
            wanted |= {call.id: call.name for call in entry.message.calls}
    return {call_id for call_id, name in wanted.items() if name != without}


def _words(entry: Entry, never: Set[str]) -> tuple[Words, ...]:
    if not isinstance(entry, ModelAnswered) or not entry.message.calls:
        return words_of(entry)
    calls = (call for call in entry.message.calls if call.id in never)
    return (*words_of(entry), *(Words(Who.MODEL, f"{call.name} {call.arguments}") for call in calls))


def _letters(entry: Entry, never: Set[str] = frozenset()) -> str:
    """All that `_words` finds in an entry. Those that most of a long journal consists of are not taken apart for it:
    a hundred thousand of them shall not take longer than a person waits."""
    if isinstance(entry, ToolFinished | UserSaid):
        return entry.text
    if isinstance(entry, ToolStarted):
        return f"{entry.name} {entry.arguments}"
    return "\n".join([text for _, text in _words(entry, never)])


def _score(text: str, whole: str, words: Sequence[str]) -> int:
    if whole in text:
        return len(words) + 1
    return sum(word in text for word in words) if len(words) > 1 else 0


def _places(entry: Entry, number: int, whole: str, words: Sequence[str], never: Set[str]) -> list[Place]:
    """The parts of an entry that have something, the best one first."""
    scored = [(_score(folded(said.text), whole, words), said) for said in _said(entry, number, never)]
    ordered = sorted((one for one in scored if one[0]), key=lambda one: -one[0])
    return [Place(said, _term(folded(said.text), whole, words)) for _, said in ordered]


def _term(text: str, whole: str, words: Sequence[str]) -> str:
    return whole if whole in text else max((word for word in words if word in text), key=len, default="")


def said_around(entries: Sequence[Entry], number: int, part: int, before: int, after: int) -> list[Said]:
    """That text, or the next one there is, with as many before and after. Empty if there is no such entry."""
    if not 1 <= number <= len(entries):
        return []
    never = _never_ran(entries)
    return [
        *reversed(list(islice(_backward(entries, number, part, never), before))),
        *islice(_forward(entries, number, part, never), after + 1),
    ]


def _forward(entries: Sequence[Entry], number: int, part: int, never: Set[str]) -> Iterator[Said]:
    for place in range(number, len(entries) + 1):
        yield from (one for one in _said(entries[place - 1], place, never) if (one.number, one.part) >= (number, part))


def _backward(entries: Sequence[Entry], number: int, part: int, never: Set[str]) -> Iterator[Said]:
    for place in range(number, 0, -1):
        said = [one for one in _said(entries[place - 1], place, never) if (one.number, one.part) < (number, part)]
        yield from reversed(said)


def _said(entry: Entry, number: int, never: Set[str]) -> Iterator[Said]:
    for part, (who, text) in enumerate(_words(entry, never)):
        yield Said(number, part, who, text, entry.at)


def _terms(query: str) -> tuple[str, list[str]]:
    """The query as a whole, and its words; several in quotation marks are one."""
    quoted = query.split('"')
    words = [part for n, text in enumerate(quoted) for part in ([text] if n % 2 else text.split())]
    terms = list(dict.fromkeys(term for word in words if (term := folded(word).strip())))
    whole = folded(" ".join(query.replace('"', " ").split()))
    return whole or folded(query), terms[:RECALL_WORDS]


def folded(text: str) -> str:
    """Without the difference between large and small letters, and between two ways to write an umlaut."""
    return text.lower() if text.isascii() else normalize("NFC", text).casefold()


def _original(text: str, place: int) -> int:
    """Where in the text that is which its folded form has at `place`: folding makes some letters two."""
    if place <= 0 or len(folded(text)) == len(text):
        return max(0, place)
    return bisect_left(range(len(text)), place, key=lambda end: len(folded(text[:end])))
