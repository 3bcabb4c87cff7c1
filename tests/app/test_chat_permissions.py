"""What tools may do in a chat: plan mode and catastrophes hold whatever the rules say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hummingbird.agent.tools.permission_gate import PermissionGate, PermissionRuling
from hummingbird.app.chat_permissions import (
    PLAN_RULE,
    DangerousCommandHook,
    PlanModeHook,
    build_chat_permissions,
    default_action,
    search_filter,
)
from hummingbird.config.settings import ChatSettings, PermissionSettings
from hummingbird.core.permissions import (
    CAREFUL,
    GrantScope,
    PermissionAction,
    PermissionGrant,
    PermissionMode,
    ProposedCall,
    judge_call,
)
from hummingbird.core.protocols.tools import DenyCall, Tool
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from tests.agent.stage import tool
from tests.app.chats import Yes, calling, home
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Turn

EVERYTHING = PermissionSettings(action="allow", tool="*")
CHANGES = frozenset({ToolEffect.WRITE, ToolEffect.SEND})


def settings(*rules: PermissionSettings) -> ChatSettings:
    return ChatSettings(permissions=rules)


async def tools_of_a_full_desk(folder: Path) -> list[Tool]:
    """All that a chat offers; skills and servers need something to offer."""
    skill = folder / "work" / ".hummingbird" / "skills" / "fix"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: fix\ndescription: Mends.\n---\nMend it.\n")
    with home(folder) as here:
        async with here.chat(toolsets=None) as mine:
            agent = mine._get_agent()
            async with mine._hold_turn():
                return list(agent.tools)


async def ruled(gate: PermissionGate, one: Tool, arguments: Mapping[str, Any]) -> PermissionRuling:
    return await gate.decide(one.spec, arguments, lambda _: None)


async def test_in_plan_mode_every_tool_that_changes_or_sends_is_denied_whatever_else_holds(tmp_path: Path) -> None:
    """With a rule that allows everything, a saved grant and somebody who says yes."""
    offered = await tools_of_a_full_desk(tmp_path)
    names = {one.spec.name for one in offered}
    assert {"terminal", "file_edit", "memory", "sandbox_exec", "todo", "recall", "delegate", "skill"} <= names
    yes, folder = Yes(GrantScope.ALWAYS), tmp_path / "state"
    planned = build_chat_permissions(settings(EVERYTHING), plan=True, asker=yes, folder=folder, clock=ScriptedClock())
    assert planned.saved is not None
    gate = PermissionGate(planned, "p", tuple, str)
    arguments = {"command": "make", "path": "x"}
    changing = [one for one in offered if one.spec.effects & CHANGES]
    assert {"terminal", "file_edit"} <= {one.spec.name for one in changing}
    for one in changing:
        command = ProposedCall.from_arguments(one.spec, arguments)
        assert command is not None
        await planned.saved.save("p", PermissionGrant(command.key, "it", "somebody"))
        ruling = await ruled(gate, one, arguments)
        assert not ruling.allowed, one.spec.name
        assert "plan mode" in ruling.denial_text
    assert yes.asked == []
    others = [one for one in offered if not one.spec.effects & CHANGES]
    assert all([(await ruled(gate, one, arguments)).allowed for one in others])


async def test_what_can_change_the_host_says_so(tmp_path: Path) -> None:
    """Plan mode is as good as what tools say of themselves."""
    effects = {one.spec.name: one.spec.effects for one in await tools_of_a_full_desk(tmp_path)}
    assert effects["terminal"] >= CHANGES
    assert ToolEffect.WRITE in effects["file_edit"]
    assert not effects["sandbox_exec"] & CHANGES
    assert not [name for name in ("file_read", "file_search", "recall", "todo") if effects[name] & CHANGES]


@pytest.mark.parametrize("plan", [True, False])
async def test_plan_mode_is_enforced_in_a_chat(tmp_path: Path, *, plan: bool) -> None:
    yes = Yes()
    write = calling("terminal", command="touch made")
    with home(tmp_path, write, Turn(text="ok")) as here:
        async with here.chat(plan=plan, asker=yes) as mine:
            await mine.say("go")
            assert (mine.status().mode is PermissionMode.PLAN) is plan
            action = {one.name: one.action for one in mine.tools()}
    assert (tmp_path / "work" / "made").exists() is not plan
    assert len(yes.asked) == (not plan)
    assert action["terminal"] == ("deny" if plan else "ask")


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["rm -rf /", "rm -fr ~", "mkfs.ext4 /dev/sda1", ":(){ :|:& };:"])
async def test_catastrophes_are_refused_before_anybody_is_asked(tmp_path: Path, command: str) -> None:
    """With rules that allow everything and with none."""
    yes = Yes()
    everything = "settings: {}\nchat:\n  permissions:\n  - {action: allow, tool: '*'}\n"
    for text in ("", everything):
        with home(tmp_path, calling("terminal", command=command), Turn(text="ok")) as here:
            async with here.chat(asker=yes, configuration=here.configuration(text)) as mine:
                await mine.say("go")
            told = str(here.lab.requests[-1].body["messages"][-1])
            assert "refused in every mode" in told
    assert yes.asked == []


async def test_a_way_up_from_the_workspace_is_none_to_the_home_directory() -> None:
    """Wherever that is; the list alone knows of /home."""
    hook = DangerousCommandHook(Path("/data/people/alice/project"), "/data/people/alice")
    host = tool("terminal", toolset="terminal")
    assert isinstance(await hook.before_tool(host.spec, {"command": "rm -rf .."}), DenyCall)
    assert isinstance(await hook.before_tool(host.spec, {"command": "cd .. && rm -rf *"}), DenyCall)
    assert await hook.before_tool(host.spec, {"command": "rm -rf build ../other"}) is None


async def test_a_hook_that_looks_for_catastrophes_leaves_the_rest_alone() -> None:
    hook = DangerousCommandHook()
    host, box = tool("terminal", toolset="terminal"), tool("sandbox_exec", toolset="sandbox")
    assert await hook.before_tool(host.spec, {"command": "ls -la"}) is None
    assert await hook.before_tool(host.spec, {"command": 7}) is None
    assert await hook.before_tool(box.spec, {"command": "rm -rf /"}) is None
    assert await hook.after_tool(host.spec, {}, "x") is None


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        ([], None),
        ([PermissionSettings(action="deny", tool="file_edit", argument="path", pattern="secrets/*")], None),
        ([PermissionSettings(action="deny", tool="*", effects=("write",)), EVERYTHING], None),
        (
            [PermissionSettings(action="deny", tool="file_read", argument="path", pattern="secrets/*")],
            {"Secrets/b", "secrets/a"},
        ),
        ([PermissionSettings(action="ask", effects=("read",), pattern="*secrets/a*")], {"secrets/a"}),
        (
            [
                PermissionSettings(action="allow", tool="file_read", argument="path", pattern="secrets/a"),
                PermissionSettings(action="ask", tool="file_read", argument="path", pattern="secrets/*"),
            ],
            {"Secrets/b"},
        ),
    ],
)
def test_a_search_shows_what_may_be_read_without_a_question(
    rules: list[PermissionSettings], hidden: set[str] | None
) -> None:
    """None: nothing has to be judged at all."""
    made = build_chat_permissions(settings(*rules), plan=True, asker=None, folder=None, clock=ScriptedClock())
    showing = search_filter(made.rules)
    if showing is None:
        assert hidden is None
        return
    shows = showing({"pattern": "x"}, ".")
    assert {path for path in (".", "secrets", "secrets/a", "Secrets/b", "src/a") if not shows(path)} == hidden


async def test_a_rule_that_denies_is_absolute_and_a_grant_is_for_one_call(tmp_path: Path) -> None:
    host = tool("terminal", toolset="terminal", effects=frozenset({ToolEffect.WRITE, ToolEffect.EXEC}))
    deny = PermissionSettings(action="deny", tool="terminal", argument="command", pattern="git push*")
    yes = Yes(GrantScope.ALWAYS)
    made = build_chat_permissions(
        settings(EVERYTHING, deny), plan=False, asker=yes, folder=tmp_path, clock=ScriptedClock()
    )
    gate = PermissionGate(made, "p", tuple, str)
    assert not (await ruled(gate, host, {"command": "git push --force"})).allowed
    assert (await ruled(gate, host, {"command": "git status"})).allowed
    careful = build_chat_permissions(settings(), plan=False, asker=yes, folder=tmp_path, clock=ScriptedClock())
    gate = PermissionGate(careful, "p", tuple, str)
    for command in ("make a", "make a", "make b", "make a "):
        assert (await ruled(gate, host, {"command": command})).allowed
    assert [question.text for question in yes.asked][:2] == [
        'terminal {"command":"make a"}',
        'terminal {"command":"make b"}',
    ]
    again = PermissionGate(careful, "p", tuple, str)
    before = len(yes.asked)
    assert (await ruled(again, host, {"command": "make a"})).allowed
    assert len(yes.asked) == before
    elsewhere = PermissionGate(careful, "another project", tuple, str)
    await ruled(elsewhere, host, {"command": "make a"})
    assert len(yes.asked) == before + 1


def test_where_nobody_can_be_asked_and_nothing_kept_there_is_no_place_for_it() -> None:
    made = build_chat_permissions(settings(), plan=False, asker=None, folder=None, clock=ScriptedClock())
    assert (made.saved, made.asker) == (None, None)


def test_what_usually_holds_is_said_without_arguments() -> None:
    host = tool("terminal", effects=frozenset({ToolEffect.WRITE})).spec
    patterned = PermissionSettings(action="allow", tool="terminal", argument="command", pattern="make *").to_rule()
    assert default_action([patterned], host) == "ask"
    assert default_action([EVERYTHING.to_rule()], host) == "allow"
    assert default_action([EVERYTHING.to_rule(), PLAN_RULE], host) == "deny"
    assert judge_call([], {}, tool("look").spec, {}, CAREFUL).action is PermissionAction.ALLOW


async def test_plan_mode_refuses_what_only_runs_something_whatever_a_rule_allows() -> None:
    """A plug-in's tool that says no more of itself than that it runs."""
    plan = PlanModeHook()
    for name, effects, refused in (
        ("deploy", {ToolEffect.EXEC}, True),
        ("deploy", {ToolEffect.READ, ToolEffect.EXEC}, True),
        ("look", {ToolEffect.READ}, False),
        ("sandbox_exec", {ToolEffect.EXEC}, False),
        ("process", {ToolEffect.EXEC}, False),
        ("process", {ToolEffect.EXEC, ToolEffect.WRITE}, True),
    ):
        spec = ToolSpec(name, name, {"type": "object"}, effects=frozenset(effects))
        assert (await plan.before_tool(spec, {}) is not None) is refused, (name, effects)
