"""Sub-agents: beside each other, for themselves, on the parent's bill, and told by what really happened."""

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hummingbird.agent.budget import CHAT_LIMITS
from hummingbird.agent.interrupts import PROMPT_GRACE_S
from hummingbird.agent.tools.chat_tools import TodoTool
from hummingbird.agent.tools.delegate import FINDINGS_CHARS
from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.agent.tools.recall import RecallTool
from hummingbird.app.chat_permissions import PLAN_RULE, DangerousCommandHook
from hummingbird.app.sub_agents import existing_files
from hummingbird.core.errors import SandboxUnavailable, UsageError
from hummingbird.core.events import ToolProgress
from hummingbird.core.journal import EndReason, ToolFinished, ToolOutcome
from hummingbird.core.permissions import PermissionAction, PermissionRule
from hummingbird.core.projections import UsageLedger
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.tool_spec import ToolEffect
from hummingbird.core.usage import OUTCOME_UNKNOWN
from hummingbird.sandboxes.host.workspace import Workspace
from tests.agent.stage import tool
from tests.app.chats import Yes, calling, home
from tests.app.family import CENT, Cast, Family, delegates, until, waits
from tests.standins.scripted_model import text_reply, tool_call_reply
from tests.standins.vendors.script import Turn


async def test_three_work_at_once_each_with_a_context_of_its_own_and_answers_stand_in_order() -> None:
    tasks = {f"task {n}": [waits(0.03, then=text_reply(f"found {n}"))] for n in range(5)}
    model = Cast(go=[delegates(*tasks), text_reply("done")], **tasks)
    family = Family(model)
    told = await family.told()
    assert [one["findings"] for one in told] == [f"found {n}" for n in range(5)]
    assert {one["status"] for one in told} == {"completed"}
    assert model.most_at_once == 3
    [first] = model.of("task 0")
    assert [m.text for m in first.messages] == ["task 0"]
    assert "another agent" in first.system
    assert first.system != model.of("go")[0].system
    model.assert_consumed()


async def test_the_parent_reads_status_findings_and_files_and_no_story() -> None:
    look = tool("look", "nothing to see " * 50)
    story = [
        tool_call_reply(("look", '{"n": 1}'), text="First I will look around."),
        text_reply("It is /tmp/data/a.txt, not /tmp/b."),
    ]
    family = Family(Cast(go=[delegates("t"), text_reply("done")], t=story), [look])
    family.there = ["/tmp/data/a.txt"]
    [told] = await family.told()
    assert told == {
        "task": 1001,
        "status": "completed",
        "findings": "It is /tmp/data/a.txt, not /tmp/b.",
        "files": ["/tmp/data/a.txt"],
        "tool_calls": 1,
        "failed_calls": 0,
    }
    assert "look around" not in "".join(m.text for m in family.play.loop.state.conversation.view())


@pytest.mark.parametrize("name", ["delegate", "memory", "clarify", "skill"])
async def test_what_is_not_for_sub_agents_is_not_there_and_cannot_be_called(name: str) -> None:
    others = [tool(one) for one in ("memory", "clarify", "skill", "look")]
    child = [tool_call_reply((name, '{"tasks": ["x"]}')), text_reply("could not")]
    family = Family(Cast(go=[delegates("t"), text_reply("done")], t=child), others)
    [told] = await family.told()
    [first, second] = family.model.of("t")
    assert [one.name for one in first.tools] == ["look"]
    assert "look" in second.messages[-1].text  # what there is instead
    assert (told["tool_calls"], told["failed_calls"]) == (1, 1)


async def test_a_sub_agent_has_turns_of_its_own_and_says_that_they_were_used_up() -> None:
    busy = [tool_call_reply(("look", f'{{"n": {n}}}'), text=f"step {n}") for n in range(3)]
    family = Family(
        Cast(go=[delegates("t"), text_reply("done")], t=[*busy, text_reply("this far")]), [tool("look")], iterations=4
    )
    [told] = await family.told()
    assert (told["status"], told["findings"]) == ("max_iterations, partial", "this far")
    assert family.play.loop.state.iterations == 2


async def test_what_was_found_before_the_time_was_up_is_not_lost() -> None:
    """Users' pain 13: a time-out that was all or nothing, although the file was there."""
    made = tool_call_reply(("look", '{"command": "make > /tmp/data/report.md"}'), text="The build fails in step 2.")
    family = Family(Cast(go=[delegates("t", timeout_s=3.0), text_reply("done")], t=[made, waits()]), [tool("look")])
    family.there = ["/tmp/data/report.md"]
    [told] = await family.told()
    assert told["status"] == "timed_out, partial"
    assert told["findings"] == "The build fails in step 2."
    assert told["files"] == ["/tmp/data/report.md"]
    assert family.play.loop.state.ended is not None
    assert family.play.loop.state.ended.text == "done"


async def test_nothing_found_is_not_told_as_if_something_were() -> None:
    """Users' pain 12: fabricated success."""
    family = Family(Cast(go=[delegates("t", timeout_s=0.05), text_reply("done")], t=[waits()]))
    family.there = ["/etc/passwd"]
    [told] = await family.told()
    assert (told["status"], told["findings"], told["files"], told["tool_calls"]) == ("timed_out", "", [], 0)


async def test_one_is_cancelled_by_its_number_and_the_others_go_on() -> None:
    """Users' pain 13: neither status nor cancel."""
    model = Cast(
        go=[delegates("a", "b", "c"), text_reply("done")],
        a=[waits()],
        b=[waits(2.0, then=text_reply("b"))],
        c=[text_reply("c")],
    )
    family = Family(model, at_once=2)
    run = asyncio.create_task(family.told())
    await until(lambda: len(model.requests) == 3)
    first, second, third = family.delegate.status_lines()
    assert re.match(r"1001 sub-agent, \d+ s, 0 turns, waiting for the model: a", first)
    assert "1002" in second
    assert third.endswith(": c")
    assert family.delegate.cancel(1001) == "Sub-agent 1001 cancelled."
    with pytest.raises(UsageError, match="no sub-agent 7"):
        family.delegate.cancel(7)
    told = await run
    assert [one["status"] for one in told] == ["cancelled", "completed", "completed"]
    assert family.delegate.status_lines() == ()
    shown = [event.text for event in family.play.seen if isinstance(event, ToolProgress)]
    assert any("1002 sub-agent" in text for text in shown)
    assert "sub-agent 1001 ended: cancelled" in shown


async def test_those_that_had_not_begun_never_begin_when_all_are_cancelled() -> None:
    model = Cast(go=[delegates("a", "b"), text_reply("done")], a=[waits()], b=[])
    family = Family(model, at_once=1)
    run = asyncio.create_task(family.told())
    await until(lambda: len(model.requests) == 2)
    assert family.delegate.cancel() == "2 sub-agents cancelled."
    assert [one["status"] for one in await run] == ["cancelled", "cancelled, not begun"]


async def test_one_that_breaks_takes_none_along() -> None:
    model = Cast(go=[delegates("a", "b"), text_reply("done")], a=[ValueError("boom")], b=[text_reply("fine")])
    told = await Family(model).told()
    assert [one["status"] for one in told] == ["unexpected_error", "completed"]
    assert "boom" in told[0]["trouble"]


async def test_an_interrupt_does_not_wait_for_sub_agents() -> None:
    """Users' pain 13: the parent froze."""
    begun, let_go = asyncio.Event(), asyncio.Event()
    stubborn = tool("look", _stubborn(begun, let_go))
    model = Cast(go=[delegates("a", "b")], a=[waits()], b=[tool_call_reply(("look", "{}")), text_reply("never")])
    family = Family(model, [stubborn], grace_s=PROMPT_GRACE_S)
    run = asyncio.create_task(family.play.run("go"))
    await until(lambda: len(model.requests) == 3)
    await begun.wait()
    family.play.loop.interrupt()
    outcome = await run
    assert outcome.reason is EndReason.INTERRUPTED
    let_go.set()
    await _gone(family)


async def _gone(family: Family) -> None:
    await until(lambda: not family.delegate.status_lines())


def _stubborn(begun: asyncio.Event, let_go: asyncio.Event) -> Callable[..., Awaitable[str]]:
    async def look(**_: Any) -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await let_go.wait()
        return "at last"

    return look


async def test_what_sub_agents_pay_is_on_the_parent_s_bill() -> None:
    child = [tool_call_reply(("look", '{"n": 1}')), text_reply("found")]
    family = Family(Cast(go=[delegates("a", "b"), text_reply("done")], a=child, b=child), [tool("look")])
    outcome = await family.play.run("go")
    assert (outcome.bill.known_usd, outcome.bill.attempts) == (6 * CENT, 6)
    charges = family.play.written(ToolFinished)[-1].charges
    assert [one.purpose for one in charges] == ["delegate"] * 4


@pytest.mark.parametrize("way", ["cancelled", "timed out", "interrupted", "left behind"])
async def test_what_sub_agents_paid_is_on_the_bill_however_they_end(way: str) -> None:
    """A call that was under way may have been billed: it is there too, as of unknown outcome."""
    begun, let_go = asyncio.Event(), asyncio.Event()
    look = tool("look", _stubborn(begun, let_go)) if way == "left behind" else tool("look")
    last: Any = text_reply("never") if way == "left behind" else waits()
    more = {"timeout_s": 2.0} if way == "timed out" else {}
    model = Cast(go=[delegates("a", **more), text_reply("done")], a=[tool_call_reply(("look", '{"n": 1}')), last])
    family = Family(model, [look], grace_s=0.05)
    run = asyncio.create_task(family.play.loop.run("go"))
    await until(begun.is_set if way == "left behind" else lambda: len(model.requests) == 3)
    if way == "cancelled":
        family.delegate.cancel()
    elif way != "timed out":
        family.play.loop.interrupt()
    outcome = await run
    ledger = UsageLedger.from_entries(family.play.journal.entries())
    parent = 1 if way in {"interrupted", "left behind"} else 2
    assert outcome.bill.known_usd == (parent + 1) * CENT
    assert outcome.bill == ledger.bill()
    lost = [one for one in ledger.charges if one.outcome == OUTCOME_UNKNOWN]
    assert len(lost) == (0 if way == "left behind" else 1)
    assert all(one.purpose == "delegate" for one in lost)
    let_go.set()
    await _gone(family)


async def test_money_is_drawn_from_what_the_parent_has_left() -> None:
    """And promised once, however many calls ask for it at the same time."""
    greedy = [tool_call_reply(("look", f'{{"n": {n}}}')) for n in range(20)]
    scripts = {task: [*greedy, text_reply("never")] for task in "abcd"}
    limits = CHAT_LIMITS.__class__(iterations=60, context_tokens=None, usd=Decimal("0.25"), warns=False)
    two = tool_call_reply(
        ("delegate", '{"tasks": ["a", "b"]}'),
        ("delegate", '{"tasks": ["c", "d"]}'),
    )
    model = Cast(go=[two, text_reply("done")], **scripts)
    family = Family(model, [tool("look", trusted=True)], limits=limits, iterations=50, at_once=4)
    outcome = await family.play.loop.run("go")
    spent = outcome.bill.known_usd
    assert Decimal("0.2") < spent < Decimal("0.25") + 10 * CENT  # each takes two more calls to come to its end


async def test_without_money_nothing_is_begun() -> None:
    limits = CHAT_LIMITS.__class__(iterations=60, context_tokens=None, usd=CENT, warns=False)
    model = Cast(go=[delegates("a"), text_reply("done")], a=[text_reply("short")])
    family = Family(model, limits=limits)
    (told,) = await family.told()
    assert model.of("a") == []
    assert told["status"] == "cost_limit, not begun"


async def test_plan_mode_and_the_list_of_catastrophes_hold_below() -> None:
    """Sub-agents may do no more than their parent."""
    ran: list[str] = []
    host = tool(
        "terminal",
        lambda **given: ran.append(given["command"]),
        toolset="terminal",
        effects=frozenset({ToolEffect.WRITE}),
    )
    send = tool("post", lambda: ran.append("post"), effects=frozenset({ToolEffect.SEND}))
    everything = PermissionRule(PermissionAction.ALLOW, name="everything")
    child = [tool_call_reply(("terminal", '{"command": "ls"}'), ("post", "{}")), text_reply("denied")]
    for rules, hooks, lines in (
        ((PLAN_RULE, everything), [], child),
        (
            (everything,),
            [DangerousCommandHook()],
            [tool_call_reply(("terminal", '{"command": "rm -rf /"}')), text_reply("denied")],
        ),
    ):
        model = Cast(go=[delegates("t"), text_reply("done")], t=list(lines))
        family = Family(model, [host, send], permissions=SessionPermissions(rules), hooks=hooks)
        [told] = await family.told()
        assert told["failed_calls"] == told["tool_calls"] > 0
        assert ran == []


async def test_lists_and_memories_of_a_session_are_a_sub_agent_s_own() -> None:
    entries: list[Any] = []
    family_tools: list[Tool] = [TodoTool(lambda: entries), RecallTool(None, lambda: entries)]
    create = tool_call_reply(("todo", '{"action": "create", "texts": ["look around"]}'))
    complete = tool_call_reply(("todo", '{"action": "complete", "numbers": [1]}'))
    search = tool_call_reply(("recall", '{"action": "search", "query": "look around"}'))
    model = Cast(go=[delegates("t"), text_reply("done")], t=[create, complete, search, text_reply("ok")])
    family = Family(model, family_tools)
    [told] = await family.told()
    assert (told["tool_calls"], told["failed_calls"]) == (3, 0)
    results = [m.text for m in model.of("t")[-1].messages]
    assert "completed: look around" in results[4]
    assert "session current" in results[6]
    assert family.play.loop.state.conversation.tools[1].name == "todo"


async def test_findings_have_an_end() -> None:
    family = Family(Cast(go=[delegates("t"), text_reply("done")], t=[text_reply("x" * 3 * FINDINGS_CHARS)]))
    [told] = await family.told()
    assert told["findings"] == "x" * FINDINGS_CHARS + "…"


@pytest.mark.parametrize(
    "arguments", [{}, {"tasks": []}, {"tasks": [""]}, {"tasks": ["x"] * 9}, {"tasks": ["x"], "timeout_s": 0}]
)
async def test_what_cannot_be_delegated_is_a_mistake(arguments: Mapping[str, Any]) -> None:
    family = Family(Cast(go=[tool_call_reply(("delegate", json.dumps(arguments))), text_reply("well")]))
    await family.play.run("go")
    assert family.play.written(ToolFinished)[-1].outcome is ToolOutcome.MISTAKE


class HostBench:
    """A bench whose sandbox is a shell here."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.sandbox, self._trouble = self, trouble

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Any]:
        if self._trouble:
            raise self._trouble

        async def execute(command: str) -> Any:
            done = await asyncio.to_thread(subprocess.run, ["sh", "-c", command], capture_output=True, check=False)
            return SimpleNamespace(stdout=done.stdout)

        yield SimpleNamespace(exec=execute)


async def test_only_files_that_are_there_are_artefacts(tmp_path: Path) -> None:
    """A name is not a command."""
    names = [str(tmp_path / name) for name in ("a.txt", "with space", "$(touch evil)", "it's", "missing")]
    for name in ("a.txt", "with space", "$(touch evil)", "it's"):
        (tmp_path / name).write_text("x")
    assert await existing_files(HostBench(), names) == names[:-1]  # type: ignore[arg-type]  # as much of one as it takes
    assert not (tmp_path / "evil").exists()
    assert await existing_files(None, names) == []
    assert await existing_files(HostBench(SandboxUnavailable("no")), names) == []  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("bench", [None, HostBench(SandboxUnavailable("no"))])
async def test_files_below_the_workspace_are_artefacts_too_by_either_name(tmp_path: Path, bench: Any) -> None:
    """Users' pain 13; what a link leads out to is none of it."""
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "sub/a.txt").write_text("x")
    (tmp_path / "outside").write_text("x")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to("sub/a.txt")
    there = ["sub/a.txt", "./sub/../sub/a.txt", str(root / "sub/a.txt"), "in"]
    others = [
        "sub",
        "out",
        "../outside",
        str(tmp_path / "outside"),
        "missing",
        "https://sub/a.txt",
        "a\0b",
        "x" * 9_000,
    ]
    workspace = Workspace(root, judged=True)
    assert await existing_files(bench, [*others, *there], workspace.has_file) == there


async def test_what_a_sub_agent_wrote_with_a_command_is_among_its_files(tmp_path: Path) -> None:
    """By the name that its answer has for it, as a chat asks for it."""
    path = tmp_path / "work/made.txt"
    write = calling("terminal", command=f"echo x > {path}")
    answer = Turn(text=f"It is in {path}, not in {path}.orig.")
    with home(tmp_path, calling("delegate", tasks=["write it"]), write, answer, Turn(text="done")) as here:
        async with here.chat(asker=Yes()) as mine:
            await mine.say("go")
        told = str(here.lab.requests[-1].body["messages"][-1])
    assert path.exists()
    assert f'"files":["{path}"]' in told.replace("\\", "").replace(" ", "")
