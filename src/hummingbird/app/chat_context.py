"""Holds what a chat needs beyond one session: workspace, terminal, MCP servers, memory, session store and index.

`ChatContext.create_agent` makes the agent of one session.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hummingbird.agent.compaction import CompactEngine
from hummingbird.agent.context_files.memory_pages import MemoryBudget
from hummingbird.agent.interrupts import PROMPT_GRACE_S
from hummingbird.agent.prompts import PromptParts, build_chat_prompt
from hummingbird.agent.tools.chat_tools import ClarifyTool, MemoryTool, SkillTool, TodoTool
from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.agent.tools.recall import RecallTool
from hummingbird.app.agent_config import AgentConfig
from hummingbird.app.chat_memory import ChatKnowledge, load_chat_knowledge, open_memory
from hummingbird.app.chat_permissions import (
    ChatRules,
    DangerousCommandHook,
    PlanModeHook,
    WorkspacePathHook,
    build_chat_permissions,
    search_filter,
)
from hummingbird.app.chat_workbench import describe_surroundings
from hummingbird.app.console import SystemClock
from hummingbird.app.environment_secrets import environment_secrets, split_environment, tool_secret_values
from hummingbird.app.library import Agent
from hummingbird.app.model_choice import chat_model_chain, model_windows, price_overrides
from hummingbird.app.plugins import load_context_engine, plugin_hooks, plugin_tools
from hummingbird.app.sandboxes import SandboxChoice, resolve_sandbox
from hummingbird.app.session_catalog import FreshSessionSearch, SessionCatalog
from hummingbird.app.session_holder import TurnSessionHolder
from hummingbird.app.source_registry import build_source_settings, create_sources, mcp_server_settings
from hummingbird.app.stores import StatePaths, state_paths
from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.settings import ChatSettings
from hummingbird.core.errors import MissingSetting, UsageError
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.protocols.context_engine import ContextEngine
from hummingbird.core.protocols.interaction import Clarifier, PermissionAsker
from hummingbird.core.protocols.observer import Clock, RunObserver
from hummingbird.core.protocols.tools import DataSource, Tool
from hummingbird.core.sessions import SessionSubject as BegunFor
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.mcp import McpServerSettings
from hummingbird.mcp.client import McpServers
from hummingbird.sandboxes.host.terminal import HostTerminal, hide_process_environment
from hummingbird.sandboxes.host.tool_specs import EDIT_SPEC
from hummingbird.sandboxes.host.workspace import Workspace

PATIENCE_S = 1.0  # that a person waits before being told what for
WORKSPACE_SENTENCE_START = "The workspace is "
SANDBOX, TERMINAL, WORKSPACE, DELEGATE, MCP = "sandbox", "terminal", "workspace", "delegate", "mcp"
TOOLSETS = (
    *(SANDBOX, WORKSPACE, TERMINAL, "todo", "memory", "recall", DELEGATE, "clarify", "skill", MCP),
    *("gitlab", "konflux", "testing_farm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The options of a chat.

    `environment` is complete; tools get less of it. `toolsets` None means those of the configuration. `plan` and
    `accept_edits` choose the mode to begin in, `allow` and `deny` are rules like `terminal(git diff *)`. `max_usd` and
    `max_turns` take the place of the configuration's limits, and `instructions` join the prompt. With `titles`, a model
    names new sessions, unless the configuration forbids it.
    """

    configuration: Configuration
    environment: Mapping[str, str]
    workspace: Path
    chosen: SandboxChoice = field(default_factory=SandboxChoice)
    clock: Clock = field(default_factory=SystemClock)
    toolsets: Sequence[str] | None = None
    model: str = ""
    plan: bool = False
    accept_edits: bool = False
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    max_usd: float | None = None
    max_turns: int | None = None
    instructions: str = ""
    effort: str | None = None
    titles: bool = False
    asker: PermissionAsker | None = None
    clarifier: Clarifier | None = None
    on_event: RunObserver | None = None
    on_trouble: Callable[[str], None] = print


@dataclass(frozen=True, slots=True)
class ChatSubject:
    """The project and workflow that a session is about, if any.

    With `with_prompt`, the session uses the workflow's prompt and not only its sources.
    """

    project: str = ""
    workflow: str = ""
    with_prompt: bool = False


class ChatContext:
    """The parts of a chat that outlive a session; close it when the chat ends.

    Without a catalog (`past` None), other sessions cannot be searched.
    """

    def __init__(self, parts: ChatOptions, keeping: TurnSessionHolder, past: SessionCatalog | None) -> None:
        self.parts, self.session_holder, self._catalog = parts, keeping, past
        self._plugin_tools = plugin_tools()
        self.toolsets = _resolve_toolsets(parts, [tool.spec.toolset for tool in self._plugin_tools])
        self.places: StatePaths = state_paths(parts.configuration.settings, parts.environment)
        given, held_back = split_environment(parts.environment)
        self._run_environment = given
        self._secret_values = [*held_back, *tool_secret_values(parts.configuration, parts.environment)]
        self.secrets = environment_secrets(given, self._secret_values)
        state = self.places.state
        harmless = {name: value for name, value in given.items() if self.secrets.mask(value) == value}
        hide_process_environment()  # or commands could read the withheld variables from /proc of our process
        self.rules: SessionPermissions = build_chat_permissions(
            parts.configuration.chat,
            plan=parts.plan,
            asker=parts.asker,
            folder=state,
            clock=parts.clock,
            where=str(parts.workspace),
            accept_edits=parts.accept_edits,
            allow=parts.allow,
            deny=parts.deny,
        )
        assert isinstance(self.rules.rules, ChatRules)
        self.chat_rules: ChatRules = self.rules.rules
        if self.chat_rules.trouble:
            parts.on_trouble(self.chat_rules.trouble)
        own = (state, self.places.sessions)
        self.workspace = Workspace(parts.workspace, own, harmless, judged=True, showing=self._choose_files)
        self.rules = replace(self.rules, preview=self._preview_call)
        self.terminal = HostTerminal(parts.workspace, harmless)
        self.servers = McpServers(
            self._server_settings() if MCP in self.toolsets else (),
            harmless,
            mask=self.secrets.mask,
            ca_bundle=parts.configuration.settings.ca_bundle,
        )
        chat = parts.configuration.chat.memory
        self.room = MemoryBudget(chat.memory_char_limit, chat.user_char_limit)
        self._server_task: asyncio.Task[None] | None = None
        self._reported_trouble: set[str] = set()

    @property
    def gives_titles(self) -> bool:
        return self.parts.titles and self.parts.configuration.chat.titles

    async def wait_for_servers(self, *, telling: bool = False) -> None:
        """Wait until each MCP server is connected or reported as missing; connect only once.

        With `telling`, a person is waiting and is told so.
        """
        if self._server_task is None:
            self._server_task = asyncio.create_task(self._open_servers())
        if telling and not (await asyncio.wait({self._server_task}, timeout=PATIENCE_S))[0]:
            names = ", ".join(self.parts.configuration.chat.mcp_servers)
            self.parts.on_trouble(f"Waiting for servers of tools to answer ({names}); Ctrl-C gives the message back.")
        await asyncio.shield(self._server_task)

    async def _open_servers(self) -> None:
        await self.servers.open()
        self.report_trouble()

    def report_trouble(self) -> None:
        """Report trouble with MCP servers, each sentence once, also what happens later."""
        for sentence in self.servers.trouble:
            if sentence not in self._reported_trouble:
                self._reported_trouble.add(sentence)
                self.parts.on_trouble(sentence)

    async def close(self) -> None:
        if self._server_task is not None:
            self._server_task.cancel()
            await asyncio.wait({self._server_task})
        await asyncio.gather(self.terminal.close(), self.servers.close())

    def _choose_files(self, arguments: Mapping[str, Any], start: str) -> Callable[[str], bool] | None:
        """Return which files a search may show by the rules as they are now; None for all."""
        judge = search_filter(tuple(self.chat_rules))
        return None if judge is None else judge(arguments, start)

    async def _preview_call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
        """Return the diff of an edit, for the person who is asked about it. Raises CommandFailed if it would fail."""
        if spec.name != EDIT_SPEC.name:
            return ""
        old = arguments.get("old")
        return await asyncio.to_thread(
            self.workspace.preview_edit,
            str(arguments["path"]),
            None if old is None else str(old),
            str(arguments["new"]),
        )

    def load_knowledge(self, project: str) -> ChatKnowledge:
        return load_chat_knowledge(
            self.places.state, self.parts.workspace, open_memory(self.places.state, project), self.room, self.secrets
        )

    def create_agent(self, session_id: str, about: ChatSubject, ready: ChatKnowledge, *, sandbox: bool) -> Agent:
        """Create the agent of one session.

        Raises OperatorError for a model or setting that is missing.
        """
        parts, settings = self.parts, self.parts.configuration.settings
        chat = parts.configuration.chat
        primary, *others = chat_model_chain(
            parts.model or chat.model or settings.model, chat.fallback_providers, parts.environment
        )
        side = {task: [found.model or primary, *found.fallback_providers] for task, found in chat.auxiliary.items()}
        return Agent(
            primary,
            fallback_models=others,
            tools=self._collect_tools(about, ready),
            sources=self._open_sources(about),
            sandbox=resolve_sandbox(settings, parts.chosen) if sandbox and SANDBOX in self.toolsets else None,
            session_id=session_id,
            config=AgentConfig(
                effort=parts.effort,
                max_iterations=parts.max_turns or chat.max_turns,
                context_limit=chat.context_limit,
                model_windows=model_windows(settings.models),
                max_usd=settings.budgets.usd_per_run if parts.max_usd is None else parts.max_usd,
                max_usd_per_day=settings.budgets.usd_per_day,
                max_seconds=settings.budgets.seconds_per_run,
                grace_s=PROMPT_GRACE_S,
                model_regions=settings.model_regions,
                prices=price_overrides(settings.prices),
                ca_bundle=settings.ca_bundle,
                context=_create_context_engine(chat),
                auxiliary=side,
                hooks=[
                    WorkspacePathHook(self.workspace.canonical_path),
                    DangerousCommandHook(parts.workspace, parts.environment.get("HOME", "")),
                    PlanModeHook(lambda: self.chat_rules.mode is PermissionMode.PLAN),
                    *plugin_hooks(),
                ],
                permissions=self.rules,
                delegates=chat.delegation.max_concurrent if DELEGATE in self.toolsets else 0,
                delegate_iterations=chat.delegation.max_iterations,
                has_host_file=self.workspace.has_file,
                max_inline_bytes=settings.max_inline_size,
                exec_timeout_s=settings.sandbox.exec_timeout_seconds,
                on_event=parts.on_event,
                streaming=True,
                on_trouble=parts.on_trouble,
                environment=self._run_environment,
                secrets=self._secret_values,
                clock=parts.clock,
                project=about.project or str(parts.workspace),
                subject=BegunFor(about.workflow, about.project, folder=str(parts.workspace)),
                session_holder=self.session_holder,
                build_prompt=partial(self._build_prompt, ready.parts, about),
            ),
        )

    def _build_prompt(self, parts: PromptParts, about: ChatSubject, notes: str) -> str:
        return build_chat_prompt(self.complete_prompt_parts(parts, about, notes))

    @property
    def workspace_sentence(self) -> str:
        return f"{WORKSPACE_SENTENCE_START}{self.parts.workspace}." if WORKSPACE in self.toolsets else ""

    def complete_prompt_parts(self, parts: PromptParts, about: ChatSubject, notes: str) -> PromptParts:
        """Add workspace, project, workflow prompt and the notes of the tools to the prompt."""
        where = [self.workspace_sentence] if self.workspace_sentence else []
        if about.project:
            where.append(f"The conversation is about the GitLab project {about.project}.")
        applied = self._resolve_workflow(about) if about.with_prompt else None
        added = ["" if applied is None else applied.prompt.strip(), self.parts.instructions.strip()]
        base = "\n\n".join(filter(None, [parts.base, *added]))
        surroundings = describe_surroundings(self.parts.workspace, self.parts.clock.now())
        return replace(
            parts, base=base, surroundings=surroundings, tools="\n\n".join(filter(None, [" ".join(where), notes]))
        )

    def _collect_tools(self, about: ChatSubject, ready: ChatKnowledge) -> list[Tool]:
        entries, clock = self.session_holder.entries, self.parts.clock
        offered: list[Tool] = [
            *self.workspace.tools,
            *self.terminal.tools,
            TodoTool(entries),
            MemoryTool(open_memory(self.places.state, about.project), clock.now, self.room, self.secrets),
            RecallTool(None if self._catalog is None else FreshSessionSearch(self._catalog), entries, self.secrets),
            ClarifyTool(self.parts.clarifier),
            *([SkillTool(ready.skills, ready.listed_skills)] if ready.listed_skills else ()),
            *self.servers.tools,
            *self._plugin_tools,
        ]
        return [tool for tool in offered if tool.spec.toolset in self.toolsets]

    def _open_sources(self, about: ChatSubject) -> list[DataSource]:
        """Return the sources of the workflow on the project; report those that cannot be created."""
        applied = self._resolve_workflow(about)
        if applied is None:
            return []
        try:
            found = create_sources(
                build_source_settings(self.parts.configuration.settings, applied, self._run_environment),
                self._run_environment,
            )
        except MissingSetting as error:
            self.parts.on_trouble(f"There are no tools for {about.project}: {error}")
            return []
        return [source for source in found if {tool.spec.toolset for tool in source.tools} & set(self.toolsets)]

    def _resolve_workflow(self, about: ChatSubject) -> ResolvedWorkflow | None:
        configuration = self.parts.configuration
        if not about.project:
            return None
        if about.workflow in configuration.workflows:  # the workflow of an old session may have been removed
            return configuration.resolve(about.workflow, about.project)
        return next(iter(configuration.resolve_project(about.project)), None)

    def _server_settings(self) -> list[McpServerSettings]:
        """Return the settings of the configured MCP servers.

        Raises MissingSetting for a variable that is not set.
        """
        configuration = self.parts.configuration
        return [
            mcp_server_settings(configuration, self._run_environment, name) for name in configuration.chat.mcp_servers
        ]


def _resolve_toolsets(parts: ChatOptions, others: Sequence[str]) -> tuple[str, ...]:
    """Return the toolsets to use; `others` are those of plug-ins.

    Raises UsageError for an unknown one.
    """
    known = tuple(dict.fromkeys([*TOOLSETS, *others]))
    said = parts.configuration.chat.toolsets if parts.toolsets is None else parts.toolsets
    if said is None:
        return known
    if unknown := [name for name in said if name not in known]:
        raise UsageError(f"There is no toolset {unknown[0]!r}; there are: {', '.join(known)}.")
    return tuple(said)


def _create_context_engine(chat: ChatSettings) -> ContextEngine:
    compressing = chat.compression
    if chat.context == CompactEngine.name:
        return CompactEngine(compressing.threshold, compressing.protect_last_n)
    return load_context_engine(chat.context)
