"""What sub-agents do is on record: in the parent's journal, beside its conversation, and asked about once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from hummingbird.agent.loop import DELEGATED_BYTES
from hummingbird.agent.run_state import RunState
from hummingbird.agent.todo_list import TodoList
from hummingbird.agent.tools.chat_tools import TodoTool
from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.core.errors import JournalUnwritable
from hummingbird.core.events import EntryRecorded
from hummingbird.core.journal import Delegated, JournalEntry, ToolDecided, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.masking import MASK, Secrets
from hummingbird.core.permissions import PermissionAction, PermissionRule
from hummingbird.core.projections import UsageLedger, compute_status
from hummingbird.core.protocols.tools import Tool, ToolContext
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from hummingbird.storage.journals import MemoryJournal
from tests.agent.asking import NO, SESSION, Person, decided
from tests.agent.stage import ANYTHING, stage, tool
from tests.app.family import CENT, Cast, Family, delegates
from tests.standins.scripted_model import text_reply, tool_call_reply

SECRET = "s3cr3t-of-the-house"
TOUCH = tool_call_reply(("touch", '{"file": "a"}'))


def touch(ran: list[str] | None = None) -> Tool:
    def does(file: str) -> str:
        (ran if ran is not None else []).append(file)
        return f"touched {file}"

    return tool("touch", does, effects=frozenset({ToolEffect.WRITE}))


def kept(family: Family) -> list[tuple[int, JournalEntry]]:
    return [(each.task, each.entry) for each in family.play.written(Delegated)]


async def test_decisions_and_calls_of_sub_agents_stand_in_the_parent_s_journal() -> None:
    rules = SessionPermissions([PermissionRule(PermissionAction.ALLOW, "touch", name="touching")])
    model = Cast(go=[delegates("a", "b"), text_reply("done")], a=[TOUCH, text_reply("a")], b=[TOUCH, text_reply("b")])
    family = Family(model, [touch()], permissions=rules)
    await family.play.run("go")
    [parent] = family.play.written(ToolStarted)  # its own call is the only one of its own
    assert {each.call_id for each in family.play.written(Delegated)} == {parent.call_id}
    shown = [event.entry for event in family.play.seen if isinstance(event, EntryRecorded)]
    assert [each for each in shown if isinstance(each, Delegated)] == family.play.written(Delegated)
    for number in (1001, 1002):
        decision, began, ended = (entry for task, entry in kept(family) if task == number)
        assert isinstance(decision, ToolDecided)
        assert (decision.decision, decision.by) == ("allowed", "the rule 'touching'")
        assert isinstance(began, ToolStarted)
        assert (began.name, began.arguments) == ("touch", '{"file": "a"}')
        assert isinstance(ended, ToolFinished)
        assert (ended.outcome, ended.text) == (ToolOutcome.OK, "touched a")


async def test_a_call_that_was_not_allowed_is_on_record_with_what_it_wanted() -> None:
    rules = SessionPermissions([PermissionRule(PermissionAction.DENY, "touch", name="hands off")])
    wrong = tool_call_reply(("no_such_tool", '{"x": 1}'))
    model = Cast(go=[delegates("a"), text_reply("done")], a=[TOUCH, wrong, text_reply("a")])
    family = Family(model, [touch()], permissions=rules)
    await family.play.run("go")
    decision, denied, mistake = family.play.written(Delegated)
    assert isinstance(decision.entry, ToolDecided)
    assert (decision.entry.decision, decision.arguments) == ("denied", "")
    assert isinstance(denied.entry, ToolFinished)
    assert (denied.entry.outcome, denied.arguments) == (ToolOutcome.DENIED, '{"file": "a"}')
    assert denied.entry.call_id == decision.entry.call_id
    assert isinstance(mistake.entry, ToolFinished)
    assert (mistake.entry.outcome, mistake.arguments) == (ToolOutcome.MISTAKE, '{"x": 1}')


async def test_the_record_is_masked_and_has_an_end() -> None:
    look = tool("look", lambda **_: SECRET + "é" * DELEGATED_BYTES)
    long = msgspec.json.encode({"key": SECRET, "more": "y" * 3 * DELEGATED_BYTES}).decode()
    model = Cast(go=[delegates("a"), text_reply("done")], a=[tool_call_reply(("look", long)), text_reply("a")])
    family = Family(model, [look], secrets=Secrets([SECRET]))
    await family.play.run("go")
    [began, ended] = [entry for _, entry in kept(family)]
    assert isinstance(began, ToolStarted)
    assert isinstance(ended, ToolFinished)
    for text in (began.arguments, ended.text):
        assert MASK in text
        assert SECRET not in text
        assert DELEGATED_BYTES < len(text.encode()) < DELEGATED_BYTES + 100
        assert "[the first 4,096 of " in text


async def test_nothing_of_it_is_counted_twice_or_part_of_the_conversation() -> None:
    """The parent's view, bill, list, status and state are what they would be without."""
    create = tool_call_reply(("todo", '{"action": "create", "texts": ["a child\'s"]}'))
    journal = MemoryJournal()
    model = Cast(go=[delegates("a"), text_reply("done")], a=[create, TOUCH, text_reply("a")])
    family = Family(model, [TodoTool(journal.entries), touch()], journal=journal)
    outcome = await family.play.run("go")
    entries = journal.entries()
    without = [entry for entry in entries if not isinstance(entry, Delegated)]
    assert len(entries) - len(without) == 4
    assert outcome.bill.known_usd == 5 * CENT
    assert UsageLedger.from_entries(entries).bill() == UsageLedger.from_entries(without).bill()
    assert TodoList.from_entries(entries).all == TodoList.from_entries(without).all == ()
    assert compute_status(entries) == compute_status(without)
    here, there = RunState.from_entries(entries), RunState.from_entries(without)
    assert here.conversation.view() == there.conversation.view()
    assert (here.iterations, here.context_tokens, here.counts) == (there.iterations, there.context_tokens, there.counts)
    assert not any(entry.charges for _, entry in kept(family) if isinstance(entry, ToolFinished))


async def test_a_yes_for_the_session_holds_above_below_and_beside() -> None:
    """Asked once: by the parent, two sub-agents at the same time, and the parent again."""
    ran: list[str] = []
    other = tool_call_reply(("touch", '{"file": "b"}'))
    model = Cast(
        go=[TOUCH, delegates("a", "b"), other, TOUCH, text_reply("done")],
        a=[TOUCH, other, text_reply("a")],
        b=[TOUCH, other, text_reply("b")],
    )
    person = Person(SESSION, SESSION)
    family = Family(
        model,
        [touch(ran)],
        permissions=SessionPermissions([PermissionRule(PermissionAction.ALLOW, "delegate")], asker=person),
    )
    await family.play.run("go")
    assert [question.text for question in person.questions] == ['touch {"file":"a"}', 'touch {"file":"b"}']
    assert sorted(ran) == ["a"] * 4 + ["b"] * 3
    assert [each for each in decided(family.play) if each[0] == "touch"] == [
        ("touch", "allowed", "Ada", "session"),
        ("touch", "allowed", "a grant (session)", ""),
        ("touch", "allowed", "a grant (session)", ""),
    ]


async def test_a_yes_to_a_sub_agent_survives_a_resume_and_a_no_is_none() -> None:
    ran: list[str] = []
    other = tool_call_reply(("touch", '{"file": "b"}'))
    rules = [PermissionRule(PermissionAction.ALLOW, "delegate")]
    model = Cast(go=[delegates("a"), text_reply("done")], a=[TOUCH, other, text_reply("a")])
    first = Family(model, [touch(ran)], permissions=SessionPermissions(rules, asker=Person(SESSION, NO)))
    await first.play.run("go")
    again = Person(NO)
    model = Cast(go=[TOUCH, other, text_reply("done")])
    later = Family(model, [touch(ran)], permissions=SessionPermissions(rules, asker=again), journal=first.play.journal)
    await later.play.loop.run("go")
    assert [question.text for question in again.questions] == ['touch {"file":"b"}']
    assert ran == ["a", "a"]


async def test_no_grant_of_the_family_gets_past_a_deny() -> None:
    ran: list[str] = []
    journal = MemoryJournal()
    model = Cast(go=[TOUCH, text_reply("done")])
    await Family(model, [touch(ran)], permissions=SessionPermissions(asker=Person(SESSION)), journal=journal).play.run(
        "go"
    )
    rules = [PermissionRule(PermissionAction.DENY, "touch"), PermissionRule(PermissionAction.ALLOW, "delegate")]
    model = Cast(go=[delegates("a"), text_reply("done")], a=[TOUCH, text_reply("a")])
    await Family(model, [touch(ran)], permissions=SessionPermissions(rules), journal=journal).play.loop.run("go")
    assert ran == ["a"]


class Ledge(MemoryJournal):
    """Says when it was made durable; takes no entry of sub-agents any more once it is `full`."""

    def __init__(self, *, full: bool = False) -> None:
        super().__init__()
        self.durable, self.full = 0, full

    def append(self, entry: JournalEntry) -> None:
        if self.full and isinstance(entry, Delegated) and isinstance(entry.entry, ToolStarted):
            raise JournalUnwritable("The disk is full.")
        super().append(entry)

    async def commit(self) -> None:
        self.durable = len(self.entries())


async def test_a_call_of_a_sub_agent_is_durable_in_the_parent_s_journal_before_it_runs() -> None:
    journal, seen = Ledge(), list[bool]()

    def look(**_: Any) -> str:
        seen.extend(isinstance(each, Delegated) for each in journal.entries()[: journal.durable][-1:])
        return "seen"

    model = Cast(go=[delegates("a"), text_reply("done")], a=[tool_call_reply(("look", "{}")), text_reply("a")])
    await Family(model, [tool("look", look)], journal=journal).play.run("go")
    assert seen == [True]


async def test_what_cannot_be_written_down_does_not_run() -> None:
    ran: list[str] = []
    model = Cast(go=[delegates("a"), text_reply("done")], a=[TOUCH, text_reply("never")])
    [told] = await Family(model, [touch(ran)], journal=Ledge(full=True)).told()
    assert ran == []
    assert told["status"].startswith("unexpected_error")
    assert "The disk is full." in told["trouble"]


class Keeping:
    """A tool that has something to say of a sub-agent, now and when its call is over."""

    spec = ToolSpec("keep", "Keeps.", ANYTHING, trusted=True)

    def __init__(self) -> None:
        self.contexts: list[ToolContext] = []

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        self.contexts.append(context)
        await asyncio.sleep(0)
        context.record(7, ToolStarted(call_id="x", name="look", arguments="{}"), "")
        return "kept"


@pytest.mark.parametrize("late", ["in the same run", "in the next run"])
async def test_a_call_that_is_over_writes_nothing_any_more(late: str) -> None:
    keep = Keeping()

    def more(**_: Any) -> str:
        keep.contexts[0].record(7, ToolStarted(call_id="y", name="late", arguments="{}"), "")
        return "tried"

    first = tool_call_reply(("keep", "{}"))
    second = tool_call_reply(("more", "{}"))
    model = Cast(
        go=[first, *([second] if late == "in the same run" else []), text_reply("done"), second, text_reply("done")]
    )
    play = stage(model, tools=[keep, tool("more", more)])
    await play.loop.run("go")
    if late == "in the next run":
        await play.loop.run("again")
    assert [each.entry.name for each in play.written(Delegated)] == ["look"]


async def test_sub_agents_work_for_the_task_of_the_run() -> None:
    keep = Keeping()
    model = Cast(go=[delegates("a"), text_reply("done")], a=[tool_call_reply(("keep", "{}")), text_reply("a")])
    await Family(model, [keep], extras={"task_id": "nightly"}).play.run("go")
    assert [context.extras["task_id"] for context in keep.contexts] == ["nightly"]
