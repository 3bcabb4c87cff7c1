"""A process may die at any instant; another one goes on from the journal.

Every prefix of the journals of several rich runs is continued by a new loop. The script is wound forward by what the
prefix has settled, so a call that is paid for twice, or left out, runs into the wrong line.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.run_state import RunState
from hummingbird.core.conversation import WITHHELD, Conversation
from hummingbird.core.errors import (
    ContextOverflow,
    CreditExhausted,
    ProviderTimeout,
    ProviderUnavailable,
    ThinkingRefused,
)
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import (
    EndReason,
    FinishReason,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    PrefixChanged,
    RunEnded,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
    dump_entry,
    load_entry,
)
from hummingbird.core.messages import NOT_RUN, UNKNOWN_OUTCOME, NoticeKind, ToolMessage, find_problems
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.storage.journals import FileJournal, MemoryJournal
from tests.agent.stage import Stage, notices_in, paused, results_in, stage, tool
from tests.standins.scripted_model import ScriptedClock, ScriptedModel, ScriptLine, text_reply, tool_call_reply
from tests.thoroughly import also


class Echoing:
    """Says what it was asked, so that its results do not depend on which process asks."""

    def __init__(self, name: str, **spec: Any) -> None:
        self.spec = ToolSpec(name, f"Does {name}.", {"type": "object"}, trusted=True, **spec)
        self.ran: list[object] = []

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: object) -> str:
        self.ran.append(arguments.get("n"))
        return f"{self.spec.name} {arguments.get('n')}"


@dataclass
class Play:
    """A session: what the user says, what each model of the chain answers, in which limits."""

    texts: Sequence[str]
    scripts: Sequence[Sequence[ScriptLine]]
    limits: RunLimits = field(default_factory=RunLimits)


def work(*numbers: int, name: str = "look", text: str = "") -> ScriptLine:
    return tool_call_reply(*((name, f'{{"n":{number}}}') for number in numbers), text=text)


PLAYS = {
    "parallel tools": Play(["go"], [[work(1, 2, 3, text="looking"), work(4), work(5, 6), text_reply("done")]]),
    "sequential tools": Play(
        ["go"], [[tool_call_reply(("alone", '{"n":1}'), ("look", '{"n":2}'), ("alone", '{"n":3}')), text_reply("ok")]]
    ),
    "twins and mistakes": Play(
        ["go"],
        [
            [
                tool_call_reply(("look", '{"n":1}'), ("look", '{"n": 1}'), ("nope", "{}"), ("look", "[]")),
                text_reply("done"),
            ]
        ],
    ),
    "trouble": Play(
        ["go"],
        [
            [
                *(
                    ProviderUnavailable("busy"),
                    ProviderTimeout("slow"),
                    text_reply(""),
                    work(1),
                    text_reply("", finish=FinishReason.MALFORMED),
                ),
                *(
                    work(2, 3),
                    ThinkingRefused("signature"),
                    text_reply("half of ", finish=FinishReason.LENGTH),
                    paused("wait"),
                ),
                text_reply("done"),
            ]
        ],
    ),
    "fallbacks": Play(
        ["go"],
        [
            [work(1), CreditExhausted("none")],
            [
                work(2),
                ProviderUnavailable("busy"),
                work(3),
                text_reply("half of ", finish=FinishReason.LENGTH),
                CreditExhausted("none"),
            ],
            [text_reply("done")],
        ],
    ),
    "budgets": Play(
        ["go"], [[work(n) for n in range(9)] + [work(9, 10), text_reply("the end")]], RunLimits(iterations=10)
    ),
    "final without end": Play(["go"], [[work(1, text="so far"), work(2), work(3)]], RunLimits(iterations=2)),
    "circles": Play(["go"], [[work(1)] * 5 + [text_reply("I give up")]]),
    "strikes": Play(["go"], [[tool_call_reply(("nope", "{}"))] * 3 + [text_reply("I give up")]]),
    "overflow": Play(["go"], [[work(1), work(2, 3), ContextOverflow("too long"), text_reply("as far as I saw")]]),
    "refusal": Play(["go"], [[work(1), text_reply("no", finish=FinishReason.REFUSAL)]]),
    "error": Play(["go"], [[work(1), ZeroDivisionError("oops")]]),
    "three runs": Play(
        ["order", "reply", "another"],
        [
            [work(1), text_reply("one"), work(2), CreditExhausted("none")],
            [text_reply("two"), work(3), text_reply("three")],
        ],
    ),
}


def settled(entries: Sequence[JournalEntry], model: str) -> int:
    return sum(isinstance(entry, ModelAnswered | ModelFailed) and entry.model == model for entry in entries)


def on_journal(play: Play, journal: Journal, **given: Any) -> tuple[Stage, list[Echoing]]:
    """The play from where this journal leaves off."""
    entries = journal.entries()
    models = [
        ScriptedModel(script[settled(entries, f"m:{number}") :], name=f"m:{number}")
        for number, script in enumerate(play.scripts)
    ]
    tools = [Echoing("look"), Echoing("alone", exclusive=True)]
    clock = ScriptedClock(max((entry.at for entry in entries), default=1_000_000.0))
    given = {"tools": tools, "limits": play.limits, **given}
    return stage(*models, journal=journal, clock=clock, **given), tools


async def finish(play: Play, on: Stage) -> RunOutcome:
    """Goes on with what is unfinished, then says what has not been said yet."""
    said = sum(isinstance(e, UserSaid) and e.source is MessageSource.USER for e in on.journal.entries())
    outcome = await on.go_on() if on.loop.state.active else None
    for text in play.texts[said:]:
        outcome = await on.run(text)
    assert outcome is not None
    return outcome


async def whole(play: Play) -> tuple[RunOutcome, list[JournalEntry]]:
    on, _ = on_journal(play, MemoryJournal())
    outcome = await finish(play, on)
    on.consumed()
    return outcome, list(on.journal.entries())


def prefixes(entries: Sequence[JournalEntry]) -> list[list[JournalEntry]]:
    """All of them that leave something to do."""
    return [list(entries[:length]) for length in range(len(entries))]


def check_tools(prefix: Sequence[JournalEntry], entries: Sequence[JournalEntry], tools: Sequence[Echoing]) -> None:
    started = Counter(entry.call_id for entry in entries if isinstance(entry, ToolStarted))
    ended = Counter(entry.call_id for entry in entries if isinstance(entry, ToolFinished))
    assert set(started.values()) <= {1}
    assert set(ended.values()) <= {1}
    assert set(started) <= set(ended)
    before = {entry.call_id for entry in prefix if isinstance(entry, ToolStarted)}
    known = {entry.call_id for entry in prefix if isinstance(entry, ToolFinished)}
    for entry in entries:
        if isinstance(entry, ToolFinished) and entry.call_id in before - known:
            assert (entry.outcome, entry.text) == (ToolOutcome.UNKNOWN, UNKNOWN_OUTCOME)
    new = {e.call_id: e.arguments.replace(" ", "") for e in entries[len(prefix) :] if isinstance(e, ToolStarted)}
    ran = [f'{{"n":{number}}}' for each in tools for number in each.ran]
    assert set(ran) == set(new.values())
    assert len(ran) <= len(new)


def same_end(outcome: RunOutcome, wanted: RunOutcome, entries: Sequence[JournalEntry]) -> bool:
    """A result of unknown outcome is not the same result again, so a circle may be broken by it."""
    unknown = any(isinstance(entry, ToolFinished) and entry.outcome is ToolOutcome.UNKNOWN for entry in entries)
    circle = wanted.reason is EndReason.NO_PROGRESS and unknown
    same = (outcome.text, outcome.answered) == (wanted.text, wanted.answered)
    return same and (outcome.reason is wanted.reason or circle)


@pytest.mark.parametrize("name", PLAYS)
async def test_a_run_goes_on_from_every_prefix_of_its_journal(name: str) -> None:
    """To the same end; finished turns are not paid for again, started tools not run again."""
    play = PLAYS[name]
    wanted, entries = await whole(play)
    for prefix in prefixes(entries):
        on, tools = on_journal(play, MemoryJournal(prefix))
        outcome = await finish(play, on)
        on.consumed()
        assert same_end(outcome, wanted, on.journal.entries())
        assert list(on.journal.entries()[: len(prefix)]) == prefix
        for model, script in zip(on.models, play.scripts, strict=True):
            assert len(model.requests) == len(script) - settled(prefix, model.name)
        check_tools(prefix, on.journal.entries(), tools)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name if name == "trouble" else also(name) for name in PLAYS])
async def test_a_run_survives_two_deaths(name: str) -> None:
    """Also the one that goes on may die."""
    play = PLAYS[name]
    wanted, entries = await whole(play)
    for prefix in prefixes(entries)[3::5]:
        on, _ = on_journal(play, MemoryJournal(prefix))
        await finish(play, on)
        second = list(on.journal.entries())
        for length in range(len(prefix), len(second), 3):
            later, tools = on_journal(play, MemoryJournal(second[:length]))
            outcome = await finish(play, later)
            later.consumed()
            assert same_end(outcome, wanted, later.journal.entries())
            check_tools(second[:length], later.journal.entries(), tools)


CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
    "another prompt": lambda: {"system": "Another prompt."},
    "other tools": lambda: {"tools": [Echoing("look"), tool("new")]},
    "no tools": lambda: {"tools": []},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "name", ["parallel tools", also("sequential tools"), "trouble", also("budgets"), also("overflow")]
)
async def test_a_run_goes_on_when_the_prompt_or_the_tools_have_changed(name: str, change: str) -> None:
    """Calls that had not started are not run any more, nothing is sent that is not valid."""
    play = PLAYS[name]
    _, entries = await whole(play)
    for prefix in prefixes(entries)[3:]:
        on, _ = on_journal(play, MemoryJournal(prefix), **CHANGES[change]())
        on.models[0]._lines.extend([text_reply("enough")] * 9)
        outcome = await on.loop.resume()
        on.check(outcome)
        assert outcome.reason is not EndReason.UNEXPECTED_ERROR
        assert len(on.written(PrefixChanged)) == 1
        waiting = Conversation.from_entries(prefix).pending_calls
        texts = {m.call_id: m.text for m in outcome.messages if isinstance(m, ToolMessage)}
        assert {texts[call.id] for call in waiting} <= {NOT_RUN, UNKNOWN_OUTCOME, WITHHELD}


@pytest.mark.parametrize("name", ["parallel tools", "sequential tools", "trouble", "fallbacks", "budgets"])
async def test_a_run_goes_on_when_its_model_is_no_longer_configured(name: str) -> None:
    """With whichever is."""
    play = PLAYS[name]
    _, entries = await whole(play)
    for prefix in prefixes(entries)[3:]:
        model = ScriptedModel([text_reply("done by another")], name="x:new")
        on = stage(model, journal=MemoryJournal(prefix), tools=[Echoing("look"), Echoing("alone", exclusive=True)])
        outcome = await on.go_on()
        assert outcome.reason is not EndReason.UNEXPECTED_ERROR
        assert [
            entry.model for entry in on.written(ModelCalled)[sum(isinstance(e, ModelCalled) for e in prefix) :]
        ] in (
            ["x:new"],
            [],
        )


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["parallel tools", "trouble", "fallbacks", "budgets"])
async def test_a_new_message_instead_of_going_on_closes_the_dead_run(name: str) -> None:
    """From every prefix."""
    play = PLAYS[name]
    _, entries = await whole(play)
    for prefix in prefixes(entries)[3:]:
        model = ScriptedModel([text_reply("hello")], name="m:0")
        on = stage(model, journal=MemoryJournal(prefix), tools=[Echoing("look"), Echoing("alone", exclusive=True)])
        outcome = await on.run("something else")
        assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "hello")
        assert [entry.reason for entry in on.written(RunEnded)] == [EndReason.INTERRUPTED, EndReason.COMPLETED]


@pytest.mark.parametrize("name", PLAYS)
async def test_every_prefix_is_a_valid_conversation(name: str) -> None:
    _, entries = await whole(PLAYS[name])
    for length in range(len(entries) + 1):
        assert list(find_problems(Conversation.from_entries(entries[:length]).view())) == []


@pytest.mark.parametrize("name", PLAYS)
async def test_the_state_is_the_same_whether_it_was_lived_or_read(name: str) -> None:
    """All state is a projection; nothing is lost on the way through JSON."""
    play = PLAYS[name]
    on, _ = on_journal(play, MemoryJournal())
    await finish(play, on)
    read = RunState.from_entries([load_entry(dump_entry(entry), 1) for entry in on.journal.entries()])
    lived = on.loop.state
    assert read.conversation.view() == lived.conversation.view()
    for fact in (
        "iterations",
        "model",
        "final",
        "final_calls",
        "strikes",
        "counts",
        "failures",
        "usd",
        "context_tokens",
    ):
        assert getattr(read, fact) == getattr(lived, fact)


async def test_started_calls_are_told_as_of_unknown_outcome_and_the_others_run() -> None:
    """The words the model gets."""
    _, entries = await whole(PLAYS["sequential tools"])
    second = [i for i, entry in enumerate(entries) if isinstance(entry, ToolStarted)][1]
    on, tools = on_journal(PLAYS["sequential tools"], MemoryJournal(entries[: second + 1]))
    await on.go_on()
    assert [m.text for m in results_in(on.requests[0])] == ["alone 1", UNKNOWN_OUTCOME, "alone 3"]
    assert [each.ran for each in tools] == [[], [3]]


async def test_a_session_goes_on_from_its_file(tmp_path: Path) -> None:
    """Written by one process, torn in the middle of a line, continued by another."""
    play = PLAYS["fallbacks"]
    wanted, entries = await whole(play)
    lines = [dump_entry(entry) for entry in entries]
    for length in range(3, len(lines) - 1, 4):
        path = tmp_path / f"{length}.jsonl"
        path.write_bytes(b"".join(lines[:length]) + lines[length][:-9])
        journal = FileJournal(path)
        on, _ = on_journal(play, journal)
        assert (await finish(play, on)).text == wanted.text
        journal.close()
        again = FileJournal(path)
        assert Conversation.from_entries(again.entries()).view() == on.loop.state.conversation.view()
        again.close()


async def test_a_beginning_that_was_cut_short_is_simply_begun_again() -> None:
    """Nothing was said, so nothing is resumed."""
    _, entries = await whole(PLAYS["parallel tools"])
    for length in (1, 2):
        model = ScriptedModel([text_reply("done")], name="m:0")
        on = stage(
            model, journal=MemoryJournal(entries[:length]), tools=[Echoing("look"), Echoing("alone", exclusive=True)]
        )
        assert not on.loop.state.active
        await on.run("go")
        assert notices_in(model.requests[0], NoticeKind.CONTINUATION) == []


async def test_a_history_can_be_brought_again_when_the_beginning_was_cut_short() -> None:
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    first = stage(ScriptedModel([text_reply("done")]))
    wanted = await first.run("go", history=history)
    for length in range(4):
        on = stage(ScriptedModel([text_reply("done")]), journal=MemoryJournal(first.journal.entries()[:length]))
        assert (await on.run("go", history=history)).messages == wanted.messages
