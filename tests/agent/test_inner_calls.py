"""A tool that calls another one on the model's behalf: the way of every call, with the output as it came."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.core.errors import ArgumentsInvalid, CallDenied, CallTimedOut, ModelMistake, UnknownTool
from hummingbird.core.journal import EndReason, ToolDecided, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.permissions import PermissionAction, PermissionAnswer, PermissionRule
from hummingbird.core.protocols.tools import ByteStream, DenyCall, RewriteCall, ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from hummingbird.core.usage import Charge, TokenUsage
from hummingbird.storage.journals import MemoryJournal
from tests.agent.asking import NO, ONCE, SESSION, Person, decided, taking, texts
from tests.agent.stage import Stage, stage
from tests.agent.test_hooks import Hook
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

Deed = Callable[[ToolContext], Awaitable[ToolOutput]]
TEXT = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
ASKS = (PermissionRule(PermissionAction.ALLOW, "fetch"), PermissionRule(PermissionAction.ASK))


class Fetch:
    """Does what it is told with its context, and keeps what came of it."""

    def __init__(self, does: Deed, name: str = "fetch", **spec: Any) -> None:
        self.spec = ToolSpec(name, "Fetches.", {"type": "object"}, **{"trusted": True, **spec})
        self.outputs: list[ToolOutput] = []
        self.errors: list[BaseException] = []
        self._does = does

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        try:
            self.outputs.append(await self._does(context))
        except Exception as error:
            self.errors.append(error)
            raise
        return "fetched"


class Source:
    """A tool with a strict schema; `gives` is its output, or what makes it."""

    def __init__(self, gives: Any = "contents", name: str = "source", **spec: Any) -> None:
        self.spec = ToolSpec(name, "Gives.", TEXT, **spec)
        self.runs: list[dict[str, Any]] = []
        self.contexts: list[ToolContext] = []
        self._gives = gives

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.runs.append(dict(arguments))
        self.contexts.append(context)
        given: ToolOutput = await self._gives(context) if callable(self._gives) else self._gives
        return given


def reads(name: str = "source", **arguments: Any) -> Deed:
    async def read(context: ToolContext) -> ToolOutput:
        return await context.call(name, arguments or {"path": "a"})

    return read


async def run(fetch: Fetch, *others: Any, **setup: Any) -> Stage:
    model = ScriptedModel([tool_call_reply(("fetch", "{}", "outer")), text_reply("done")])
    on = stage(model, tools=[fetch, *others], **setup)
    assert (await on.run()).reason is EndReason.COMPLETED
    return on


async def chunks() -> AsyncIterator[bytes]:
    yield b"\x00"


@pytest.mark.parametrize("given", [None, SessionPermissions()], ids=["no gate", "a gate"])
@pytest.mark.parametrize("output", ["x" * 100_000, {"a": [1]}, None, ByteStream(chunks(), "bin", binary=True)])
async def test_the_output_is_the_other_tools_as_it_came(output: Any, given: SessionPermissions | None) -> None:
    """Neither shaped nor cut; the model sees only what the first tool says."""
    fetch, source = Fetch(reads()), Source(output)
    on = await run(fetch, source, permissions=given)
    assert fetch.outputs[0] is output
    assert source.runs == [{"path": "a"}]
    assert [(entry.name, entry.text) for entry in on.written(ToolFinished)] == [("fetch", "fetched")]
    assert [entry.name for entry in on.written(ToolStarted)] == ["fetch"]


@pytest.mark.parametrize(
    ("does", "kind"),
    [
        (reads("nothing"), UnknownTool),
        (reads("source", path=1), ArgumentsInvalid),
        (reads("source", path="a", more="b"), ArgumentsInvalid),
        (reads("source", path=object()), ArgumentsInvalid),
        (reads("source", path="\ud800"), ArgumentsInvalid),
    ],
)
async def test_what_the_toolbox_would_not_run_is_a_mistake_the_first_tool_can_report(
    does: Deed, kind: type[ModelMistake]
) -> None:
    fetch, source = Fetch(does), Source()
    on = await run(fetch, source)
    assert [type(error) for error in fetch.errors] == [kind]
    assert source.runs == []
    [entry] = on.written(ToolFinished)
    assert (entry.outcome, entry.text) == (ToolOutcome.ERROR, f"fetch failed: {fetch.errors[0]}")


async def test_hooks_look_over_the_other_call_too() -> None:
    """On record under the call that wanted it, with the other tool's name."""

    class OnlySource(Hook):
        async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
            return await super().before_tool(spec, arguments) if spec.name == "source" else None

    fetch, source = Fetch(reads()), Source()
    on = await run(fetch, source, hooks=[OnlySource("new", before=RewriteCall({"path": "b"}))])
    assert source.runs == [{"path": "b"}]
    [entry] = on.written(ToolDecided)
    assert (entry.call_id, entry.name, entry.by, entry.decision) == ("outer", "source", "new", "rewritten")

    fetch, source = Fetch(reads()), Source()
    on = await run(fetch, source, hooks=[OnlySource("no", before=DenyCall("not today"))])
    assert source.runs == []
    assert [(type(error), str(error)) for error in fetch.errors] == [(CallDenied, "Denied: not today")]
    [entry] = on.written(ToolDecided)
    assert (entry.call_id, entry.name, entry.decision) == ("outer", "source", "denied")


async def test_no_tool_is_a_way_round_the_gate() -> None:
    """What may not be called may not be called by another either, however its name is spelled."""
    rules = (
        PermissionRule(PermissionAction.DENY, "source", "path", "/etc/*", name="etc"),
        PermissionRule(PermissionAction.ALLOW),
    )
    fetch, source = Fetch(reads("So-urce", path="/etc/passwd")), Source()
    on = await run(fetch, source, permissions=SessionPermissions(rules))
    assert source.runs == []
    assert isinstance(fetch.errors[0], CallDenied)
    assert "Do not send this call again" in str(fetch.errors[0])
    assert [(entry.call_id, entry.name, entry.decision, entry.by) for entry in on.written(ToolDecided)] == [
        ("outer", "fetch", "allowed", "the rule 'allow *'"),
        ("outer", "source", "denied", "the rule 'etc'"),
    ]


async def test_a_decision_is_on_the_disk_before_the_other_tool_runs() -> None:
    class Disk(MemoryJournal):
        safe = 0

        async def flush(self) -> None:
            return

        async def commit(self) -> None:
            self.safe = len(self.entries())

    async def look(_: ToolContext) -> ToolOutput:
        assert isinstance(disk.entries()[disk.safe - 1], ToolDecided)
        return "seen"

    disk, fetch = Disk(), Fetch(reads())
    await run(fetch, Source(look), permissions=SessionPermissions(), journal=disk)
    assert fetch.outputs == ["seen"]


async def test_the_time_a_person_takes_is_not_the_first_tools() -> None:
    """Two questions, each longer than the tool may take."""

    async def twice(context: ToolContext) -> ToolOutput:
        return [await context.call("source", {"path": path}) for path in ("a", "b")]

    fetch, source = Fetch(twice, timeout_s=0.1), Source(timeout_s=0.1)
    person = Person(taking(0.15), taking(0.15))
    on = await run(fetch, source, permissions=SessionPermissions(ASKS, asker=person))
    assert fetch.outputs == [["contents", "contents"]]
    assert [entry.outcome for entry in on.written(ToolFinished)] == [ToolOutcome.OK]


async def test_after_a_question_the_first_tools_time_goes_on() -> None:
    """It stood still; it did not start again, which would keep it running as long as it asks."""

    async def forever(context: ToolContext) -> ToolOutput:
        while True:
            await asyncio.sleep(0.01)
            await context.call("source", {"path": "a"})

    person = Person(*[ONCE] * 200)
    on = await run(Fetch(forever, timeout_s=0.1), Source(), permissions=SessionPermissions(ASKS, asker=person))
    [entry] = on.written(ToolFinished)
    assert "fetch was stopped after 0.1 s" in entry.text


async def test_questions_of_calls_side_by_side_come_one_at_a_time_and_one_answer_may_serve_the_next() -> None:
    async def three(context: ToolContext) -> ToolOutput:
        return list(await asyncio.gather(*(context.call("source", {"path": path}) for path in ("a", "a", "b"))))

    fetch, source, person = Fetch(three), Source(), Person(SESSION, ONCE)
    on = await run(fetch, source, permissions=SessionPermissions(ASKS, asker=person))
    assert texts(person.questions) == ['source {"path":"a"}', 'source {"path":"b"}']
    assert len(source.runs) == 3
    assert sorted(by for _, _, by, _ in decided(on)) == ["Ada", "Ada", "a grant (session)", "the rule 'allow fetch'"]


async def test_what_a_rule_denies_does_not_wait_for_a_question_about_something_else() -> None:
    refused = asyncio.Event()

    async def think() -> PermissionAnswer:
        await refused.wait()
        return ONCE

    async def denied(context: ToolContext) -> None:
        with pytest.raises(CallDenied):
            await context.call("source", {"path": "/etc/passwd"})
        refused.set()

    async def both(context: ToolContext) -> ToolOutput:
        asked, _ = await asyncio.gather(context.call("source", {"path": "a"}), denied(context))
        return asked

    fetch = Fetch(both)
    rules = (*ASKS, PermissionRule(PermissionAction.DENY, pattern="*/etc/*"))
    await run(fetch, Source(), permissions=SessionPermissions(rules, asker=Person(think)))
    assert fetch.outputs == ["contents"]


async def test_a_no_is_for_the_first_tool_to_report() -> None:
    """Partial success is its own to tell."""

    async def both(context: ToolContext) -> ToolOutput:
        found: list[Any] = []
        for path in ("a", "b"):
            try:
                found.append(await context.call("source", {"path": path}))
            except ModelMistake as mistake:
                found.append(type(mistake).__name__)
        return found

    fetch = Fetch(both)
    await run(fetch, Source(), permissions=SessionPermissions(ASKS, asker=Person(NO, ONCE)))
    assert fetch.outputs == [["CallDenied", "contents"]]


async def test_the_other_tool_has_its_own_timeout() -> None:
    stopped = asyncio.Event()

    async def forever(_: ToolContext) -> ToolOutput:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    fetch = Fetch(reads())
    on = await run(fetch, Source(forever, timeout_s=0.02))
    assert stopped.is_set()
    assert isinstance(fetch.errors[0], CallTimedOut)
    assert "source was stopped after 0.02 s" in on.written(ToolFinished)[0].text


@pytest.mark.parametrize("error", [ValueError("bad"), TimeoutError("its own")])
async def test_what_the_other_tool_raises_comes_out_as_it_is(error: Exception) -> None:
    async def fails(_: ToolContext) -> ToolOutput:
        raise error

    fetch = Fetch(reads())
    await run(fetch, Source(fails))
    assert fetch.errors == [error]


async def test_what_an_outsider_may_have_written_is_fenced_in_a_failure_too() -> None:
    """Unless the tool's words are ours."""

    async def fails(_: ToolContext) -> ToolOutput:
        raise ValueError("404: do as I say")

    for trusted in (True, False):
        on = await run(Fetch(fails, trusted=trusted))
        [entry] = on.written(ToolFinished)
        assert entry.text.startswith("fetch failed: ValueError")
        assert ("<untrusted" in entry.text) is not trusted


async def test_a_tool_that_was_called_by_another_calls_no_third_nor_itself() -> None:
    """So nothing calls itself for ever."""
    source = Source(reads("source"))
    fetch = Fetch(reads())
    await run(fetch, source)
    assert len(source.runs) == 1
    assert "may not call a third" in str(fetch.errors[0])
    again = Fetch(reads("fetch"))
    await run(again)
    assert [type(error) for error in again.errors] == [CallDenied, CallDenied]


@pytest.mark.parametrize("alone", [False, True])
async def test_a_tool_that_wants_to_be_alone_is_called_only_by_one_that_is(alone: bool) -> None:
    """Others may be running beside the first one."""
    fetch, source = Fetch(reads(), exclusive=alone), Source(effects=frozenset({ToolEffect.WRITE}))
    await run(fetch, source)
    assert len(source.runs) == int(alone)
    assert [type(error) for error in fetch.errors] == ([] if alone else [CallDenied])


async def test_what_the_other_tool_pays_is_on_the_first_ones_bill() -> None:
    charge = Charge("m", "sub", "answered", TokenUsage(fresh=1), Decimal("0.5"))

    async def pays(context: ToolContext) -> ToolOutput:
        context.charge(charge)
        return "paid"

    on = await run(Fetch(reads()), Source(pays))
    assert on.written(ToolFinished)[0].charges == (charge,)


async def test_an_interrupt_stops_the_other_tool() -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def forever(_: ToolContext) -> ToolOutput:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    model = ScriptedModel([tool_call_reply(("fetch", "{}"))])
    on = stage(model, tools=[Fetch(reads()), Source(forever)], permissions=SessionPermissions())
    running = asyncio.create_task(on.run())
    await began.wait()
    on.loop.interrupt()
    assert (await running).reason is EndReason.INTERRUPTED
    assert stopped.is_set()


async def test_an_interrupt_takes_back_a_question_asked_for_another_tool() -> None:
    began = asyncio.Event()

    async def think() -> Any:
        began.set()
        await asyncio.Event().wait()

    source = Source()
    on = stage(
        ScriptedModel([tool_call_reply(("fetch", "{}"))]),
        tools=[Fetch(reads()), source],
        permissions=SessionPermissions(ASKS, asker=Person(think)),
    )
    running = asyncio.create_task(on.run())
    await began.wait()
    on.loop.interrupt()
    assert (await running).reason is EndReason.INTERRUPTED
    assert source.runs == []


async def test_a_call_that_has_ended_calls_nothing_any_more() -> None:
    """What runs has been announced, and is not settled yet."""
    kept: list[ToolContext] = []

    async def keep(context: ToolContext) -> ToolOutput:
        kept.append(context)
        return "kept"

    source = Source()
    await run(Fetch(keep), source)
    with pytest.raises(CallDenied, match="has ended"):
        await kept[0].call("source", {"path": "a"})
    assert source.runs == []


async def test_outside_a_run_there_is_nothing_to_call() -> None:
    with pytest.raises(CallDenied, match="there is no run here"):
        await ToolContext("session", "call").call("source", {})
