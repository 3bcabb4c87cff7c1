"""The gate before every call."""

import asyncio
from typing import Any

import pytest

from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.core.journal import (
    EndReason,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    dump_entry,
    load_entry,
)
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import NOT_RUN, UNKNOWN_OUTCOME, ToolMessage
from hummingbird.core.permissions import GrantScope, PermissionAction, PermissionAnswer, PermissionRule
from hummingbird.core.protocols.tools import DenyCall, RewriteCall
from hummingbird.core.tool_spec import ToolEffect
from hummingbird.storage.journals import MemoryJournal
from tests.agent.asking import ALWAYS, NO, ONCE, SESSION, Drawer, Person, decided, taking, texts
from tests.agent.stage import CountingTool, Stage, stage
from tests.agent.test_hooks import Hook
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

ALLOW, ASK, DENY = PermissionAction.ALLOW, PermissionAction.ASK, PermissionAction.DENY
GRACE = "hummingbird.agent.interrupts.INTERRUPT_GRACE_S"


def terminal(name: str = "terminal", **spec: Any) -> CountingTool:
    return CountingTool(name, effects=frozenset({ToolEffect.EXEC}), **spec)


def gated(*batches: tuple[str, ...], tools: Any, given: SessionPermissions, **setup: Any) -> Stage:
    """A run whose model calls `terminal` with these commands, batch by batch; `look` is for names of other tools."""
    lines = [tool_call_reply(*(_call(command) for command in batch)) for batch in batches]
    return stage(
        ScriptedModel([*lines, text_reply("done"), text_reply("again done")]), tools=tools, permissions=given, **setup
    )


def _call(command: str) -> tuple[str, str]:
    name, _, rest = command.partition(" ")
    return (name, f'{{"command":"{rest}"}}') if rest else (name, "{}")


def outcomes(on: Stage) -> list[ToolOutcome]:
    return [entry.outcome for entry in on.written(ToolFinished)]


async def test_without_permissions_nothing_is_judged_and_nothing_written() -> None:
    """As before there were any."""
    run = terminal()
    on = stage(ScriptedModel([tool_call_reply(("terminal", "{}")), text_reply("done")]), tools=[run])
    await on.run()
    assert (len(run.runs), on.written(ToolDecided)) == (1, [])


async def test_reading_is_allowed_by_default_and_that_is_on_record() -> None:
    """Every decision is a journal entry, written before the call starts."""
    look = CountingTool("look")
    on = gated(("look",), tools=[look], given=SessionPermissions())
    await on.run()
    assert len(look.runs) == 1
    assert decided(on) == [("look", "allowed", "the default", "")]
    kinds = [type(entry) for entry in on.journal.entries()]
    assert kinds.index(ToolDecided) < kinds.index(ToolStarted)
    [entry] = on.written(ToolDecided)
    assert entry.call_id == on.written(ToolStarted)[0].call_id
    assert len(entry.key) == 64


async def test_ask_without_somebody_to_ask_is_deny_and_the_model_hears_what_to_do() -> None:
    run = terminal()
    on = gated(("terminal make",), tools=[run], given=SessionPermissions())
    outcome = await on.run()
    [entry] = on.written(ToolFinished)
    assert (run.runs, entry.outcome, outcome.reason) == ([], ToolOutcome.DENIED, EndReason.COMPLETED)
    assert "nobody to ask" in entry.text
    assert "Do not send this call again" in entry.text
    assert decided(on) == [("terminal", "denied", "the default", "")]
    assert on.written(ToolStarted) == []


async def test_a_deny_rule_holds_against_every_grant_and_nobody_is_asked() -> None:
    """A grant from before the rule, saved or of the session, does not help."""
    drawer, run, journal = Drawer(), terminal(), MemoryJournal()
    person = Person(SESSION, ALWAYS)
    first = gated(
        ("terminal a",),
        ("terminal b",),
        tools=[run],
        given=SessionPermissions(asker=person, saved=drawer),
        journal=journal,
    )
    await first.run()
    assert len(run.runs) == 2
    rules = (PermissionRule(ALLOW), PermissionRule(DENY, "Terminal", reason="Use the sandbox.", name="host"))
    then = gated(
        ("terminal a",),
        ("terminal b",),
        tools=[run],
        given=SessionPermissions(rules, asker=person, saved=drawer),
        journal=journal,
    )
    await then.run()
    assert len(run.runs) == len(person.questions) == 2
    assert outcomes(then)[2:] == [ToolOutcome.DENIED] * 2
    assert "Denied by the rule 'host': Use the sandbox. Do not" in then.written(ToolFinished)[-1].text


async def test_once_is_for_that_call_only() -> None:
    person, run = Person(ONCE, NO), terminal()
    on = gated(("terminal a",), ("terminal a",), tools=[run], given=SessionPermissions(asker=person))
    await on.run()
    assert outcomes(on) == [ToolOutcome.OK, ToolOutcome.DENIED]
    assert decided(on) == [("terminal", "allowed", "Ada", "once"), ("terminal", "denied", "Ada", "")]


async def test_a_grant_for_the_session_is_for_exactly_that_call() -> None:
    """Not for one like it."""
    person, run = Person(SESSION, NO, NO), terminal()
    on = gated(
        ("terminal a b",),
        ("terminal a b",),
        ("terminal a  b", "terminal a b "),
        tools=[run],
        given=SessionPermissions(asker=person),
    )
    await on.run()
    assert len(run.runs) == 2
    assert decided(on)[1] == ("terminal", "allowed", "a grant (session)", "")
    assert texts(person.questions) == [f'terminal {{"command":"{c}"}}' for c in ("a b", "a  b", "a b ")]


async def test_a_grant_for_the_session_survives_its_process() -> None:
    """It is in the journal, and another session does not have it."""
    run, given = terminal(), SessionPermissions(asker=Person(SESSION))
    on = gated(("terminal a",), tools=[run], given=given)
    await on.run()
    read = [load_entry(dump_entry(entry), 1) for entry in on.journal.entries()]
    again = gated(("terminal a",), tools=[run], given=SessionPermissions(), journal=MemoryJournal(read))
    await again.run()
    elsewhere = gated(("terminal a",), tools=[run], given=SessionPermissions())
    await elsewhere.run()
    assert (len(run.runs), outcomes(again), outcomes(elsewhere)) == (2, [ToolOutcome.OK] * 2, [ToolOutcome.DENIED])


async def test_always_is_saved_for_the_project() -> None:
    """For another session of it, not for another project."""
    run, drawer, person = terminal(), Drawer(), Person(ALWAYS, NO)
    for project, ran in (("one", 1), ("one", 2), ("two", 2)):
        on = gated(("terminal a",), tools=[run], given=SessionPermissions(asker=person, saved=drawer), project=project)
        await on.run()
        assert len(run.runs) == ran
    [grant] = drawer.saved["one"]
    assert (grant.command, grant.by) == ('terminal {"command":"a"}', "Ada")
    assert [list(question.scopes) for question in person.questions] == [list(GrantScope)] * 2


@pytest.mark.parametrize("drawer", [None, Drawer("write")], ids=["no place", "full"])
async def test_always_without_a_place_for_it_holds_for_the_session_and_says_so(drawer: Drawer | None) -> None:
    person, run = Person(ALWAYS), terminal()
    on = gated(("terminal a",), ("terminal a",), tools=[run], given=SessionPermissions(asker=person, saved=drawer))
    await on.run()
    assert (len(run.runs), len(person.questions)) == (2, 1)
    assert "for this session" in on.written(ToolDecided)[0].reason
    assert decided(on)[0][3] == "session"
    assert (GrantScope.ALWAYS in person.questions[0].scopes) == (drawer is not None)


async def test_saved_grants_that_cannot_be_read_have_not_been_given() -> None:
    """Whoever is asked is told why."""
    person = Person(NO)
    on = gated(("terminal a",), tools=[terminal()], given=SessionPermissions(asker=person, saved=Drawer("read")))
    await on.run()
    assert outcomes(on) == [ToolOutcome.DENIED]
    assert "The drawer is stuck." in person.questions[0].reason


@pytest.mark.parametrize(
    "answer",
    [
        NO,
        RuntimeError("no screen"),
        SystemExit(1),
        asyncio.CancelledError(),
        TimeoutError(),
        None,
        True,
        "yes",
        GrantScope.ALWAYS,
        PermissionAnswer("for ever"),  # type: ignore[arg-type]  # what the type forbids, somebody's asker may say
    ],
    ids=repr,
)
async def test_whatever_is_no_yes_is_a_no(answer: object) -> None:
    run = terminal()
    on = gated(("terminal a",), tools=[run], given=SessionPermissions(asker=Person(answer)))
    outcome = await on.run()
    assert (run.runs, outcomes(on), outcome.reason) == ([], [ToolOutcome.DENIED], EndReason.COMPLETED)
    assert decided(on) == [("terminal", "denied", "Ada", "")]


async def test_nobody_answers_for_a_day_and_that_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.agent.tools.permission_gate.PERSON_TIMEOUT_S", 0.01)
    on = gated(("terminal a",), tools=[terminal()], given=SessionPermissions(asker=Person(taking(3600))))
    await on.run()
    assert "no answer within 0.01 s" in on.written(ToolFinished)[0].text


async def test_what_a_person_says_with_their_no_reaches_the_model() -> None:
    """Half a character too."""
    on = gated(
        ("terminal a",),
        tools=[terminal()],
        given=SessionPermissions(asker=Person(PermissionAnswer(None, "use make \udce9"))),
    )
    await on.run()
    assert on.written(ToolFinished)[0].text.startswith("Denied by Ada: use make ?. Do not send")


async def test_the_gate_judges_what_the_hooks_made_of_the_call() -> None:
    """Exactly what will run, for better and worse."""
    rules = (PermissionRule(DENY, "*", "command", "bad*"), PermissionRule(ALLOW))
    for asked, made, ran in (("good", "bad", []), ("bad", "good", [{"command": "good"}])):
        run, hook = terminal(), Hook("new", before=RewriteCall({"command": made}))
        on = gated((f"terminal {asked}",), tools=[run], given=SessionPermissions(rules), hooks=[hook])
        await on.run()
        assert run.runs == ran
        assert on.written(ToolDecided)[0].by == "new"


async def test_a_hook_cannot_change_what_it_gave_once_it_was_judged() -> None:
    nested: dict[str, Any] = {"command": ["good"]}
    run = terminal()

    async def tamper() -> PermissionAnswer:
        nested["command"][0] = "bad"
        return ONCE

    on = gated(
        ("terminal x",),
        tools=[run],
        given=SessionPermissions(asker=Person(tamper)),
        hooks=[Hook(before=RewriteCall(nested))],
    )
    await on.run()
    assert run.runs == [{"command": ["good"]}]


async def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    """Neither what a hook denied nor a mistake."""
    person = Person()
    on = gated(
        ("terminal a",), tools=[terminal()], given=SessionPermissions(asker=person), hooks=[Hook(before=DenyCall("no"))]
    )
    await on.run()
    await gated(("nothing",), tools=[terminal()], given=SessionPermissions(asker=person)).run()
    assert person.questions == []


async def test_identical_calls_are_asked_about_once_and_each_is_on_record() -> None:
    """Yes and no."""
    for answer, ran in ((ONCE, 1), (NO, 0)):
        person, run = Person(answer), terminal()
        on = gated(("terminal a", "Terminal a", "terminal a"), tools=[run], given=SessionPermissions(asker=person))
        await on.run()
        assert (len(run.runs), len(person.questions)) == (ran, 1)
        entries = on.written(ToolDecided)
        assert len({entry.call_id for entry in entries}) == len(entries) == len(outcomes(on)) == 3
        assert {entry.name for entry in entries} == {"terminal"}


async def test_questions_come_one_at_a_time_in_the_order_of_the_calls_and_a_no_stops_one_call_alone() -> None:
    """A denied call that wanted to be alone does not make the others wait for each other."""
    person, run, look = Person(ONCE, NO, ONCE), terminal(), CountingTool("look")
    on = gated(
        ("terminal a", "look", "terminal b", "terminal c"), tools=[run, look], given=SessionPermissions(asker=person)
    )
    await on.run()
    assert [text[-3] for text in texts(person.questions)] == ["a", "b", "c"]
    assert run.runs == [{"command": "a"}, {"command": "c"}]
    assert len(look.runs) == 1


async def test_the_time_a_person_takes_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a hook's nor the tool's."""
    monkeypatch.setattr("hummingbird.agent.tools.call_batch.HOOK_TIMEOUT_S", 0.05)
    run = terminal(timeout_s=0.05)
    on = gated(("terminal a",), tools=[run], given=SessionPermissions(asker=Person(taking(0.2))), hooks=[Hook()])
    await on.run()
    assert (len(run.runs), outcomes(on)) == (1, [ToolOutcome.OK])


async def test_a_tool_has_its_timeout_behind_the_gate_too() -> None:
    """And what it still brings when it is stopped counts."""

    class Slow(CountingTool):
        async def __call__(self, arguments: Any, context: object) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if arguments:
                    raise
            return "half of it"

    on = gated(("slow", "slow a"), tools=[Slow("slow", timeout_s=0.02)], given=SessionPermissions())
    await on.run()
    found = {entry.outcome: entry.text for entry in on.written(ToolFinished)}
    assert found[ToolOutcome.OK] == "half of it"
    assert "stopped after 0.02 s" in found[ToolOutcome.ERROR]


@pytest.mark.parametrize("manner", ["ends", "answers", "deaf"])
async def test_an_interrupt_takes_the_question_back(manner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A yes that comes with it starts nothing and grants nothing, and the next run can ask again."""
    monkeypatch.setattr(GRACE, 0.01)
    began, free = asyncio.Event(), asyncio.Event()

    async def think() -> PermissionAnswer:
        began.set()
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                if manner == "ends":
                    raise
                if manner == "answers":
                    break
        return ALWAYS

    person, run, drawer = Person(think, ONCE), terminal(), Drawer()
    lines = [
        tool_call_reply(("terminal", "{}"), ("look", "{}")),
        tool_call_reply(("terminal", "{}")),
        text_reply("again done"),
    ]
    tools = [run, CountingTool("look")]
    on = stage(ScriptedModel(lines), tools=tools, permissions=SessionPermissions(asker=person, saved=drawer))
    running = asyncio.create_task(on.run())
    await began.wait()
    on.loop.interrupt()
    outcome = await running
    assert outcome.reason is EndReason.INTERRUPTED
    assert [m.text for m in outcome.messages if isinstance(m, ToolMessage)] == [NOT_RUN, NOT_RUN]
    assert (run.runs, drawer.saved, on.written(ToolDecided)) == ([], {}, [])
    person._open = False
    assert (await on.run("again")).text == "again done"
    assert (len(run.runs), len(person.questions)) == (1, 2)
    free.set()
    await asyncio.sleep(0)


async def test_a_question_that_was_open_when_the_process_died_is_asked_again() -> None:
    """A call that did not start is not of unknown outcome."""
    on = gated(("terminal a",), tools=[terminal()], given=SessionPermissions(asker=Person(NO)))
    await on.run()
    entries = list(on.journal.entries())
    cut = next(n for n, entry in enumerate(entries) if isinstance(entry, ToolDecided))
    person, run = Person(ONCE), terminal()
    model = ScriptedModel([text_reply("done")])
    again = stage(
        model, tools=[run], permissions=SessionPermissions(asker=person), journal=MemoryJournal(entries[:cut])
    )
    outcome = await again.go_on()
    assert (len(run.runs), len(person.questions)) == (1, 1)
    assert UNKNOWN_OUTCOME not in [m.text for m in outcome.messages if isinstance(m, ToolMessage)]


async def test_no_credential_is_shown_saved_or_written() -> None:
    secret = "a-very-secret-token"
    person, drawer = Person(ALWAYS, PermissionAnswer(None, f"not {secret}")), Drawer()
    rules = (PermissionRule(ASK, reason=f"knows {secret}"),)
    given = SessionPermissions(rules, asker=person, saved=drawer)
    on = gated((f"terminal {secret}",), ("terminal b",), tools=[terminal()], given=given, secrets=Secrets([secret]))
    await on.run()
    assert secret not in str((person.questions, drawer.saved, on.written(ToolDecided), on.written(ToolFinished)))
    assert "[masked]" in drawer.saved[""][0].command
