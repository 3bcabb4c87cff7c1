"""Rules in one line: what they cover, and which are offered to somebody who is asked."""

import pytest

from hummingbird.app.chat_permissions import rules_from_text, suggest_rule
from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import PermissionAction, judge_call
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

TERMINAL = ToolSpec("terminal", "", {}, toolset="terminal", effects=frozenset({ToolEffect.EXEC}))
EDIT = ToolSpec("file_edit", "", {}, toolset="workspace", effects=frozenset({ToolEffect.WRITE}))
TIME = ToolSpec("mcp_time_now", "", {}, toolset="mcp", effects=frozenset({ToolEffect.SEND}))


def action(rule: str, spec: ToolSpec, wanted: PermissionAction = PermissionAction.ALLOW, **arguments: str) -> str:
    return judge_call(rules_from_text(wanted, rule), {}, spec, arguments).action.value


@pytest.mark.parametrize("rule", ["terminal(git diff *)", "Bash(git diff *)", "bash(git diff:*)"])
def test_a_rule_covers_the_command_with_and_without_arguments_and_nothing_else(rule: str) -> None:
    assert action(rule, TERMINAL, command="git diff") == "allow"
    assert action(rule, TERMINAL, command="git diff --stat src") == "allow"
    for other in ("git difftool -x sh", "git diff; rm a", "git diff $(rm a)", "git push", "cd a && git diff"):
        assert action(rule, TERMINAL, command=other) == "ask", other


def test_a_deny_rule_covers_the_command_however_it_is_wrapped() -> None:
    for command in ("git push", "git -C . push --force", "bash -c 'git push origin'"):
        assert action("Bash(git push *)", TERMINAL, PermissionAction.DENY, command=command) == "deny", command


def test_rules_for_files_and_for_other_tools() -> None:
    assert action("Edit(docs/*)", EDIT, path="docs/a.md", new="") == "allow"
    assert action("Edit(docs/*)", EDIT, path="src/a.py", new="") == "ask"
    assert action("mcp_time_now", TIME, zone="UTC") == "allow"
    assert action("mcp_time_*", TIME, PermissionAction.DENY, zone="UTC") == "deny"


@pytest.mark.parametrize("text", ["", "terminal(git", "two words(x)", "terminal(a\\b)"])
def test_what_is_no_rule_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UsageError):
        rules_from_text(PermissionAction.ALLOW, text)


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git diff --stat", "terminal(git diff *)"),
        ("pytest -q tests/a.py", "terminal(pytest *)"),
        ("npm run build", ""),
        ("git -c core.pager=sh log", ""),
        ("python3 -c 'print(1)'", ""),
        ("sudo ls", ""),
        ("./run.sh", ""),
        ("ls; rm a", ""),
        ("ls ../..", ""),
        ("", ""),
    ],
)
def test_a_rule_is_offered_only_where_all_that_it_covers_is_of_one_kind(command: str, rule: str) -> None:
    assert suggest_rule(TERMINAL, {"command": command}) == rule


def test_a_tool_of_a_server_is_offered_as_a_whole_and_an_edit_not_at_all() -> None:
    assert suggest_rule(TIME, {"zone": "UTC"}) == "mcp_time_now"
    assert suggest_rule(EDIT, {"path": "a"}) == ""
