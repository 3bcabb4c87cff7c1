"""Decides who approves the calls of a library's agent: rules, a function, or nobody if the user says so."""

from collections.abc import Iterable
from dataclasses import replace

from hummingbird.agent.tools.chat_tools import MEMORY_NAME
from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.agent.tools.sandbox_tools import SANDBOX_TOOLS
from hummingbird.app.agent_config import APPROVE_ALL, AgentConfig
from hummingbird.app.callbacks import CallbackAsker, Callbacks
from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import PermissionAction, PermissionRule
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.tool_spec import ToolEffect

# What happens in the sandbox changes nothing outside of it.
# The memory is a folder that the user has named for it.
_UNASKED = frozenset((*SANDBOX_TOOLS, MEMORY_NAME))
_ALLOWED_RULES = tuple(PermissionRule(PermissionAction.ALLOW, name) for name in sorted(_UNASKED))


def choose_permissions(config: AgentConfig, callbacks: Callbacks, tools: Iterable[Tool]) -> SessionPermissions | None:
    """Return the permissions of an agent with these tools; None if every call may run.

    Raises UsageError for a tool that does more than read, if nobody was named who approves its calls.
    """
    approve = config.approve or callbacks.approval
    given = config.permissions
    if approve == APPROVE_ALL:
        return given
    if callable(approve):
        if given is not None and given.asker is not None:
            return given
        return replace(given or SessionPermissions(_ALLOWED_RULES), asker=CallbackAsker(approve))
    if approve is not None:
        raise UsageError(f'approve is {approve!r}; give a function that answers questions, or "{APPROVE_ALL}".')
    if given is not None:
        return given
    for tool in tools:
        if tool.spec.name not in _UNASKED and (beyond := sorted(tool.spec.effects - {ToolEffect.READ})):
            raise UsageError(
                f"The tool {tool.spec.name} does more than read ({', '.join(beyond)}), and nobody approves its calls: "
                f'give AgentConfig a function as approve, or approve="{APPROVE_ALL}" if every call may run.'
            )
    return None
