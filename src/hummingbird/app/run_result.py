"""The result of a run for library users: its answer, how it ended, what it cost, and which tools were called.

An answer of a given type works with any model: it is asked for JSON, which pydantic validates.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec

from hummingbird.agent.prompts import NO_ANSWER
from hummingbird.agent.tools.results import without_fence
from hummingbird.agent.tools.typed_function import remove_titles
from hummingbird.core.errors import RunFailed, UsageError
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import EndReason, JournalEntry, ModelAnswered, ToolFinished, ToolOutcome
from hummingbird.core.messages import Notice, message_to_chat
from hummingbird.core.projections import UsageLedger
from hummingbird.core.text import shorten_line
from hummingbird.core.usage import TokenUsage

OutputT = TypeVar("OutputT")


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A call that the model made in the run: what it asked for, and what it got."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    outcome: ToolOutcome

    @property
    def ok(self) -> bool:
        return self.outcome is ToolOutcome.OK


@dataclass(frozen=True, slots=True)
class RunResult(Generic[OutputT]):
    """The result of a run, however it ended; it is never raised but returned.

    Attributes:
        text: The answer; what there was of one if the run failed.
        ok: Whether `text` is the model's own, whole answer, and `output` what was asked for.
        reason: Why the run ended.
        error: What went wrong, in a sentence; None if nothing did.
        usage: The tokens of this run.
        cost_usd: The cost of this run; None while a price is unknown.
        session_usage: The tokens of the whole session.
        session_cost_usd: The cost of the whole session; None while a price is unknown.
        messages: The whole conversation in the form of Chat Completions.
        tool_calls: The calls of this run, in order.
        warnings: What went wrong beside the run, in sentences: a callback that raised, for example.
        session_id: The session, for `Agent(session_id=…)`.
        run_id: The run, as the journal names it.
        undelivered: Messages that came too late for an interrupted run.
        structured: What `output` returns; use that.
    """

    text: str
    ok: bool
    reason: EndReason
    error: str | None
    usage: TokenUsage
    cost_usd: Decimal | None
    session_usage: TokenUsage
    session_cost_usd: Decimal | None
    messages: Sequence[Mapping[str, Any]]
    tool_calls: Sequence[ToolCallRecord]
    warnings: Sequence[str]
    session_id: str
    run_id: str
    undelivered: Sequence[str] = ()
    structured: OutputT | None = field(default=None, repr=False)

    @property
    def output(self) -> OutputT:
        """Return the validated object that was asked for; the text if none was.

        Raises RunFailed if the run has no answer.
        """
        self.raise_for_failure()
        return self.structured  # type: ignore[return-value]  # it is set when the run is ok

    def raise_for_failure(self) -> None:
        """Raise RunFailed if the run has no answer."""
        if not self.ok:
            raise RunFailed(self.error or NO_ANSWER, self.reason, self.text)


def build_run_result(outcome: RunOutcome, entries: Sequence[JournalEntry], warnings: Sequence[str]) -> RunResult[str]:
    """Return the result of an outcome; `entries` are those of its run."""
    own = UsageLedger.from_entries(entries).bill()
    text = answer_text(outcome)
    return RunResult(
        text=text,
        ok=outcome.answered,
        reason=outcome.reason,
        error=failure_sentence(outcome),
        usage=own.usage,
        cost_usd=own.cost_usd,
        session_usage=outcome.bill.usage,
        session_cost_usd=outcome.bill.cost_usd,
        messages=chat_messages(outcome),
        tool_calls=list_tool_calls(entries),
        warnings=tuple(warnings),
        session_id=outcome.session_id,
        run_id=outcome.run_id,
        undelivered=outcome.undelivered,
        structured=text,
    )


def answer_text(outcome: RunOutcome) -> str:
    """Return the answer, or the part of it that was written; empty for our own sentence that there is no answer."""
    return "" if outcome.text == NO_ANSWER and not outcome.answered else outcome.text


def failure_sentence(outcome: RunOutcome) -> str | None:
    """Return why there is no answer; None if there is one."""
    if outcome.answered:
        return None
    return outcome.sentence or _REASONS.get(outcome.reason, f"The run ended without an answer ({outcome.reason}).")


_REASONS: Mapping[EndReason, str] = {
    EndReason.INTERRUPTED: "The run was interrupted.",
    EndReason.MAX_ITERATIONS: "The run used up its turns (max_iterations) before there was an answer.",
    EndReason.CONTEXT_LIMIT: "The conversation no longer fits into the context: begin a new session.",
    EndReason.COST_LIMIT: "The budget is used up (max_usd, max_usd_per_day).",
    EndReason.TIME_LIMIT: "The time for the run is used up (max_seconds).",
    EndReason.REFUSED: "The model refused to answer.",
    EndReason.EMPTY_RESPONSES: "The model's answers were empty or unusable several times in a row.",
    EndReason.NO_PROGRESS: "The model repeated the same calls and came to no answer.",
}


def chat_messages(outcome: RunOutcome) -> list[dict[str, Any]]:
    """Return the conversation without the notices that the loop itself added."""
    return [message_to_chat(message) for message in outcome.messages if not isinstance(message, Notice)]


def list_tool_calls(entries: Sequence[JournalEntry]) -> list[ToolCallRecord]:
    """Return the calls that were settled in these entries, in the order of their settling."""
    wanted: dict[str, str] = {}
    found = []
    for entry in entries:
        if isinstance(entry, ModelAnswered):
            wanted.update({call.id: call.arguments for call in entry.message.calls})
        elif isinstance(entry, ToolFinished):
            arguments = _read_arguments(wanted.get(entry.call_id, ""))
            found.append(ToolCallRecord(entry.name, arguments, without_fence(entry.text), entry.outcome))
    return found


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


ATTEMPTS = 3
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


async def run_for_output(
    output: type[OutputT], message: str, run: Callable[[str], Awaitable[RunResult[str]]]
) -> RunResult[OutputT]:
    """Run until the answer fits the type, at most three times; `error` says so if it never did.

    Usage, cost and tool calls are those of all attempts. Raises UsageError for a type that JSON cannot express.
    """
    from pydantic import PydanticUserError, TypeAdapter, ValidationError  # noqa: PLC0415 - slow to import
    from pydantic.errors import PydanticInvalidForJsonSchema  # noqa: PLC0415

    try:
        adapter: TypeAdapter[OutputT] = TypeAdapter(output)
        schema = json.dumps(remove_titles(adapter.json_schema()))
    except (PydanticUserError, PydanticInvalidForJsonSchema) as error:
        raise UsageError(f"output is {output!r}, which JSON cannot express: {shorten_line(str(error), 200)}") from error
    asked = (
        f"{message}\n\nWhen you have the answer, write it as one JSON value and nothing else. It must fit this JSON "
        f"Schema:\n{schema}"
    )
    past: RunResult[Any] | None = None
    faults = ""
    for _ in range(ATTEMPTS):
        result = await run(asked)
        total: RunResult[Any] = result if past is None else _add_results(past, result)
        past = total
        if not result.ok:
            return replace(total, structured=None)
        try:
            return replace(total, structured=adapter.validate_json(find_json(result.text)))
        except ValidationError as error:
            faults = "; ".join(
                f"{'/'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}"
                for one in error.errors(include_url=False)
            )
            asked = (
                f"That does not fit the schema: {shorten_line(faults, 1000)}. Write the whole answer again, as one "
                "JSON value and nothing else."
            )
    assert past is not None
    sentence = f"The model's answer did not fit {getattr(output, '__name__', output)} in {ATTEMPTS} attempts."
    return replace(past, ok=False, error=f"{sentence} {shorten_line(faults, 300)}", structured=None)


def find_json(text: str) -> str:
    """Return the JSON of an answer, which may stand in a code block or between words."""
    bare = text.strip()
    if found := _FENCE.search(bare):
        return found[1].strip()
    if bare[:1] in "{[":
        return bare
    starts = [at for sign in "{[" if (at := bare.find(sign)) >= 0]
    end = max(bare.rfind("}"), bare.rfind("]"))
    return bare[min(starts) : end + 1] if starts and end > min(starts) else bare


def _add_results(past: RunResult[Any], last: RunResult[Any]) -> RunResult[Any]:
    costs = (past.cost_usd, last.cost_usd)
    return replace(
        last,
        usage=past.usage + last.usage,
        cost_usd=None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        tool_calls=[*past.tool_calls, *last.tool_calls],
        warnings=[*past.warnings, *last.warnings],
    )
