"""What was said in a session, entry by entry, for those who look for words in it (S4).

Whole texts, as they stand in the journal: they may hold secrets, so whoever keeps them masks them first and cuts them
afterwards; a secret that was cut in two is none that could be recognised.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from hummingbird.domain.history import from_chat
from hummingbird.domain.journal import (
    TURN,
    Delegated,
    Entry,
    HistoryImported,
    Judged,
    ModelAnswered,
    RunEnded,
    Source,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hummingbird.domain.sessions import Summary
from hummingbird.domain.verdicts import plainly


class Who(StrEnum):
    """`run`: what no person, model or tool said but the run itself, its order included."""

    PERSON = "person"
    MODEL = "model"
    TOOL = "tool"
    RUN = "run"


class Words(NamedTuple):
    who: Who
    text: str


def words_of(entry: Entry) -> tuple[Words, ...]:
    """None for what says nothing; one a message for a history that was brought along. What a model thought and what
    its provider wants back are left out."""
    return tuple(words for words in _said(entry) if words.text.strip())


def _said(entry: Entry) -> Iterator[Words]:
    match entry:
        case UserSaid(text=text, source=source):
            yield Words(Who.RUN if source is Source.ORDER else Who.PERSON, text)
        case ModelAnswered(message=message, purpose=purpose) if purpose == TURN:
            yield Words(Who.MODEL, message.text)
        case ToolStarted(name=name, arguments=arguments):
            yield Words(Who.TOOL, f"{name} {arguments}")
        case ToolFinished(text=text):
            yield Words(Who.TOOL, text)
        case Delegated(entry=own, arguments=arguments):
            yield Words(Who.TOOL, f"{own.name} {arguments}" if arguments else "")
            yield from _said(own)
        case Judged(verdict=verdict):
            yield Words(Who.RUN, plainly(verdict))
        case RunEnded(text=text, sentence=sentence):
            yield Words(Who.RUN, "\n".join(filter(None, (text, sentence))))
        case HistoryImported(messages=chat):
            yield from chain.from_iterable(map(_said_before, from_chat(chat)[0]))
        case _:
            pass


def _said_before(message: Message) -> Iterator[Words]:
    match message:
        case UserMessage(text=text):
            yield Words(Who.PERSON, text)
        case AssistantMessage(text=text, calls=calls):
            yield Words(Who.MODEL, text)
            yield from (Words(Who.TOOL, f"{call.name} {call.arguments}") for call in calls)
        case ToolMessage(text=text):
            yield Words(Who.TOOL, text)
        case _:
            pass


def whole_title(made: Summary, entries: Iterable[Entry]) -> str:
    """The text that its title is the beginning of, for the title may end in the middle of a secret."""
    begun = made.title.removesuffix("…")
    if begun == made.title:
        return made.title
    said = (entry.text for entry in entries if isinstance(entry, UserSaid))
    return next((text for text in said if " ".join(text.split()).startswith(begun)), made.title)
