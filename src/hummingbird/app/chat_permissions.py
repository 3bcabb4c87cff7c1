"""Decides what tools may do in a chat: the operator's rules first, then the built-in ones.

Plan mode is a rule that nothing overrides. Commands that would destroy the machine or the home directory are refused
before anybody is asked.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.config.settings import ChatSettings
from hummingbird.core.permissions import CAREFUL, PermissionAction, PermissionRule, ProposedCall, judge_call
from hummingbird.core.protocols.interaction import PermissionAsker
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.tools import DenyCall, RewriteCall
from hummingbird.core.shell.evaluation import refusal_reason
from hummingbird.core.shell.values import HOME
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from hummingbird.sandboxes.host.tool_specs import READ_SPEC, SEARCH_SPEC
from hummingbird.sandboxes.host.workspace import SearchFilter
from hummingbird.storage.grants import FileGrants

GRANTS_FILE = "grants.jsonl"
PLAN_RULE = PermissionRule(
    PermissionAction.DENY,
    effects=frozenset({ToolEffect.WRITE, ToolEffect.SEND}),
    reason="this is plan mode: nothing is changed and nothing is sent. Say in your plan what you would do",
    name="plan mode",
)
# These tools cannot reach anything of the user: the sandbox has no network and no files of the host, and `process` only
# manages processes whose start was permitted. `memory`, below, has its own checks.
_HARMLESS_TOOLS = ("sandbox_exec", "process")
_BUILT_IN_RULES = tuple(
    PermissionRule(PermissionAction.ALLOW, tool=tool, name=f"{tool} is always allowed")
    for tool in (*_HARMLESS_TOOLS, "memory")
)


def build_chat_permissions(
    settings: ChatSettings, *, plan: bool, asker: PermissionAsker | None, folder: Path | None, clock: Clock
) -> SessionPermissions:
    """Return the rules of a chat; permissions that are granted for always are saved in `folder`, if there is one."""
    rules = (*((PLAN_RULE,) if plan else ()), *(one.to_rule() for one in settings.permissions), *_BUILT_IN_RULES)
    saved = None if folder is None else FileGrants(folder / GRANTS_FILE, clock.now)
    return SessionPermissions(rules, asker=asker, saved=saved)


def default_action(rules: Sequence[PermissionRule], spec: ToolSpec) -> str:
    """Return what happens to a call of the tool if no rule matches its arguments."""
    general = [rule for rule in rules if not rule.pattern]
    return judge_call(general, {}, spec, {}, CAREFUL).action.value


def search_filter(rules: Sequence[PermissionRule]) -> SearchFilter | None:
    """Return a filter that limits searches to files which `file_read` may read; None if no rule restricts that.

    Files for which `file_read` would ask are shown only if the person was asked about the search of that folder.
    """
    reading = _rules_about(rules, READ_SPEC)
    denying = [
        rule
        for rule in _rules_about(rules, SEARCH_SPEC)
        if rule.action is PermissionAction.DENY and rule not in reading
    ]
    reading += [replace(rule, tool=READ_SPEC.name) for rule in denying]  # so that one judgement per file suffices
    if all(rule.action is PermissionAction.ALLOW for rule in reading):
        return None

    def showing(arguments: Mapping[str, Any], start: str) -> Callable[[str], bool]:
        def action(path: str) -> PermissionAction:
            return judge_call(reading, {}, READ_SPEC, {"path": path}).action

        asked = (
            judge_call(rules, {}, SEARCH_SPEC, arguments).action is PermissionAction.ASK
            and action(start) is PermissionAction.ASK
        )
        fine = {PermissionAction.ALLOW, PermissionAction.ASK} if asked else {PermissionAction.ALLOW}
        return lambda path: action(path) in fine

    return showing


def _rules_about(rules: Sequence[PermissionRule], spec: ToolSpec) -> list[PermissionRule]:
    """Return the rules that match at least some calls of the tool."""
    plainly = ProposedCall(spec.name, "{}", {})
    return [rule for rule in rules if replace(rule, argument="", pattern="").applies_to(spec, plainly)]


class DangerousCommandHook:
    """Denies catastrophic commands, whatever the rules say; `folder` is where commands run."""

    name = "the list of catastrophic commands"

    def __init__(self, folder: Path | None = None, home: str = "") -> None:
        self._folder = "" if folder is None else _home_relative(folder, home)

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> DenyCall | None:
        command = arguments.get("command")
        if spec.toolset != "terminal" or not isinstance(command, str):
            return None
        reason = refusal_reason(command, self._folder)
        return DenyCall(f"{reason} This is refused in every mode.") if reason else None

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return None


def _home_relative(folder: Path, home: str) -> str:
    """Write a path below the home directory as the list of commands expects it."""
    below = home and home != "/" and folder.is_relative_to(home)
    return f"{HOME}/{folder.relative_to(home)}" if below else str(folder)


class PlanModeHook:
    """Denies in plan mode what the rule alone would let through: tools that run something on the user's machine."""

    name = "plan mode"

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> DenyCall | None:
        most = {ToolEffect.READ, ToolEffect.EXEC} if spec.name in _HARMLESS_TOOLS else {ToolEffect.READ}
        harmless = spec.effects <= most
        return None if harmless else DenyCall(PLAN_RULE.reason)

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return None


class WorkspacePathHook:
    """Replaces a path by the file that it leads to, before rules judge it.

    So a rule for `secrets/*` covers every link to it, and one for `docs/*` covers no link that leads out of it.
    """

    name = "the workspace"

    def __init__(self, plain: Callable[[str], str]) -> None:
        self._plain = plain

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> RewriteCall | None:
        path = arguments.get("path")
        if spec.toolset != "workspace" or not isinstance(path, str):
            return None
        plain = await asyncio.to_thread(self._plain, path)
        return None if plain == path else RewriteCall({**arguments, "path": plain})

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return None
