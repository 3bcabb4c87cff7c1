"""A model that plays the answers of a recorded session (M8): no network, no key, no cost.

Every answer to a turn is played, also those that the run did not keep: the loop must deal with them again. Before
each one, what was said since the last is compared with the recording, so that a run that goes another way fails
loudly instead of getting answers to questions it did not ask. Failed attempts and side tasks are not played.

A run that ends before the recording does is not a departure that a model could see: nobody asks it any more. Whoever
plays a recording to its end asks `remaining`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hummingbird.adapters.models.local import LocalModel, told
from hummingbird.domain.conversation import Conversation
from hummingbird.domain.errors import JournalDamaged, ScriptDeparted, SessionUnreadable
from hummingbird.domain.journal import Entry, ModelAnswered, ModelCalled, load
from hummingbird.domain.messages import AssistantMessage, Message, Notice, ToolMessage, UserMessage
from hummingbird.domain.text import shortened
from hummingbird.ports.model import Listen, ModelReply, ModelRequest

JOURNAL = "journal.jsonl"
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class _Turn:
    """`said`: what the model was told since its last answer. `answers`: how many it had given before."""

    said: tuple[Message, ...]
    answers: int
    answered: ModelAnswered


class ReplayModel(LocalModel):
    """The turn is found in the request: by the answers that it holds and, where some were not kept, by the notices
    after the last one. Only the notices' number can be compared, and another version of the loop may show others. So,
    unlike other models, this one remembers the last turn that it played to each session: the same request gets the
    same answer, another one with as many answers the next. Without that memory, in a new process, the turn is found all
    the same unless notices changed."""

    def __init__(self, name: str, session_id: str, turns: Sequence[_Turn]) -> None:
        super().__init__(name)
        self._session_id = session_id
        self._turns = turns
        self._last: dict[str, tuple[int, tuple[Message, ...]]] = {}

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        index = self._position(request)
        if index >= len(self._turns):
            raise ScriptDeparted(
                f"The recording {self._name} has {len(self._turns)} turns, but the conversation asks for one more."
            )
        turn = self._turns[index]
        if departure := self._departure(turn, request):
            raise ScriptDeparted(
                f"The conversation departed from the recording {self._name} before turn {index + 1}: {departure}."
            )
        message = self._spoken(turn.answered.message, request.session_id)
        told(message, listen)
        self._last[request.session_id] = (index, _since_last_answer(request.messages))
        answered = turn.answered
        return ModelReply(message, answered.finish, answered.usage, dict(answered.raw_usage))

    def remaining(self, session_id: str) -> int:
        """How many turns of the recording this session has not played."""
        played = self._last.get(session_id)
        return len(self._turns) - (0 if played is None else played[0] + 1)

    def _position(self, request: ModelRequest) -> int:
        answers, now = _answers(request.messages), _since_last_answer(request.messages)
        places = [index for index, turn in enumerate(self._turns) if turn.answers == answers]
        last, said = self._last.get(request.session_id, (-1, None))
        if last in places and said == now and not self._repeats(last):
            return last
        if said is not None and last + 1 in places:
            return last + 1
        alike = [index for index in places if _notices(self._turns[index].said) == _notices(now)]
        return next(iter(alike or places), len(self._turns))

    def _repeats(self, index: int) -> bool:
        """Whether the recorded run itself asked the same again: after an answer that left no trace."""
        following = self._turns[index + 1 : index + 2]
        return any(
            (turn.said, turn.answers) == (self._turns[index].said, self._turns[index].answers) for turn in following
        )

    def _departure(self, turn: _Turn, request: ModelRequest) -> str:
        """Notices are the loop's own words, which may change from version to version."""
        now = _since_last_answer(request.messages)
        expected = self._renamed(_user_text(turn.said), request.session_id)
        if (got := _user_text(now)) != expected:
            return f"the user said {_shown(got, expected)}"
        then_results, now_results = _results(turn.said), _results(now)
        for then, got_result in zip(then_results, now_results, strict=False):
            if (then.call_id, then.name) != (got_result.call_id, got_result.name):
                return f"a result of {got_result.name} ({got_result.call_id}), not of {then.name} ({then.call_id})"
            if then.is_error != got_result.is_error:
                got, recorded = _ended(got_result), _ended(then)
                return f"the result of {then.name} ({then.call_id}) is {got} where the recording has {recorded}"
            text = self._renamed(then.text, request.session_id)
            if got_result.text != text:
                return f"the result of {then.name} ({then.call_id}) is {_shown(got_result.text, text)}"
        if len(then_results) != len(now_results):
            return f"{len(now_results)} tool results instead of {len(then_results)}"
        return ""

    def _renamed(self, text: str, session_id: str) -> str:
        return text.replace(self._session_id, session_id) if self._session_id else text

    def _spoken(self, message: AssistantMessage, session_id: str) -> AssistantMessage:
        calls = tuple(replace(call, arguments=self._renamed(call.arguments, session_id)) for call in message.calls)
        text, reasoning = self._renamed(message.text, session_id), self._renamed(message.reasoning, session_id)
        return replace(message, text=text, reasoning=reasoning, calls=calls)


def replay_of(path: str) -> ReplayModel:
    """The recording in this journal file, or in the session directory that holds one.

    Raises SessionUnreadable and JournalDamaged.
    """
    place = Path(path).expanduser()
    journal = place / JOURNAL if place.is_dir() else place
    try:
        content = journal.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SessionUnreadable(f"There is no recording to replay at {journal}: {reason}.") from error
    session_id, turns = _recorded(_entries(content))
    if not turns:
        raise SessionUnreadable(f"The journal {journal} holds no model answer that could be replayed.")
    return ReplayModel(f"replay:{path}", session_id, turns)


def _entries(content: bytes) -> Iterator[Entry]:
    """A last line without its newline was cut off by the death of its writer: it is no entry."""
    *lines, last = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line:
            yield load(line, number)
    if last:
        try:
            entry = load(last, len(lines) + 1)
        except JournalDamaged:
            return
        yield entry


def _recorded(entries: Iterable[Entry]) -> tuple[str, list[_Turn]]:
    conversation, turns = Conversation(), list[_Turn]()
    asked: dict[str, tuple[tuple[Message, ...], int]] = {}
    for entry in entries:
        conversation.apply(entry)
        match entry:
            case ModelCalled(purpose="turn"):
                view = conversation.view()
                asked[entry.call_id] = _since_last_answer(view), _answers(view)
            case ModelAnswered() if entry.call_id in asked:
                turns.append(_Turn(*asked.pop(entry.call_id), entry))
    return conversation.session_id, turns


def _since_last_answer(messages: Sequence[Message]) -> tuple[Message, ...]:
    start = len(messages)
    while start and not isinstance(messages[start - 1], AssistantMessage):
        start -= 1
    return tuple(messages[start:])


def _answers(messages: Iterable[Message]) -> int:
    return sum(isinstance(message, AssistantMessage) for message in messages)


def _notices(messages: Iterable[Message]) -> int:
    return sum(isinstance(message, Notice) for message in messages)


def _ended(result: ToolMessage) -> str:
    return "an error" if result.is_error else "none"


def _user_text(messages: Iterable[Message]) -> str:
    return "\n\n".join(message.text for message in messages if isinstance(message, UserMessage))


def _results(messages: Iterable[Message]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def _shown(got: str, expected: str) -> str:
    """Both from shortly before the first difference."""
    pairs = enumerate(zip(got, expected, strict=False))
    alike = next((index for index, (one, other) in pairs if one != other), min(len(got), len(expected)))
    start = max(0, alike - _SHOWN // 4)
    dots = "…" if start else ""
    parts = [f"{dots}{shortened(text[start : start + 2 * _SHOWN], _SHOWN)}" for text in (got, expected)]
    return f"{parts[0]!r} where the recording has {parts[1]!r}"
