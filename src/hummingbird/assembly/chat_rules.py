"""What tools may do in a chat (T9, C6): the operator's rules first, then ours. Plan mode is a rule that nothing gets
past; commands that would end the machine or the home directory are refused before anybody is asked.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hummingbird.adapters.stores.grants import FileGrants
from hummingbird.agent.tools.permissions import Permissions
from hummingbird.config.chat import ChatSettings
from hummingbird.domain.catastrophes import catastrophe
from hummingbird.domain.permissions import CAREFUL, Action, Rule, judge
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


class NoCatastrophes:
    """A hook (L18), so that it holds whatever the rules say."""

    name = "the list of catastrophic commands"

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Deny | None:
        command = arguments.get("command")
        if spec.toolset != "terminal" or not isinstance(command, str):
            return None
        reason = catastrophe(command)
        return Deny(f"{reason} This is refused in every mode.") if reason else None

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return None


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
