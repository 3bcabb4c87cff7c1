"""Compute views of the journal: the usage ledger, the status line of a run, and the Markdown transcript."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from hummingbird.core.journal import (
    TURN,
    Compacted,
    CompactionUndone,
    Delegated,
    EndReason,
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolDecided,
    ToolFinished,
    ToolStarted,
    TurnUndone,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.messages import AssistantMessage, Message, ToolMessage, UserMessage, messages_from_chat
from hummingbird.core.usage import OUTCOME_UNKNOWN, Bill, Charge, sum_charges
from hummingbird.core.verdicts import render_verdict


class UsageLedger:
    """List every model call attempt of a journal with its cost.

    Apply entries in order; read `charges` and `bill()`. `settled` holds the attempts whose outcome is known.
    """

    def __init__(self) -> None:
        self.settled: list[Charge] = []
        self._called: dict[str, ModelCalled] = {}
        self.known_usd = Decimal(0)
        self.unknown = 0

    @classmethod
    def from_entries(cls, entries: Iterable[JournalEntry]) -> "UsageLedger":
        """Build a ledger from all entries so far."""
        ledger = cls()
        for entry in entries:
            ledger.apply(entry)
        return ledger

    @property
    def charges(self) -> list[Charge]:
        """Return the settled attempts, then those of unknown outcome, which may have been billed."""
        lost = (Charge(call.model, call.purpose, OUTCOME_UNKNOWN) for call in self._called.values())
        return [*self.settled, *lost]

    def bill(self) -> Bill:
        """Return the sum of all charges."""
        return sum_charges(self.charges)

    def apply(self, entry: JournalEntry) -> None:
        """Apply the next journal entry."""
        match entry:
            case ModelCalled(call_id=call_id):
                self._called[call_id] = entry
            case ModelAnswered(call_id=call_id, model=model, usage=usage, cost_usd=cost):
                self._add(Charge(model, self._pop_purpose(call_id), "answered", usage, cost))
            case ModelFailed(call_id=call_id, model=model, happening=happening, lost=lost):
                self._add(Charge(model, self._pop_purpose(call_id), OUTCOME_UNKNOWN if lost else happening.value))
            case ToolFinished(charges=charges):
                for charge in charges:
                    self._add(charge)
            case _:
                pass

    def _pop_purpose(self, call_id: str) -> str:
        called = self._called.pop(call_id, None)
        return called.purpose if called else "turn"

    def _add(self, charge: Charge) -> None:
        self.settled.append(charge)
        if charge.cost_usd is not None:
            self.known_usd += charge.cost_usd
        elif charge.usage is not None:
            self.unknown += 1


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What a run is doing right now, for one line on a console or a page."""

    doing: str = "idle"
    model: str = ""
    iterations: int = 0
    context_tokens: int = 0
    running_tools: tuple[str, ...] = ()
    ended: EndReason | None = None
    sentence: str = ""


def compute_status(entries: Iterable[JournalEntry], before: RunStatus | None = None) -> RunStatus:
    """Fold entries into a status; `before` continues from an earlier one."""
    now = before or RunStatus()
    for entry in entries:
        now = _apply_entry(now, entry)
    return now


def _apply_entry(now: RunStatus, entry: JournalEntry) -> RunStatus:
    match entry:
        case RunStarted(model=model):
            return RunStatus(doing="starting", model=model)
        case ModelCalled(purpose=purpose) if purpose != TURN:
            return replace(now, doing=f"a side task: {purpose}")
        case ModelAnswered(purpose=purpose) | ModelFailed(purpose=purpose) if purpose != TURN:
            return replace(now, doing="thinking")
        case ModelCalled(model=model):
            return replace(now, doing="waiting for the model", model=model, sentence="")
        case ModelAnswered(usage=usage):
            count = now.iterations + 1
            return replace(now, doing="thinking", iterations=count, context_tokens=usage.context)
        case ModelFailed(sentence=sentence):
            return replace(now, doing="recovering", sentence=sentence)
        case ModelSwitched(model=model, reason=reason):
            return replace(now, model=model, sentence=reason)
        case ToolStarted(name=name):
            return replace(now, doing="running tools", running_tools=(*now.running_tools, name))
        case ToolFinished(name=name):
            left = list(now.running_tools)
            if name in left:
                left.remove(name)
            return replace(now, doing="running tools" if left else "thinking", running_tools=tuple(left))
        case RunEnded(reason=reason, sentence=sentence):
            return replace(now, doing="ended", ended=reason, running_tools=(), sentence=sentence)
        case _:
            return now


_TICKS = re.compile("`+")


def render_transcript(entries: Iterable[JournalEntry], run_id: str = "") -> str:
    """Render a session as Markdown, ending with its bill; notices are scaffolding and left out.

    With `run_id`, only that run is rendered. The bill is still that of the whole session, so that every place shows the
    same number.
    """
    ledger = UsageLedger()
    parts: list[str] = []
    told = not run_id
    for entry in entries:
        ledger.apply(entry)
        if run_id and isinstance(entry, RunStarted):
            told = entry.run_id == run_id
        if told:
            parts.extend(_entry_paragraphs(entry))
    parts.append(f"---\n\n{ledger.bill()}")
    return "\n\n".join(parts) + "\n"


def _entry_paragraphs(entry: JournalEntry) -> Iterator[str]:
    match entry:
        case SessionOpened(session_id=session_id):
            yield f"# Session {session_id}"
        case HistoryImported(messages=chat):
            for message in messages_from_chat(chat)[0]:
                yield from _message_paragraphs(message)
        case UserSaid(text=text, source=source):
            yield f"## {source.value.capitalize()}\n\n{text}"
        case VerdictRecorded(verdict=verdict):
            yield f"## Judged by rules\n\n{_code_block(render_verdict(verdict))}"
        case ModelAnswered(message=message, kept=True, model=model):
            yield from _assistant_paragraphs(message, model)
        case ModelFailed(sentence=sentence, model=model):
            yield f"> {model}: {sentence}"
        case ModelSwitched(model=model, reason=reason):
            yield f"> Going on with {model}: {reason}"
        case ToolDecided(name=name, by=by, decision=decision, reason=reason):
            yield f"> {name} was {decision} by {by}{': ' + reason if reason else ''}"
        case ToolFinished(name=name, text=text, outcome=outcome, seconds=seconds):
            yield f"### {name} ({outcome.value}, {seconds:.1f} s)\n\n{_code_block(text)}"
        case Delegated():
            yield from _subagent_paragraphs(entry)
        case Compacted(since=since, until=until):
            yield f"> Entries {since} to {until} were taken out of the model's view; a summary stands for them."
        case CompactionUndone():
            yield "> What the last summary stood for is in the model's view again."
        case TurnUndone():
            yield "> The last message and everything after it were undone: the model no longer sees them."
        case RunEnded(reason=reason, text=text, sentence=sentence, answered=answered):
            yield f"## Ended: {reason.value}" + (f"\n\n{sentence}" if sentence else "")
            if not answered:
                yield text
        case _:
            pass


def _subagent_paragraphs(entry: Delegated) -> Iterator[str]:
    """Render a sub-agent's entry, distinct from the session's own calls.

    No answer in this journal shows what the sub-agent called, so the call's arguments are rendered here.
    """
    own = entry.entry
    yield f"> Sub-agent {entry.task}:"
    if isinstance(own, ToolStarted) or entry.arguments:
        yield f"- `{own.name}` with"
        yield _code_block(own.arguments if isinstance(own, ToolStarted) else entry.arguments)
    yield from _entry_paragraphs(own)


def _message_paragraphs(message: Message) -> Iterator[str]:
    match message:
        case UserMessage(text=text):
            yield f"## User\n\n{text}"
        case AssistantMessage():
            yield from _assistant_paragraphs(message, "earlier")
        case ToolMessage(name=name, text=text):
            yield f"### {name}\n\n{_code_block(text)}"
        case _:
            pass


def _assistant_paragraphs(message: AssistantMessage, model: str) -> Iterator[str]:
    yield f"## Assistant ({model})"
    if message.reasoning:
        yield "\n".join(f"> {line}" for line in message.reasoning.splitlines())
    if message.text:
        yield message.text
    for call in message.calls:
        if "\n" in call.arguments:
            yield f"- `{call.name}` with"
            yield _code_block(call.arguments)
        else:
            yield _inline_call(call.name, call.arguments)


def _inline_call(name: str, arguments: str) -> str:
    return f"- `{name}` with {_code_span(arguments)}"


def _code_span(text: str) -> str:
    ticks = "`" * (_longest_backtick_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _code_block(text: str) -> str:
    """Quote the text verbatim, whatever backticks it contains."""
    fence = "`" * max(3, _longest_backtick_run(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def _longest_backtick_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
