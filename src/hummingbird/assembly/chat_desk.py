"""Everything a chat is made of that outlives a session of it: the workspace, the terminal, servers of tools, memory,
the store of sessions and its index. `agent` makes the agent of one session.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from hummingbird.adapters.host.sealed import seal
from hummingbird.adapters.host.terminal import Terminal
from hummingbird.adapters.host.workspace import Workspace
from hummingbird.adapters.mcp.servers import McpServers
from hummingbird.adapters.mcp.settings import ServerSettings
from hummingbird.adapters.sources.registry import sources
from hummingbird.agent.chat_prompt import PromptParts, chat_prompt
from hummingbird.agent.compaction import Compacting
from hummingbird.agent.tools.clarify import Clarify
from hummingbird.agent.tools.memory import MemoryTool
from hummingbird.agent.tools.permissions import Permissions
from hummingbird.agent.tools.recall import Recall
from hummingbird.agent.tools.skill import SkillTool
from hummingbird.agent.tools.todo import TodoTool
from hummingbird.assembly.chat_mind import Mind, memory_of, mind
from hummingbird.assembly.chat_rules import NoCatastrophes, PlainPaths, PlanOnly, permissions, searchable
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.declaring import declared
from hummingbird.assembly.engines import engine_named
from hummingbird.assembly.library import Agent
from hummingbird.assembly.models import chat_chain, price_overrides
from hummingbird.assembly.places import Places, places
from hummingbird.assembly.plugins import plugin_hooks, plugin_tools
from hummingbird.assembly.sandboxes import Chosen, wanted_sandbox
from hummingbird.assembly.secrets import for_runs, secrets_of, tool_secrets
from hummingbird.assembly.session_desk import Fresh, SessionDesk
from hummingbird.assembly.tool_servers import server_settings
from hummingbird.assembly.turn_keeping import TurnKeeping
from hummingbird.config.chat import ChatSettings
from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.chat_limits import PATIENCE_S, PROMPT_GRACE_S
from hummingbird.domain.errors import MissingSetting, UsageFault
from hummingbird.domain.memory import Room
from hummingbird.domain.sessions import About as BegunFor
from hummingbird.ports.clock import Clock
from hummingbird.ports.context import ContextEngine
from hummingbird.ports.observer import Observer
from hummingbird.ports.permissions import Asker
from hummingbird.ports.person import Clarifier
from hummingbird.ports.source import Source
from hummingbird.ports.tool import Tool

WHEREABOUTS = "The workspace is "
SANDBOX, TERMINAL, WORKSPACE, DELEGATE, MCP = "sandbox", "terminal", "workspace", "delegate", "mcp"
TOOLSETS = (
    *(SANDBOX, WORKSPACE, TERMINAL, "todo", "memory", "recall", DELEGATE, "clarify", "skill", MCP),
    *("gitlab", "konflux", "testing_farm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatParts:
    """`environment` is the whole one; tools are given less. `toolsets` None: as the configuration says."""

    configuration: Configuration
    environment: Mapping[str, str]
    workspace: Path
    chosen: Chosen = field(default_factory=Chosen)
    clock: Clock = field(default_factory=SystemClock)
    toolsets: Sequence[str] | None = None
    model: str = ""
    plan: bool = False
    asker: Asker | None = None
    clarifier: Clarifier | None = None
    on_event: Observer | None = None
    on_trouble: Callable[[str], None] = print


@dataclass(frozen=True, slots=True)
class About:
    """What a session is about, where it is about a project. `prompted`: the workflow's prompt is wanted, not only what
    it reads from."""

    project: str = ""
    workflow: str = ""
    prompted: bool = False


class ChatDesk:
    """`sessions` None: no index, so nothing is found in other sessions. Close it when the chat ends."""

    def __init__(self, parts: ChatParts, keeping: TurnKeeping, past: SessionDesk | None) -> None:
        self.parts, self.keeping, self._past = parts, keeping, past
        self._others = plugin_tools()
        self.toolsets = _toolsets(parts, [tool.spec.toolset for tool in self._others])
        self.places: Places = places(parts.configuration.settings, parts.environment)
        given, held_back = for_runs(parts.environment)
        self._given = given
        self._hidden = [*held_back, *tool_secrets(parts.configuration, parts.environment)]
        self.secrets = secrets_of(given, self._hidden)
        state = self.places.state
        harmless = {name: value for name, value in given.items() if self.secrets.mask(value) == value}
        seal()  # what is held back from commands is not to be found in our own process either
        self.rules: Permissions = permissions(
            parts.configuration.chat, plan=parts.plan, asker=parts.asker, folder=state, clock=parts.clock
        )
        own, showing = (state, self.places.sessions), searchable(self.rules.rules)
        self.workspace = Workspace(parts.workspace, own, harmless, judged=True, showing=showing)
        self.terminal = Terminal(parts.workspace, harmless)
        self.servers = McpServers(
            self._servers() if MCP in self.toolsets else (),
            harmless,
            mask=self.secrets.mask,
            ca_bundle=parts.configuration.settings.ca_bundle,
        )
        chat = parts.configuration.chat.memory
        self.room = Room(chat.memory_char_limit, chat.user_char_limit)
        self._ready: asyncio.Task[None] | None = None
        self._told: set[str] = set()

    async def ready(self, *, telling: bool = False) -> None:
        """Servers of tools are there, or are told to be missing. Waited for once, however often it is asked. `telling`:
        somebody waits for it, and hears why."""
        if self._ready is None:
            self._ready = asyncio.create_task(self._opened())
        if telling and not (await asyncio.wait({self._ready}, timeout=PATIENCE_S))[0]:
            names = ", ".join(self.parts.configuration.chat.mcp_servers)
            self.parts.on_trouble(f"Waiting for servers of tools to answer ({names}); Ctrl-C gives the message back.")
        await asyncio.shield(self._ready)

    async def _opened(self) -> None:
        await self.servers.open()
        self.tell_trouble()

    def tell_trouble(self) -> None:
        """With servers of tools; each sentence once, also when it comes later."""
        for sentence in self.servers.trouble:
            if sentence not in self._told:
                self._told.add(sentence)
                self.parts.on_trouble(sentence)

    async def close(self) -> None:
        if self._ready is not None:
            self._ready.cancel()
            await asyncio.wait({self._ready})
        await asyncio.gather(self.terminal.close(), self.servers.close())

    def mind(self, project: str) -> Mind:
        return mind(
            self.places.state, self.parts.workspace, memory_of(self.places.state, project), self.room, self.secrets
        )

    def agent(self, session_id: str, about: About, ready: Mind, *, sandbox: bool) -> Agent:
        """Raises OperatorError for a model or a setting that is missing."""
        parts, settings = self.parts, self.parts.configuration.settings
        chat = parts.configuration.chat
        primary, *others = chat_chain(
            parts.model or chat.model or settings.model, chat.fallback_providers, parts.environment
        )
        side = {task: [found.model or primary, *found.fallback_providers] for task, found in chat.auxiliary.items()}
        return Agent(
            primary,
            fallback_models=others,
            tools=self._tools(about, ready),
            sources=self._sources(about),
            session_id=session_id,
            keeping=self.keeping,
            project=about.project or str(parts.workspace),
            about=BegunFor(about.workflow, about.project),
            max_iterations=chat.max_turns,
            max_usd=settings.budgets.usd_per_run,
            max_usd_per_day=settings.budgets.usd_per_day,
            max_seconds=settings.budgets.seconds_per_run,
            streaming=True,
            on_event=parts.on_event,
            hooks=[
                PlainPaths(self.workspace.plain),
                NoCatastrophes(parts.workspace, parts.environment.get("HOME", "")),
                *([PlanOnly()] if parts.plan else []),
                *plugin_hooks(),
            ],
            permissions=self.rules,
            sandbox=wanted_sandbox(settings, parts.chosen) if sandbox and SANDBOX in self.toolsets else None,
            max_inline_bytes=settings.max_inline_size,
            exec_timeout_s=settings.sandbox.exec_timeout_seconds,
            model_regions=settings.model_regions,
            prices=price_overrides(settings.prices),
            ca_bundle=settings.ca_bundle,
            environment=self._given,
            secrets=self._hidden,
            on_trouble=parts.on_trouble,
            clock=parts.clock,
            context=_engine(chat),
            auxiliary=side,
            delegates=chat.delegation.max_concurrent if DELEGATE in self.toolsets else 0,
            delegate_iterations=chat.delegation.max_iterations,
            on_host=self.workspace.has,
            prompt=partial(self._prompt, ready.parts, about),
            grace_s=PROMPT_GRACE_S,
        )

    def _prompt(self, parts: PromptParts, about: About, notes: str) -> str:
        return chat_prompt(self.prompt_parts(parts, about, notes))

    @property
    def whereabouts(self) -> str:
        return f"{WHEREABOUTS}{self.parts.workspace}." if WORKSPACE in self.toolsets else ""

    def prompt_parts(self, parts: PromptParts, about: About, notes: str) -> PromptParts:
        """With where it all happens, which every tool's notes are about."""
        where = [self.whereabouts] if self.whereabouts else []
        if about.project:
            where.append(f"The conversation is about the GitLab project {about.project}.")
        applied = self._applied(about) if about.prompted else None
        base = parts.base if applied is None else f"{parts.base}\n\n{applied.prompt.strip()}"
        return replace(parts, base=base, tools="\n\n".join(filter(None, [" ".join(where), notes])))

    def _tools(self, about: About, ready: Mind) -> list[Tool]:
        entries, clock = self.keeping.entries, self.parts.clock
        offered: list[Tool] = [
            *self.workspace.tools,
            *self.terminal.tools,
            TodoTool(entries),
            MemoryTool(memory_of(self.places.state, about.project), clock.now, self.room, self.secrets),
            Recall(None if self._past is None else Fresh(self._past), entries, self.secrets),
            Clarify(self.parts.clarifier),
            *([SkillTool(ready.skills, ready.listed)] if ready.listed else ()),
            *self.servers.tools,
            *self._others,
        ]
        return [tool for tool in offered if tool.spec.toolset in self.toolsets]

    def _sources(self, about: About) -> list[Source]:
        """Of the workflow on the project; those that cannot be had are told, and missing."""
        applied = self._applied(about)
        if applied is None:
            return []
        try:
            found = sources(declared(self.parts.configuration.settings, applied, self._given), self._given)
        except MissingSetting as error:
            self.parts.on_trouble(f"There are no tools for {about.project}: {error}")
            return []
        return [source for source in found if {tool.spec.toolset for tool in source.tools} & set(self.toolsets)]

    def _applied(self, about: About) -> Applied | None:
        configuration = self.parts.configuration
        if not about.project:
            return None
        if about.workflow in configuration.workflows:  # one of an old session may be gone
            return configuration.applied(about.workflow, about.project)
        return next(iter(configuration.on(about.project)), None)

    def _servers(self) -> list[ServerSettings]:
        """Raises MissingSetting for a variable that is not set."""
        configuration = self.parts.configuration
        return [server_settings(configuration, self._given, name) for name in configuration.chat.mcp_servers]


def _toolsets(parts: ChatParts, others: Sequence[str]) -> tuple[str, ...]:
    """`others`: those of plug-ins. Raises UsageFault."""
    known = tuple(dict.fromkeys([*TOOLSETS, *others]))
    said = parts.configuration.chat.toolsets if parts.toolsets is None else parts.toolsets
    if said is None:
        return known
    if unknown := [name for name in said if name not in known]:
        raise UsageFault(f"There is no toolset {unknown[0]!r}; there are: {', '.join(known)}.")
    return tuple(said)


def _engine(chat: ChatSettings) -> ContextEngine:
    compressing = chat.compression
    if chat.context == Compacting.name:
        return Compacting(compressing.threshold, compressing.protect_last_n)
    return engine_named(chat.context)
