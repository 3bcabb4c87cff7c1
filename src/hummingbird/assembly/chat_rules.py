"""What tools may do in a chat (T9, C6): the operator's rules first, then ours. Plan mode is a rule that nothing gets
past; commands that would end the machine or the home directory are refused before anybody is asked.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hummingbird.adapters.host.searching import Showing
from hummingbird.adapters.host.workspace_specs import READ, SEARCH
from hummingbird.adapters.stores.grants import FileGrants
from hummingbird.agent.tools.permissions import Permissions
from hummingbird.config.chat import ChatSettings
from hummingbird.domain.catastrophes import catastrophe
from hummingbird.domain.permissions import CAREFUL, Action, Command, Rule, judge
from hummingbird.domain.shell_parameters import HOME
from hummingbird.domain.tools import Effect, ToolSpec
from hummingbird.ports.clock import Clock
from hummingbird.ports.permissions import Asker
from hummingbird.ports.tool import Deny, Rewrite

GRANTS = "grants.jsonl"
PLAN = Rule(
    Action.DENY,
    effects=frozenset({Effect.WRITE, Effect.SEND}),
    reason="this is plan mode: nothing is changed and nothing is sent. Say in your plan what you would do",
    name="plan mode",
)
# Tools that reach nothing of the user's: the sandbox has no network and nothing of the host, memory has its own checks,
# and `process` knows only what was started with a yes.
_HARMLESS = ("sandbox_exec", "process")
_OURS = tuple(Rule(Action.ALLOW, tool=tool, name=f"{tool} is always allowed") for tool in (*_HARMLESS, "memory"))


def permissions(
    settings: ChatSettings, *, plan: bool, asker: Asker | None, folder: Path | None, clock: Clock
) -> Permissions:
    """`folder`: where a yes for always is kept; None: nowhere."""
    rules = (*((PLAN,) if plan else ()), *(one.rule() for one in settings.permissions), *_OURS)
    saved = None if folder is None else FileGrants(folder / GRANTS, clock.now)
    return Permissions(rules, asker=asker, saved=saved)


def usual(rules: Sequence[Rule], spec: ToolSpec) -> str:
    """What holds for a tool where no rule speaks of its arguments."""
    general = [rule for rule in rules if not rule.pattern]
    return judge(general, {}, spec, {}, CAREFUL).action.value


def searchable(rules: Sequence[Rule]) -> Showing | None:
    """A search shows what `file_read` may read without a question (T9); None where no rule forbids anything of it. One
    that was itself asked about, for a folder that `file_read` would ask about too, had a person's yes to what is there.
    """
    reading = _about(rules, READ)
    denying = [rule for rule in _about(rules, SEARCH) if rule.action is Action.DENY and rule not in reading]
    reading += [replace(rule, tool=READ.name) for rule in denying]  # so that a file is judged once
    if all(rule.action is Action.ALLOW for rule in reading):
        return None

    def showing(arguments: Mapping[str, Any], start: str) -> Callable[[str], bool]:
        def action(path: str) -> Action:
            return judge(reading, {}, READ, {"path": path}).action

        asked = judge(rules, {}, SEARCH, arguments).action is Action.ASK and action(start) is Action.ASK
        fine = {Action.ALLOW, Action.ASK} if asked else {Action.ALLOW}
        return lambda path: action(path) in fine

    return showing


def _about(rules: Sequence[Rule], spec: ToolSpec) -> list[Rule]:
    """Those that speak of some calls of a tool."""
    plainly = Command(spec.name, "{}", {})
    return [rule for rule in rules if replace(rule, argument="", pattern="").speaks_of(spec, plainly)]


class NoCatastrophes:
    """A hook (L18), so that it holds whatever the rules say. `folder`: where commands are run."""

    name = "the list of catastrophic commands"

    def __init__(self, folder: Path | None = None, home: str = "") -> None:
        """`home`: the directory that nothing may take away, wherever it is."""
        self._folder = "" if folder is None else _from_home(folder, home)

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Deny | None:
        command = arguments.get("command")
        if spec.toolset != "terminal" or not isinstance(command, str):
            return None
        reason = catastrophe(command, self._folder)
        return Deny(f"{reason} This is refused in every mode.") if reason else None

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return None


def _from_home(folder: Path, home: str) -> str:
    """As the list reads paths."""
    below = home and home != "/" and folder.is_relative_to(home)
    return f"{HOME}/{folder.relative_to(home)}" if below else str(folder)


class PlanOnly:
    """Beside the rule: tools that only run something are refused as well, but those that reach nothing of the user's,
    whatever a rule allows (C6)."""

    name = "plan mode"

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Deny | None:
        most = {Effect.READ, Effect.EXEC} if spec.name in _HARMLESS else {Effect.READ}
        harmless = spec.effects <= most
        return None if harmless else Deny(PLAN.reason)

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return None


class PlainPaths:
    """A path of the workspace is judged, shown and used as the file it leads to: rules for `secrets/*` hold for every
    way there, and those for `docs/*` for no way out (T9)."""

    name = "the workspace"

    def __init__(self, plain: Callable[[str], str]) -> None:
        self._plain = plain

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Rewrite | None:
        path = arguments.get("path")
        if spec.toolset != "workspace" or not isinstance(path, str):
            return None
        plain = await asyncio.to_thread(self._plain, path)
        return None if plain == path else Rewrite({**arguments, "path": plain})

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return None
