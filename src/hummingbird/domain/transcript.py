"""The journal for people: Markdown of what was said and done. Notices are scaffolding and absent (L8)."""

import re
from collections.abc import Iterable, Iterator

from hummingbird.domain.history import from_chat
from hummingbird.domain.journal import (
    Compacted,
    CompactionUndone,
    Delegated,
    Entry,
    HistoryImported,
    Judged,
    ModelAnswered,
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
)
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hummingbird.domain.verdicts import plainly

_TICKS = re.compile("`+")


def transcript(entries: Iterable[Entry], run_id: str = "") -> str:
    """A session as Markdown, ending with its bill. `run_id`: that run alone; the bill is still the session's, so that
    the same number stands everywhere (L15)."""
    ledger = Ledger()
    parts: list[str] = []
    told = not run_id
    for entry in entries:
        ledger.apply(entry)
        if run_id and isinstance(entry, RunStarted):
            told = entry.run_id == run_id
        if told:
            parts.extend(_paragraphs(entry))
    parts.append(f"---\n\n{ledger.bill()}")
    return "\n\n".join(parts) + "\n"


def _paragraphs(entry: Entry) -> Iterator[str]:
    match entry:
        case SessionOpened(session_id=session_id):
            yield f"# Session {session_id}"
        case HistoryImported(messages=chat):
            for message in from_chat(chat)[0]:
                yield from _imported(message)
        case UserSaid(text=text, source=source):
            yield f"## {source.value.capitalize()}\n\n{text}"
        case Judged(verdict=verdict):
            yield f"## Judged by rules\n\n{_fenced(plainly(verdict))}"
        case ModelAnswered(message=message, kept=True, model=model):
            yield from _assistant(message, model)
        case ModelFailed(sentence=sentence, model=model):
            yield f"> {model}: {sentence}"
        case ModelSwitched(model=model, reason=reason):
            yield f"> Going on with {model}: {reason}"
        case ToolDecided(name=name, by=by, decision=decision, reason=reason):
            yield f"> {name} was {decision} by {by}{': ' + reason if reason else ''}"
        case ToolFinished(name=name, text=text, outcome=outcome, seconds=seconds):
            yield f"### {name} ({outcome.value}, {seconds:.1f} s)\n\n{_fenced(text)}"
        case Delegated():
            yield from _delegated(entry)
        case Compacted(since=since, until=until):
            yield f"> Entries {since} to {until} were taken out of the model's view; a summary stands for them."
        case CompactionUndone():
            yield "> What the last summary stood for is in the model's view again."
        case TurnUndone():
            yield "> The last message and what came of it were taken back: the model does not see them any more."
        case RunEnded(reason=reason, text=text, sentence=sentence, answered=answered):
            yield f"## Ended: {reason.value}" + (f"\n\n{sentence}" if sentence else "")
            if not answered:
                yield text
        case _:
            pass


def _delegated(entry: Delegated) -> Iterator[str]:
    """Told apart from the session's own calls. No answer says what was called, so this does."""
    own = entry.entry
    yield f"> Sub-agent {entry.task}:"
    if isinstance(own, ToolStarted) or entry.arguments:
        yield f"- `{own.name}` with"
        yield _fenced(own.arguments if isinstance(own, ToolStarted) else entry.arguments)
    yield from _paragraphs(own)


def _imported(message: Message) -> Iterator[str]:
    match message:
        case UserMessage(text=text):
            yield f"## User\n\n{text}"
        case AssistantMessage():
            yield from _assistant(message, "earlier")
        case ToolMessage(name=name, text=text):
            yield f"### {name}\n\n{_fenced(text)}"
        case _:
            pass


def _assistant(message: AssistantMessage, model: str) -> Iterator[str]:
    yield f"## Assistant ({model})"
    if message.reasoning:
        yield "\n".join(f"> {line}" for line in message.reasoning.splitlines())
    if message.text:
        yield message.text
    for call in message.calls:
        if "\n" in call.arguments:
            yield f"- `{call.name}` with"
            yield _fenced(call.arguments)
        else:
            yield _inline(call.name, call.arguments)


def _inline(name: str, arguments: str) -> str:
    return f"- `{name}` with {_ticked(arguments)}"


def _ticked(text: str) -> str:
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _fenced(text: str) -> str:
    """Verbatim, whatever back-ticks the text itself holds."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
