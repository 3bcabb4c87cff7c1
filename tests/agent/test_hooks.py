"""hooks."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from hummingbird.core.journal import EndReason, ToolDecided, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import DenyCall, RewriteCall
from hummingbird.core.tool_spec import ToolSpec
from tests.agent.stage import CountingTool, Stage, stage, tool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}


class Hook:
    """Does what it is told: a value is returned, an exception raised."""

    def __init__(self, name: str = "hook", before: Any = None, after: Any = None) -> None:
        self.name = name
        self._before, self._after = before, after
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.shown: list[str] = []

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        self.asked.append((spec.name, dict(arguments)))
        return self._give(self._before)

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> Any:
        self.shown.append(result)
        return self._give(self._after)

    def _give(self, what: Any) -> Any:
        if isinstance(what, BaseException):
            raise what
        return what


class Reader:
    """A tool with a strict schema that says which path it read."""

    def __init__(self) -> None:
        self.spec = ToolSpec("read", "Reads.", SCHEMA, trusted=True)
        self.read: list[object] = []

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: object) -> str:
        self.read.append(arguments.get("path"))
        return f"contents of {arguments.get('path')}"


async def watched(*hooks: Hook, arguments: str = '{"path":"a"}') -> tuple[Stage, Reader, ToolFinished]:
    reader = Reader()
    on = stage(ScriptedModel([tool_call_reply(("read", arguments)), text_reply("done")]), tools=[reader], hooks=hooks)
    outcome = await on.run()
    assert outcome.reason is EndReason.COMPLETED
    [entry] = on.written(ToolFinished)
    return on, reader, entry


def decisions(on: Stage) -> list[tuple[str, str, str]]:
    return [(entry.by, entry.decision, entry.reason) for entry in on.written(ToolDecided)]


async def test_a_hook_that_has_nothing_to_say_changes_nothing() -> None:
    hook = Hook()
    on, reader, entry = await watched(hook)
    assert (reader.read, entry.text, decisions(on)) == (["a"], "contents of a", [])
    assert (hook.asked, hook.shown) == ([("read", {"path": "a"})], ["contents of a"])


async def test_a_hook_may_deny_and_the_decision_is_in_the_journal() -> None:
    on, reader, entry = await watched(Hook("rules", before=DenyCall("not on Sundays")))
    assert reader.read == []
    assert (entry.outcome, entry.text) == (ToolOutcome.DENIED, "Denied: not on Sundays")
    assert decisions(on) == [("rules", "denied", "not on Sundays")]
    assert on.written(ToolStarted) == []


async def test_a_hook_may_rewrite_the_arguments() -> None:
    """What ran instead is in the journal."""
    on, reader, _ = await watched(Hook("rules", before=RewriteCall({"path": "b"})))
    assert reader.read == ["b"]
    assert decisions(on) == [("rules", "rewritten", 'arguments {"path":"b"}')]


async def test_the_next_hook_sees_what_the_one_before_it_made_of_the_call() -> None:
    second = Hook("second", before=DenyCall("no b"))
    _, reader, _ = await watched(Hook("first", before=RewriteCall({"path": "b"})), second)
    assert second.asked == [("read", {"path": "b"})]
    assert reader.read == []


async def test_after_a_denial_no_other_hook_is_asked() -> None:
    second = Hook("second")
    await watched(Hook("first", before=DenyCall("no")), second)
    assert (second.asked, second.shown) == ([], [])


@pytest.mark.parametrize("arguments", [{"path": 1}, {"other": "x"}, {"path": object()}, None, "path", {1: 2}])
async def test_rewritten_arguments_are_validated_again(arguments: Any) -> None:
    """A hook that writes nonsense denies."""
    on, reader, entry = await watched(Hook("rules", before=RewriteCall(arguments)))
    assert reader.read == []
    assert entry.outcome is ToolOutcome.DENIED
    assert [(by, decision) for by, decision, _ in decisions(on)] == [("rules", "denied")]


@pytest.mark.parametrize("error", [RuntimeError("bug"), SystemExit(1), RecursionError(), OSError("caf\udce9")])
async def test_a_hook_that_crashes_denies(error: BaseException) -> None:
    on, reader, entry = await watched(Hook("rules", before=error))
    assert reader.read == []
    assert entry.outcome is ToolOutcome.DENIED
    assert "the hook rules failed" in entry.text
    assert type(error).__name__ in entry.text
    assert [(by, decision) for by, decision, _ in decisions(on)] == [("rules", "denied")]


@pytest.mark.parametrize("verdict", [True, False, "deny", {"path": "b"}, DenyCall])
async def test_a_verdict_that_is_none_denies(verdict: object) -> None:
    """A guard that cannot be understood does not let pass."""
    _, reader, entry = await watched(Hook("rules", before=verdict))
    assert (reader.read, entry.outcome) == ([], ToolOutcome.DENIED)


async def test_a_hook_may_rewrite_the_result() -> None:
    second = Hook("second")
    on, _, entry = await watched(Hook("mask", after="[masked]"), second)
    assert (entry.outcome, entry.text) == (ToolOutcome.OK, "[masked]")
    assert second.shown == ["[masked]"]
    assert decisions(on) == [("mask", "rewritten", "its result")]


async def test_a_hook_may_empty_the_result() -> None:
    """An empty result is a result."""
    _, _, entry = await watched(Hook("mask", after=""))
    assert entry.text == ""


async def test_a_result_cannot_be_flooded_by_a_hook() -> None:
    _, _, entry = await watched(Hook("flood", after="x" * 10_000_000))
    assert len(entry.text) < 70_000


@pytest.mark.parametrize("after", [RuntimeError("secret in the message"), 42, b"bytes", SystemExit(1)])
async def test_a_hook_that_crashes_on_the_result_denies_it(after: object) -> None:
    """The model does not see what nobody could look over."""
    on, reader, entry = await watched(Hook("mask", after=after))
    assert reader.read == ["a"]
    assert entry.outcome is ToolOutcome.DENIED
    assert "contents" not in entry.text
    assert "secret" not in entry.text
    assert [(by, decision) for by, decision, _ in decisions(on)] == [("mask", "denied")]


async def test_error_results_are_looked_over_as_well() -> None:
    """An exception may quote what a hook is there to hide."""

    async def leak() -> str:
        raise ValueError("token=hunter2")

    model = ScriptedModel([tool_call_reply(("leak", "{}")), text_reply("done")])
    on = stage(model, tools=[tool("leak", leak)], hooks=[Hook("mask", after="[masked]")])
    await on.run()
    [entry] = on.written(ToolFinished)
    assert (entry.outcome, entry.text) == (ToolOutcome.ERROR, "[masked]")


async def test_hooks_are_not_asked_about_calls_that_cannot_run() -> None:
    hook = Hook()
    on, _, entry = await watched(hook, arguments='{"path": 1}')
    assert (hook.asked, entry.outcome, decisions(on)) == ([], ToolOutcome.MISTAKE, [])


async def test_a_denied_call_leaves_the_others_of_its_batch_alone() -> None:
    class NoReading(Hook):
        async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
            return DenyCall("no reading") if spec.name == "read" else None

    counting = CountingTool()
    model = ScriptedModel([tool_call_reply(("read", "{}"), ("count", "{}")), text_reply("done")])
    on = stage(model, tools=[Reader(), counting], hooks=[NoReading()])
    await on.run()
    assert len(counting.runs) == 1
    assert [entry.outcome for entry in on.written(ToolFinished)] == [ToolOutcome.DENIED, ToolOutcome.OK]


async def test_identical_calls_are_looked_over_one_by_one_and_run_once() -> None:
    hook, counting = Hook(), CountingTool()
    model = ScriptedModel([tool_call_reply(("count", "{}"), ("count", "{}")), text_reply("done")])
    await stage(model, tools=[counting], hooks=[hook]).run()
    assert (len(hook.asked), len(counting.runs)) == (2, 1)


async def test_a_hook_that_never_answers_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not hold the run for ever."""
    monkeypatch.setattr("hummingbird.agent.tools.call_batch.HOOK_TIMEOUT_S", 0.01)

    class Silent(Hook):
        async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
            await asyncio.Event().wait()

    class Mute(Hook):
        async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> Any:
            await asyncio.Event().wait()

    for hook, ran in ((Silent("silent"), 0), (Mute("mute"), 1)):
        _, reader, entry = await watched(hook)
        assert (len(reader.read), entry.outcome) == (ran, ToolOutcome.DENIED)
        assert "within 0.01 s" in entry.text


async def test_a_hook_cannot_change_arguments_behind_our_back() -> None:
    """What it wants changed it says, and that is validated and on record."""

    class Meddler(Hook):
        async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
            arguments["path"] = 42  # type: ignore[index]  # what the type forbids, somebody's hook may do
            return None

    on, reader, _ = await watched(Meddler("meddler"))
    assert reader.read == ["a"]
    assert decisions(on) == []


async def test_a_credential_in_a_decision_is_not_on_record() -> None:
    """Neither in what a hook denies nor in what it rewrites."""
    secret = "a-very-secret-token"
    for hook in (Hook("no", before=DenyCall(f"has {secret}")), Hook("new", before=RewriteCall({"path": secret}))):
        model = ScriptedModel([tool_call_reply(("read", '{"path":"a"}')), text_reply("done")])
        on = stage(model, tools=[Reader()], hooks=[hook], secrets=Secrets([secret]))
        await on.run()
        assert secret not in str(on.written(ToolDecided))
        assert secret not in str(on.written(ToolFinished))
        assert "[masked]" in str(on.written(ToolDecided))
