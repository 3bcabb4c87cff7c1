"""Decides what tools may do in a chat: the operator's rules first, then the built-in ones.

Plan mode is a rule that nothing overrides. Commands that would destroy the machine or the home directory are refused
before anybody is asked.

A rule is written in one line: `terminal(git diff *)`, `file_edit(docs/*)`, `mcp_time_now`. The pattern in parentheses
is a glob for the command of a terminal, for the path of a file tool, and for all arguments of any other tool. A pattern
that ends in " *" also covers the text without anything behind it: `git diff *` covers `git diff`. Names that other
agents use for the same tools (Bash, Edit, Read) are understood.
"""

import asyncio
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, overload

from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.config.settings import ChatSettings
from hummingbird.core.errors import HummingbirdError, UsageError
from hummingbird.core.permissions import (
    CAREFUL,
    GrantScope,
    PermissionAction,
    PermissionMode,
    PermissionOffer,
    PermissionRule,
    ProposedCall,
    judge_call,
)
from hummingbird.core.protocols.interaction import PermissionAsker
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.tools import DenyCall, RewriteCall
from hummingbird.core.shell.evaluation import refusal_reason
from hummingbird.core.shell.values import HOME
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from hummingbird.sandboxes.host.tool_specs import EDIT_SPEC, READ_SPEC, SEARCH_SPEC
from hummingbird.storage.grants import FileGrants

GRANTS_FILE = "grants.jsonl"
# Takes the arguments of a search and its start path; returns whether a file may be shown.
FileJudge: TypeAlias = Callable[[Mapping[str, Any], str], Callable[[str], bool]]
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

_ACCEPT_EDITS_RULE = PermissionRule(PermissionAction.ALLOW, tool=EDIT_SPEC.name, name="accept edits")
# Files that decide what other programs run, or what the agent itself may do: their edits are asked about in every mode.
_PROTECTED_RULES = tuple(
    PermissionRule(PermissionAction.ASK, EDIT_SPEC.name, "path", pattern, name="files that decide what runs")
    for pattern in (
        *("*.git/*", "*.gitmodules", "*.gitlab-ci.y*", "*.github/*", "*.pre-commit-config.y*", "*.hummingbird/*"),
        *("*hummingbird.y*", "*.vscode/*", "*.idea/*", "*.claude/*", "*.envrc", "*.husky/*", "*bashrc", "*.profile"),
        *("*AGENTS.md", "*CLAUDE.md", "*HUMMINGBIRD.md"),
    )
)


@dataclass(frozen=True, slots=True)
class PersonalRule:
    """A rule that a person added to the chat; `text` is what they wrote or took."""

    action: PermissionAction
    text: str
    scope: GrantScope

    @property
    def line(self) -> str:
        return f"{self.action.value} {self.text}"

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        return rules_from_text(self.action, self.text)


def parse_personal_rule(line: str, scope: GrantScope) -> PersonalRule:
    """Return the rule of a line such as `allow terminal(git diff *)`. Raises UsageError."""
    word, _, text = line.strip().partition(" ")
    if word not in {one.value for one in PermissionAction} or not text.strip():
        raise UsageError("Say allow, ask or deny, and a rule, like: allow terminal(git diff *)")
    made = PersonalRule(PermissionAction(word), text.strip(), scope)
    _ = made.rules  # raises now if it is not a rule
    return made


class ChatRules(Sequence[PermissionRule]):
    """The rules of a chat while it goes on: what the person said, the mode, the configuration, the built-in rules.

    Deny rules count wherever they stand, so no mode and no yes gets past one. `where` is the folder that permanent
    rules belong to.
    """

    def __init__(
        self,
        configured: Sequence[PermissionRule] = (),
        *,
        mode: PermissionMode = PermissionMode.ASK,
        personal: Sequence[PersonalRule] = (),
        saved: FileGrants | None = None,
        where: str = "",
    ) -> None:
        self.mode = mode
        self.trouble = ""  # why saved rules do not hold
        self._configured = tuple(configured)
        self._saved, self._where = saved, where
        self._personal = [*personal, *self._load_saved()]

    def _load_saved(self) -> list[PersonalRule]:
        if self._saved is None:
            return []
        try:
            lines = self._saved.list_rules(self._where)
            return [parse_personal_rule(line, GrantScope.ALWAYS) for line in lines]
        except HummingbirdError as error:
            self.trouble = f"Rules that you saved do not hold. {error}"
            return []

    @property
    def _all(self) -> tuple[PermissionRule, ...]:
        personal = [rule for one in self._personal for rule in one.rules]
        accepted = (*_PROTECTED_RULES, _ACCEPT_EDITS_RULE) if self.mode is PermissionMode.ACCEPT_EDITS else ()
        plan = (PLAN_RULE,) if self.mode is PermissionMode.PLAN else ()
        return (*plan, *personal, *self._configured, *accepted, *_BUILT_IN_RULES)

    @overload
    def __getitem__(self, at: int) -> PermissionRule: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[PermissionRule]: ...
    def __getitem__(self, at: int | slice) -> PermissionRule | Sequence[PermissionRule]:
        return self._all[at]

    def __len__(self) -> int:
        return len(self._all)

    @property
    def personal(self) -> tuple[PersonalRule, ...]:
        return tuple(self._personal)

    async def add(self, rule: PersonalRule, by: str) -> None:
        """Add a rule, and save it if it is permanent. Raises HummingbirdError if that is impossible."""
        if rule.scope is GrantScope.ALWAYS:
            if self._saved is None:
                raise UsageError("There is no place to save it: leave out always.")
            await self._saved.save_rule(self._where, rule.line, by)
        self._personal = [rule, *(one for one in self._personal if one.line != rule.line)]

    async def remove(self, number: int) -> PersonalRule:
        """Remove the rule of this number, which counts from 1. Raises HummingbirdError."""
        if not 1 <= number <= len(self._personal):
            raise UsageError(f"There is no rule {number} of yours; /permissions shows those that there are.")
        rule = self._personal[number - 1]
        if rule.scope is GrantScope.ALWAYS and self._saved is not None:
            await self._saved.remove_rule(self._where, rule.line)
        self._personal.remove(rule)
        return rule

    # RuleKeeper

    def suggest(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> PermissionOffer:
        if spec.name == EDIT_SPEC.name:
            return PermissionOffer(accept_edits=self.mode is PermissionMode.ASK)
        return PermissionOffer(rule=suggest_rule(spec, arguments))

    async def keep(self, offer: PermissionOffer, scope: GrantScope, by: str) -> None:
        if offer.accept_edits:
            self.mode = PermissionMode.ACCEPT_EDITS
        elif offer.rule:
            await self.add(PersonalRule(PermissionAction.ALLOW, offer.rule, scope), by)


def build_chat_permissions(
    settings: ChatSettings,
    *,
    plan: bool,
    asker: PermissionAsker | None,
    folder: Path | None,
    clock: Clock,
    where: str = "",
    accept_edits: bool = False,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
) -> SessionPermissions:
    """Return the permissions of a chat; permanent grants are saved in `folder`, if there is one.

    `allow` and `deny` are rules of the command line. Raises UsageError for one that makes no sense.
    """
    saved = None if folder is None else FileGrants(folder / GRANTS_FILE, clock.now)
    lines = [*(f"deny {text}" for text in deny), *(f"allow {text}" for text in allow)]
    rules = ChatRules(
        [one.to_rule() for one in settings.permissions],
        mode=PermissionMode.PLAN if plan else PermissionMode.ACCEPT_EDITS if accept_edits else PermissionMode.ASK,
        personal=[parse_personal_rule(line, GrantScope.SESSION) for line in lines],
        saved=saved,
        where=where,
    )
    return SessionPermissions(rules, asker=asker, saved=saved, keeper=rules)


def default_action(rules: Sequence[PermissionRule], spec: ToolSpec) -> str:
    """Return what happens to a call of the tool if no rule matches its arguments."""
    general = [rule for rule in rules if not rule.pattern]
    return judge_call(general, {}, spec, {}, CAREFUL).action.value


def search_filter(rules: Sequence[PermissionRule]) -> FileJudge | None:
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

    def __init__(self, is_on: Callable[[], bool] = lambda: True) -> None:
        self._is_on = is_on

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> DenyCall | None:
        most = {ToolEffect.READ, ToolEffect.EXEC} if spec.name in _HARMLESS_TOOLS else {ToolEffect.READ}
        harmless = not self._is_on() or spec.effects <= most
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


_TEXT = re.compile(r"\s*([A-Za-z0-9_.*-]+)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_ALIASES = {
    "bash": "terminal", "shell": "terminal", "edit": "file_edit", "write": "file_edit",
    "read": "file_read", "grep": "file_search", "glob": "file_search",
}  # fmt: skip
_ARGUMENTS = {"terminal": "command", "file_edit": "path", "file_read": "path", "file_search": "path"}
_SYNTAX = "write it like 'terminal(git diff *)', 'file_edit(docs/*)' or a tool's name"

# Programs that run other programs or code that they are given: a rule for all their arguments would allow everything.
_RUNNERS = frozenset(
    (
        *("awk", "bash", "busybox", "chroot", "command", "csh", "curl", "dash", "dd", "doas", "docker", "env", "eval"),
        *("exec", "expect", "fd", "find", "fish", "flock", "gawk", "gdb", "ionice", "ksh", "lua", "make", "mawk", "nc"),
        *("ncat", "nice", "node", "nohup", "nsenter", "parallel", "perl", "php", "pkexec", "podman", "powershell"),
        *(
            "pwsh",
            "python",
            "python3",
            "rm",
            "rsync",
            "ruby",
            "script",
            "sed",
            "setsid",
            "sh",
            "socat",
            "source",
            "ssh",
        ),
        *("stdbuf", "strace", "su", "sudo", "systemd-run", "tar", "tclsh", "tee", "time", "timeout"),
        *("tmux", "unshare", "vi", "vim", "watch", "wget", "xargs", "zsh"),
    )
)
# Programs whose second word says what they do.
_WITH_SUBCOMMANDS = frozenset(
    (
        *("apt", "apt-get", "brew", "cargo", "dnf", "gem", "gh", "git", "glab", "go", "gradle", "helm", "kubectl"),
        *("mvn", "npm", "oc", "pip", "pip3", "pnpm", "poetry", "rustup", "systemctl", "terraform", "tox", "uv", "yarn"),
    )
)
_RUNNING_SUBCOMMANDS = frozenset(["exec", "run", "x", "dlx", "tool", "config", "alias", "-c"])
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_PLAIN_COMMAND = re.compile(r"[A-Za-z0-9 _./:=@%+,'\"\[\]{}~^-]+")


def rules_from_text(action: PermissionAction, text: str) -> tuple[PermissionRule, ...]:
    """Return the rules that a line means: two if it ends in " *", which also covers the text with nothing behind it.

    Raises UsageError for what is not a rule, saying how to write one.
    """
    found = _TEXT.match(text)
    if found is None:
        raise UsageError(f"{shorten_line(text, 80)!r} is not a rule: {_SYNTAX}.")
    tool, pattern = _ALIASES.get(found[1].lower(), found[1]), found[2]
    if pattern is None or not pattern.strip():
        return (PermissionRule(action, tool, name=text.strip()),)
    pattern = pattern.strip()
    if pattern.endswith(":*"):
        pattern = f"{pattern[:-2].rstrip()} *"
    texts = [pattern, pattern[:-2].rstrip()] if pattern.endswith(" *") and pattern[:-2].strip() else [pattern]
    argument = _ARGUMENTS.get(tool, "")
    return tuple(PermissionRule(action, tool, argument, each, name=text.strip()) for each in texts)


def suggest_rule(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return a rule that covers this call and others like it; empty if no such rule is safe to offer."""
    if spec.name == "terminal":
        pattern = _suggest_command_pattern(str(arguments.get("command", "")))
        return f"terminal({pattern})" if pattern else ""
    return spec.name if spec.toolset not in {"terminal", "workspace"} else ""


def _suggest_command_pattern(command: str) -> str:
    if not _PLAIN_COMMAND.fullmatch(command) or ".." in command:
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    if not words or words[0] in _RUNNERS or not re.fullmatch(r"[A-Za-z0-9_-]+", words[0]):
        return ""
    if words[0] not in _WITH_SUBCOMMANDS:
        return f"{words[0]} *"
    if len(words) < 2 or not _SUBCOMMAND.fullmatch(words[1]) or words[1] in _RUNNING_SUBCOMMANDS:
        return ""
    return f"{words[0]} {words[1]} *"
