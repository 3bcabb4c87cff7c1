"""Replay the answers of a recorded session as a model, without network, key or cost.

Every recorded answer to a turn is replayed, also those that the run discarded, because the loop must handle them again.
Before each answer, the messages since the last one are compared with the recording. So a run that takes another course
fails instead of getting answers to questions it did not ask. Failed attempts and side tasks are not replayed.

The model cannot notice a run that ends before the recording does. To check that, use `ReplayModel.remaining_turns`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import JournalDamaged, ReplayMismatch, SessionUnreadable
from hummingbird.core.journal import JournalEntry, ModelAnswered, ModelCalled, load_entry
from hummingbird.core.messages import AssistantMessage, Message, Notice, ToolMessage, UserMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.text import shorten_line
from hummingbird.models.local_models import LocalModel, stream_message

JOURNAL = "journal.jsonl"
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class _RecordedTurn:
    """A recorded answer. `said` are the messages since the previous answer, `answers` the number of earlier answers."""

    said: tuple[Message, ...]
    answers: int
    answered: ModelAnswered


class ReplayModel(LocalModel):
    """Answer each request with the recorded turn that belongs to it.

    The number of answers in the request identifies the turn. Where the recorded run discarded answers, several turns
    have the same number; then the number of notices since the last answer decides, but another version of the loop may
    send other notices. So, unlike other models, this one remembers the last turn that it played to each session: the
    same request gets the same answer, and a different one with as many answers gets the next. In a new process, without
    that memory, the turn is still found unless the notices changed.
    """

    def __init__(self, name: str, session_id: str, turns: Sequence[_RecordedTurn]) -> None:
        super().__init__(name)
        self._session_id = session_id
        self._turns = turns
        self._last: dict[str, tuple[int, tuple[Message, ...]]] = {}

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        index = self._find_turn(request)
        if index >= len(self._turns):
            raise ReplayMismatch(
                f"The recording {self._name} has {len(self._turns)} turns, but the conversation asks for one more."
            )
        turn = self._turns[index]
        if departure := self._describe_departure(turn, request):
            raise ReplayMismatch(
                f"The conversation departed from the recording {self._name} before turn {index + 1}: {departure}."
            )
        message = self._reply_message(turn.answered.message, request.session_id)
        stream_message(message, listen)
        self._last[request.session_id] = (index, _since_last_answer(request.messages))
        answered = turn.answered
        return ModelReply(message, answered.finish, answered.usage, dict(answered.raw_usage))

    def remaining_turns(self, session_id: str) -> int:
        """Return how many turns of the recording were not replayed to this session."""
        played = self._last.get(session_id)
        return len(self._turns) - (0 if played is None else played[0] + 1)

    def _find_turn(self, request: ModelRequest) -> int:
        answers, now = _count_answers(request.messages), _since_last_answer(request.messages)
        places = [index for index, turn in enumerate(self._turns) if turn.answers == answers]
        last, said = self._last.get(request.session_id, (-1, None))
        if last in places and said == now and not self._is_repeated(last):
            return last
        if said is not None and last + 1 in places:
            return last + 1
        alike = [index for index in places if _count_notices(self._turns[index].said) == _count_notices(now)]
        return next(iter(alike or places), len(self._turns))

    def _is_repeated(self, index: int) -> bool:
        """Tell whether the recorded run repeated the same request, after an answer that left no trace."""
        following = self._turns[index + 1 : index + 2]
        return any(
            (turn.said, turn.answers) == (self._turns[index].said, self._turns[index].answers) for turn in following
        )

    def _describe_departure(self, turn: _RecordedTurn, request: ModelRequest) -> str:
        """Describe the first difference between the request and the recording; empty if there is none.

        Notices are not compared: the loop writes them, and their text may change from version to version.
        """
        now = _since_last_answer(request.messages)
        expected = self._replace_session_id(_user_text(turn.said), request.session_id)
        if (got := _user_text(now)) != expected:
            return f"the user said {_show_difference(got, expected)}"
        then_results, now_results = _tool_results(turn.said), _tool_results(now)
        for then, got_result in zip(then_results, now_results, strict=False):
            if (then.call_id, then.name) != (got_result.call_id, got_result.name):
                return f"a result of {got_result.name} ({got_result.call_id}), not of {then.name} ({then.call_id})"
            if then.is_error != got_result.is_error:
                got, recorded = _error_word(got_result), _error_word(then)
                return f"the result of {then.name} ({then.call_id}) is {got} where the recording has {recorded}"
            text = self._replace_session_id(then.text, request.session_id)
            if got_result.text != text:
                return f"the result of {then.name} ({then.call_id}) is {_show_difference(got_result.text, text)}"
        if len(then_results) != len(now_results):
            return f"{len(now_results)} tool results instead of {len(then_results)}"
        return ""

    def _replace_session_id(self, text: str, session_id: str) -> str:
        return text.replace(self._session_id, session_id) if self._session_id else text

    def _reply_message(self, message: AssistantMessage, session_id: str) -> AssistantMessage:
        calls = tuple(
            replace(call, arguments=self._replace_session_id(call.arguments, session_id)) for call in message.calls
        )
        text, reasoning = (
            self._replace_session_id(message.text, session_id),
            self._replace_session_id(message.reasoning, session_id),
        )
        return replace(message, text=text, reasoning=reasoning, calls=calls)


def load_replay(path: str) -> ReplayModel:
    """Load a recording from a journal file, or from the session directory that contains one.

    Raises SessionUnreadable and JournalDamaged.
    """
    place = Path(path).expanduser()
    journal = place / JOURNAL if place.is_dir() else place
    try:
        content = journal.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SessionUnreadable(f"There is no recording to replay at {journal}: {reason}.") from error
    session_id, turns = _read_turns(_read_entries(content))
    if not turns:
        raise SessionUnreadable(f"The journal {journal} holds no model answer that could be replayed.")
    return ReplayModel(f"replay:{path}", session_id, turns)


def _read_entries(content: bytes) -> Iterator[JournalEntry]:
    """Yield the entries. Skip a damaged last line without a newline: its writer crashed while writing it."""
    *lines, last = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line:
            yield load_entry(line, number)
    if last:
        try:
            entry = load_entry(last, len(lines) + 1)
        except JournalDamaged:
            return
        yield entry


def _read_turns(entries: Iterable[JournalEntry]) -> tuple[str, list[_RecordedTurn]]:
    conversation, turns = Conversation(), list[_RecordedTurn]()
    asked: dict[str, tuple[tuple[Message, ...], int]] = {}
    for entry in entries:
        conversation.apply(entry)
        match entry:
            case ModelCalled(purpose="turn"):
                view = conversation.view()
                asked[entry.call_id] = _since_last_answer(view), _count_answers(view)
            case ModelAnswered() if entry.call_id in asked:
                turns.append(_RecordedTurn(*asked.pop(entry.call_id), entry))
    return conversation.session_id, turns


def _since_last_answer(messages: Sequence[Message]) -> tuple[Message, ...]:
    start = len(messages)
    while start and not isinstance(messages[start - 1], AssistantMessage):
        start -= 1
    return tuple(messages[start:])


def _count_answers(messages: Iterable[Message]) -> int:
    return sum(isinstance(message, AssistantMessage) for message in messages)


def _count_notices(messages: Iterable[Message]) -> int:
    return sum(isinstance(message, Notice) for message in messages)


def _error_word(result: ToolMessage) -> str:
    return "an error" if result.is_error else "none"


def _user_text(messages: Iterable[Message]) -> str:
    return "\n\n".join(message.text for message in messages if isinstance(message, UserMessage))


def _tool_results(messages: Iterable[Message]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def _show_difference(got: str, expected: str) -> str:
    """Quote both texts from shortly before their first difference."""
    pairs = enumerate(zip(got, expected, strict=False))
    alike = next((index for index, (one, other) in pairs if one != other), min(len(got), len(expected)))
    start = max(0, alike - _SHOWN // 4)
    dots = "…" if start else ""
    parts = [f"{dots}{shorten_line(text[start : start + 2 * _SHOWN], _SHOWN)}" for text in (got, expected)]
    return f"{parts[0]!r} where the recording has {parts[1]!r}"
