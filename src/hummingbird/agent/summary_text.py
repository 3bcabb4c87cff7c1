"""What stands in a conversation for a part of it, and what the summariser is given to read (L20).

Of one journal's entries: the user's words as they were said, what became of them, open items, names. What a model
wrote, prose and how answers begin, is fenced, and lines of prose with names that nobody mentioned are left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hummingbird.agent.tools.fence import fenced
from hummingbird.domain.asks import Ask, asks, taken_back
from hummingbird.domain.chat_limits import (
    SUMMARISED_RESULT_CHARS,
    SUMMARISED_TEXT_CHARS,
    SUMMARY_ANSWERS,
    SUMMARY_ASK_CHARS,
    SUMMARY_ASKS_CHARS,
    SUMMARY_LISTED_CHARS,
    SUMMARY_NAMES_CHARS,
    SUMMARY_PROSE_CHARS,
)
from hummingbird.domain.compactions import in_force
from hummingbird.domain.journal import Compacted, Entry, RunEnded, ToolFinished
from hummingbird.domain.names import names
from hummingbird.domain.session_words import Who, words_of
from hummingbird.domain.todos import Todos

_LEAST_SHOWN = 100  # characters of a result that the summariser reads
_BESIDE_NAME = 9  # characters around a name in the list: its number, a comma
_TWO_WORDS = re.compile(r"[a-z]+/[a-z]+")
_LEAST_CHECKED = 4  # characters of a name that is looked for in the record: shorter ones are everywhere


@dataclass(frozen=True)
class Told:
    """The entries `since` to `until` of a journal, the first of which is 1."""

    entries: Sequence[Entry]
    since: int
    until: int

    @cached_property
    def said(self) -> list[tuple[int, Who, str]]:
        """Entry by entry; how a run ended repeats what the model said."""
        gone = taken_back(self.entries)
        return [
            (number, words.who, words.text)
            for number in range(self.since, self.until + 1)
            if number not in gone and not isinstance(self.entries[number - 1], RunEnded)
            for words in words_of(self.entries[number - 1])
        ]

    @cached_property
    def asked(self) -> list[Ask]:
        """All of them so far: also what stays in the conversation is told apart by what became of it."""
        return asks(self.entries)

    @cached_property
    def text(self) -> str:
        """Everything in it, for looking up."""
        return "\n".join([*(text for _, _, text in self.said), *(ask.text for ask in self.asked), self.before]).lower()

    @cached_property
    def earlier(self) -> Compacted | None:
        """The compaction whose summary is among what is now taken out."""
        return next(reversed(in_force(self.entries)), None)

    @property
    def before(self) -> str:
        return self.earlier.summary if self.earlier else ""

    @property
    def new_since(self) -> int:
        """What the earlier summary does not speak of begins here."""
        return max(self.since, self.earlier.until + 1) if self.earlier else self.since


def to_summarise(told: Told, room: int, focus: str = "") -> str:
    """At most `room` characters: results are cut first, then what is oldest."""
    lines, most = [*_earlier(told), *_lines(told, SUMMARISED_RESULT_CHARS)], SUMMARISED_RESULT_CHARS
    while sum(map(len, lines)) > room and most > _LEAST_SHOWN:
        most //= 4
        lines = [*_earlier(told), *_lines(told, most)]
    while len(lines) > 1 and sum(map(len, lines)) > room:
        del lines[: max(1, len(lines) // 8)]
    record = fenced("\n".join(lines)[-room:], "record")
    wish = f"The user wants this kept above all: {focus}\n\n" if focus else ""
    return f"{wish}The record; a line begins with the number of its entry.\n\n{record}"


def _earlier(told: Told) -> Iterator[str]:
    if told.before:
        yield f"[notes on what was before]\n{told.before}"


def _lines(told: Told, most: int) -> Iterator[str]:
    for number, who, text in told.said:
        if number >= told.new_since:
            result = isinstance(told.entries[number - 1], ToolFinished)
            yield f"[{number}] {who.value}: {_ends(text, most if result else SUMMARISED_TEXT_CHARS)}"


def composed(told: Told, prose: str, *, recall: bool, why_none: str = "") -> str:
    """`why_none`: why no model wrote notes on it; there is only what the journal says then."""
    asked = (_asked(told), _answers(told))
    notes = why_none or _prose(told, prose)
    parts = [_heading(told, recall=recall), *asked, _open_items(told), _names(told), notes]
    return "\n\n".join(filter(None, parts))


def _heading(told: Told, *, recall: bool) -> str:
    how = (
        ' Nothing is lost: recall with session "current" searches them, and reads them by number.'
        if recall
        else " They are kept in the journal."
    )
    return f"To make room, entries {told.since} to {told.until} of this conversation are not shown any more.{how}"


def _asked(told: Told) -> str:
    """Word for word what is taken out; what stays is there to be read, and only its outcome is told. What is worked on
    is never cut. Of others that are long, or when there is too much, the ends are told, and how much is between; of
    the oldest of very many, where they are."""
    budget, room = SUMMARY_ASKS_CHARS, SUMMARY_LISTED_CHARS
    lines, folded = list[str](), list[int]()
    for ask in reversed(told.asked):
        if room <= 0 and not ask.open:
            folded.append(ask.number)
            continue
        stays = not told.since <= ask.number <= told.until
        most = 80 if stays or budget <= 0 else SUMMARY_ASK_CHARS
        most = len(ask.text) if ask.open and not stays else most
        quoted = "\n".join(f"> {line}" for line in _ends(ask.text, most).splitlines() or [""])
        lines.append(f"[{ask.number}] {ask.became}\n{quoted}")
        budget -= 0 if stays else len(lines[-1])
        room -= len(lines[-1])
    if folded:
        lines.append(f"[{folded[-1]} to {folded[0]}] {len(folded):,} earlier ones, all settled; their entries are kept")
    listed = "\n".join(reversed(lines))
    return (
        "What the user asked so far, word for word but for the characters that are counted in brackets, by the number "
        f"of its entry, with what became of it. Take up nothing again that is answered.\n{listed}"
    )


def _answers(told: Told) -> str:
    """They are a model's words, and a log may have put them into its mouth."""
    lines = [f"[{ask.number}] {ask.answer}" for ask in told.asked if ask.answer]
    return (
        f"How the answers to them begin:\n{fenced(chr(10).join(lines[-SUMMARY_ANSWERS:]), 'answers')}" if lines else ""
    )


def _open_items(told: Told) -> str:
    items = [f"{todo.number}. {todo.text} ({todo.state.value})" for todo in Todos.of(told.entries).open]
    return "Open items of the todo list:\n" + "\n".join(items) if items else ""


def _names(told: Told) -> str:
    """Those that people, the model and its calls mentioned, with the entry that did so last; the newest first."""
    last: dict[str, int] = {}
    size = 0
    for number, _, text in reversed(told.said):
        if size > SUMMARY_NAMES_CHARS:
            break
        if not isinstance(told.entries[number - 1], ToolFinished):
            new = dict.fromkeys(names(_ends(text, SUMMARISED_TEXT_CHARS)), number).keys() - last.keys()
            size += sum(map(len, new)) + len(new) * _BESIDE_NAME
            last |= dict.fromkeys(sorted(new), number)
    listed = fenced(", ".join(f"{name} [{number}]" for name, number in last.items()), "names")
    return f"Names that occurred: {listed}" if last else ""


def _prose(told: Told, prose: str) -> str:
    kept, dropped = _checked(prose, told.text)
    said = f" {dropped} lines with names that occur nowhere were left out." if dropped else ""
    return f"Notes on it, written by a model; check before you rely on them.{said}\n{fenced(kept, 'summary')}"


def _checked(prose: str, known: str) -> tuple[str, int]:
    lines = _ends(prose.strip(), 2 * SUMMARY_PROSE_CHARS).splitlines()
    kept = [line for line in lines if all(_occurs(name.lower(), known) for name in names(line))]
    return _ends("\n".join(kept).strip(), SUMMARY_PROSE_CHARS), len(lines) - len(kept)


def _occurs(name: str, known: str) -> bool:
    """Short ones are everywhere, and "read/write" is no path because somebody might have one of that name."""
    if len(name) < _LEAST_CHECKED or name in known:
        return True
    return bool(_TWO_WORDS.fullmatch(name)) and all(word in known for word in name.split("/"))


def _ends(text: str, most: int) -> str:
    """All of it, or two thirds of `most` from its beginning and the rest from its end."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    left = len(text) - most
    return f"{text[:head]} […{left:,} characters…] {text[len(text) - (most - head) :]}"
