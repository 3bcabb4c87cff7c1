"""The library's front door (C2): `Agent(...).chat(...)`, sync over an async core."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from hummingbird.adapters.models.prices import PriceOverride
from hummingbird.adapters.models.registry import NO_PRICES, Models
from hummingbird.adapters.sandboxes.registry import Wanted
from hummingbird.agent.interruptible import no_task_is_left
from hummingbird.agent.loop import Loop
from hummingbird.agent.making_room import SUMMARY, RoomMaker
from hummingbird.agent.prompts import system_prompt
from hummingbird.agent.setup import Setup
from hummingbird.agent.state import RunState
from hummingbird.agent.tools.bench import Bench
from hummingbird.agent.tools.clarify import Clarify
from hummingbird.agent.tools.delegate import Delegate, Record
from hummingbird.agent.tools.digested import DigestedLines
from hummingbird.agent.tools.permissions import Permissions
from hummingbird.agent.tools.registry import Toolbox, enabled
from hummingbird.assembly.benches import Benches, sandboxes_of
from hummingbird.assembly.callbacks import Callbacks
from hummingbird.assembly.ceilings import ceilings
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.delegating import present, sub_agent
from hummingbird.assembly.engines import engine_named
from hummingbird.assembly.keeping import FolderKeeping, Keeping
from hummingbird.assembly.plugins import plugin_hooks, plugin_tools
from hummingbird.assembly.results import as_result
from hummingbird.assembly.secrets import secrets_of
from hummingbird.assembly.waiting_line import WaitingLine
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.journal import EndReason, Entry
from hummingbird.domain.journal import Source as SaidBy
from hummingbird.domain.limits import (
    CHAT_ITERATIONS,
    EXEC_TIMEOUT_S,
    INTERRUPT_GRACE_S,
    MAX_INLINE_BYTES,
    SUBAGENT_ITERATIONS,
)
from hummingbird.domain.runs import Outcome
from hummingbird.domain.sessions import About
from hummingbird.domain.verdicts import Verdict
from hummingbird.ports.clock import Clock
from hummingbird.ports.context import ContextEngine
from hummingbird.ports.journal import Journal
from hummingbird.ports.observer import Observer
from hummingbird.ports.source import Source
from hummingbird.ports.tool import Hook, Tool

_log = logging.getLogger("hummingbird")


class Agent:
    """A conversation with one model and some tools, kept in a journal.

    `session_id` continues a session of `sessions_dir` (None: nothing is kept on disk); `keeping` stands for a
    `sessions_dir` of another kind. `instructions` joins the base rules in the system prompt. `sources` bring their
    tools, and what they know to be secret; they are closed with the agent. `on_event` sees every journal entry and
    delta as it happens. `plugins` adds installed third parties' tools and hooks. `max_usd_per_day` counts all agents of
    a `sessions_dir` and `project`. `about` is written down for whoever goes on with a session. `sandbox` names where
    commands may run (bubblewrap, podman, k8s, k8spool, or a `Wanted` with all there is to say): the agent gets
    sandbox_exec, and results too long to read go to files there; call `close` when you are done. `max_inline_bytes` is
    how long a result may be to stay, `exec_timeout_s` how long a command runs that asks for no other time.
    `permissions` says which calls run, which are asked about and which never run. `warns`: the model hears when a
    budget is nearly used up, as in workflows. `prices` and `ca_bundle` are for models; `secrets` are values that nobody
    may see besides those of the environment. `on_trouble` hears, in sentences, what could not be kept; with it, a run
    goes on without a journal that cannot be written. `context` says what a full context leads to: compact, wrap_up, or
    a third party's engine; `auxiliary` maps a side task (summary) to the models that do it. `callbacks` see what
    happens, one thing each, and answer questions. `delegates`: how many sub-agents may work at once, each for
    `delegate_iterations` turns; `on_host` says whether a name is a file that they may have made on this machine.
    `prompt` makes the system prompt of what the tools want said, in place of base rules and `instructions`. `judged`:
    what rules say of what its runs are about. `digested` gets the lines of what goes into files of the sandbox, so that
    they are known again. The sync methods are for programs without an event loop; inside one, await `achat`, `arun` and
    `ago_on`. Messages sent while a run is under way wait in line."""

    def __init__(
        self,
        model: str,
        *,
        tools: Iterable[Tool] = (),
        sources: Iterable[Source] = (),
        toolsets: Iterable[str] | None = None,
        instructions: str = "",
        fallback_models: Sequence[str] = (),
        session_id: str = "",
        sessions_dir: Path | str | None = None,
        keeping: Keeping | None = None,
        project: str = "default",
        about: About | None = None,
        max_iterations: int = CHAT_ITERATIONS,
        context_limit: int | None = None,
        max_usd: Decimal | float | None = None,
        max_usd_per_day: Decimal | float | None = None,
        max_seconds: float | None = None,
        warns: bool = False,
        streaming: bool = False,
        on_event: Observer | None = None,
        hooks: Iterable[Hook] = (),
        permissions: Permissions | None = None,
        sandbox: str | Wanted | None = None,
        max_inline_bytes: int = MAX_INLINE_BYTES,
        exec_timeout_s: float = EXEC_TIMEOUT_S,
        plugins: bool = False,
        base_url: str | None = None,
        api_mode: str | None = None,
        model_regions: Mapping[str, str] | None = None,
        prices: Mapping[str, PriceOverride] = NO_PRICES,
        ca_bundle: str = "",
        environment: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
        on_trouble: Callable[[str], None] | None = None,
        clock: Clock | None = None,
        context: str | ContextEngine = "compact",
        auxiliary: Mapping[str, Sequence[str]] = MappingProxyType({}),
        callbacks: Callbacks | None = None,
        delegates: int = 0,
        delegate_iterations: int = SUBAGENT_ITERATIONS,
        on_host: Callable[[str], bool] | None = None,
        prompt: Callable[[str], str] | None = None,
        digested: DigestedLines | None = None,
        grace_s: float = INTERRUPT_GRACE_S,
        judged: Verdict | None = None,
    ) -> None:
        found = dict(os.environ) if environment is None else environment
        self._clock = clock or SystemClock()
        folder = None if sessions_dir is None else Path(sessions_dir)
        self._keeping = keeping or FolderKeeping(folder, self._clock, on_trouble)
        limits = ceilings(
            max_iterations,
            context_limit,
            max_usd,
            max_usd_per_day,
            max_seconds,
            warns=warns,
            kept=self._keeping.spending is not None,
        )
        self._sources = list(sources)
        read = [tool for source in self._sources for tool in source.tools]
        self.delegate = self._made_delegate(delegates, delegate_iterations, on_host)
        views = callbacks or Callbacks()
        own = [*([self.delegate] if self.delegate else []), *([Clarify(views.clarifier)] if views.clarify else [])]
        offered = [*tools, *read, *own, *(plugin_tools() if plugins else ())]
        self._tools = enabled(offered, toolsets, found)
        self._hidden = [tool.spec.name for tool in offered]
        self._prompt = prompt or partial(system_prompt, workflow=instructions)
        toolbox = Toolbox(self._tools, hidden=self._hidden)
        self._models = Models(
            found,
            now=self._clock.now,
            model_regions=model_regions or {},
            price_overrides=prices,
            ca_bundle=ca_bundle or None,
        )
        self._resolve = partial(self._models.resolve, base_url=base_url, api_mode=api_mode)
        self._setup = Setup(
            models=[self._resolve(model), *map(self._models.resolve, fallback_models)],
            toolbox=toolbox,
            system=self._prompt(toolbox.notes),
            clock=self._clock,
            limits=limits,
            hooks=[*hooks, *(plugin_hooks() if plugins else ())],
            permissions=views.permissions(permissions),
            observers=[*([on_event] if on_event else []), *views.observers()],
            streaming=streaming,
            spending=self._keeping.spending,
            project=project,
            about=about or About(),
            secrets=secrets_of(found, [*secrets, *(value for source in self._sources for value in source.secrets)]),
            engine=engine_named(context) if isinstance(context, str) else context,
            side_models=list(map(self._models.resolve, auxiliary.get(SUMMARY, ()))),
            grace_s=grace_s,
            judged=judged,
        )
        self._equipment = self._setup, list(self._tools)
        self._bench: Bench | None = None
        self._benches = (
            None
            if sandbox is None
            else Benches(
                sandboxes_of(sandbox, found, self._clock),
                self._tools,
                self._setup.secrets,
                self._keeping.archives,
                on_trouble=on_trouble or _log.warning,
                max_inline_bytes=max_inline_bytes,
                exec_timeout_s=exec_timeout_s,
                digested=digested,
            )
        )
        self._well = False
        self.session_id = session_id or uuid4().hex
        self._journal: Journal | None = None
        self._loop: Loop | None = None
        self._known: RunState | None = None
        self._line = WaitingLine()
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Runner | None = None

    def chat(self, message: str) -> str:
        """The answer to a message; the conversation goes on with the next call."""
        return self._sync(self.arun(message)).text

    def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """One run with everything it brought. A given history, also an empty one, begins a new session with it."""
        return as_result(self._sync(self.arun(user_message, system_message, conversation_history, task_id)))

    def go_on(self) -> dict[str, Any]:
        """Finishes a run of this session whose process died, without a new message."""
        return as_result(self._sync(self.ago_on()))

    async def achat(self, message: str) -> str:
        return (await self.arun(message)).text

    async def arun(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
        *,
        run_id: str = "",
        source: SaidBy = SaidBy.USER,
    ) -> Outcome:
        """`run_id` names the run in the journal; `source` says whose the message is."""
        async with self._line:
            if conversation_history is not None and self._open_journal().entries():
                self.put_down()
                self.session_id = uuid4().hex
            history = conversation_history or ()
            first = partial(Loop.run, text=user_message, source=source, history=history, run_id=run_id)
            outcome = await self._with_loop(first, system_message, task_id)
            while outcome.undelivered and outcome.reason is not EndReason.INTERRUPTED:
                late = partial(Loop.run, text="\n\n".join(outcome.undelivered))  # too late: the next run answers it
                outcome = await self._with_loop(late, system_message, task_id)
            return outcome

    async def ago_on(self) -> Outcome:
        async with self._line:
            return await self._with_loop(Loop.go_on, None, None)

    def entries(self) -> Sequence[Entry]:
        """The session so far, as its journal has it."""
        return self._open_journal().entries()

    async def _with_loop(
        self, work: Callable[[Loop], Awaitable[Outcome]], system_message: str | None, task_id: str | None
    ) -> Outcome:
        setup = await self.equipped()
        system = setup.system if system_message is None else system_message
        setup = replace(setup, system=system, extras={"task_id": task_id or uuid4().hex})
        self._loop = Loop(self._open_journal(), setup, self.session_id, self._known)
        self._event_loop = asyncio.get_running_loop()
        self._well = False
        try:
            outcome = await work(self._loop)
            self._well = outcome.answered
            return outcome
        finally:
            self._known, self._loop, self._event_loop = self._loop.state, None, None

    async def equipped(self) -> Setup:
        """The set-up of this session, with its sandbox where there is one. Raises SandboxUnavailable."""
        if self._benches is None:
            self._equipment = self._setup, self._tools
            return self._setup
        bench = self._bench = await self._benches.at(self.session_id, self._open_journal().entries())
        tools = [*bench.tools, *self._tools]
        toolbox = Toolbox(tools, hidden=self._hidden)
        setup = replace(
            self._setup,
            toolbox=toolbox,
            system=self._prompt(toolbox.notes),
            shape=bench.shape,
            after_tools=bench.bench.checkpoint,
        )
        self._equipment = setup, tools
        return setup

    async def room(self, system: str | None = None) -> RoomMaker:
        """What makes room in the session's conversation, or takes a turn of it back. Between two runs."""
        setup = await self.equipped()
        frozen = replace(setup, system=setup.system if system is None else system)
        return Loop(self._open_journal(), frozen, known=self._known).room

    async def put_file(self, path: str, content: bytes) -> None:
        """Into the sandbox. Raises UsageFault where there is none, and what a sandbox raises."""
        await self.equipped()
        if self._bench is None:
            raise UsageFault("There is no sandbox to put it into; choose one with --sandbox, or send less.")
        async with self._bench.bench.using() as sandbox:
            await sandbox.write_file(path, content)

    def switch_model(self, name: str) -> str:
        """From the next run on. Its full name. Raises UnknownModel, MissingSetting."""
        primary = self._resolve(name)
        others = [model for model in self._setup.models[1:] if model.name != primary.name]
        self._setup = replace(self._setup, models=[primary, *others])
        return primary.name

    def know(self, state: RunState) -> None:
        """What somebody has gone through of the session already. It is the agent's from then on, which keeps it up to
        date; others only read it."""
        self._known = state

    @property
    def setup(self) -> Setup:
        """As it is equipped now."""
        return self._equipment[0]

    @property
    def tools(self) -> Sequence[Tool]:
        """Those that it has now; those of its sandbox from the first run on."""
        return self._equipment[1]

    def _made_delegate(self, at_once: int, iterations: int, on_host: Callable[[str], bool] | None) -> Delegate | None:
        def begin(observer: Observer, usd: Decimal | None, record: Record) -> Loop:
            assert self._loop is not None  # it is a tool that begins one
            return sub_agent(self._loop, self.tools, observer, usd, iterations, record=record)

        made = partial(Delegate, begin, exist=lambda paths: present(self._bench, paths, on_host))
        return made(at_once=at_once) if at_once else None

    def interrupt(self) -> None:
        """Stops the run under way; to be called on the event loop's thread (`interrupt_soon` from another one)."""
        if self._loop is not None:
            self._loop.interrupt()

    def interrupt_soon(self) -> None:
        """Stops the run under way, from any thread."""
        if (event_loop := self._event_loop) is not None:
            event_loop.call_soon_threadsafe(self.interrupt)

    def steer(self, message: str) -> None:
        """A message for the run under way, delivered at its next turn."""
        if self._loop is None:
            raise UsageFault("Nothing is running; use chat() to say something.")
        self._loop.steer(message)

    def close(self) -> None:
        """Returns also when a tool that was interrupted never ended: its event loop is then left behind."""
        if (runner := self._runner) is not None:
            self._runner = None
            runner.run(self._release())
            if runner.run(no_task_is_left()):
                runner.close()
        self.put_down()

    async def aclose(self) -> None:
        await self._release()
        self.put_down()

    async def _release(self) -> None:
        if self._benches is not None:
            await self._benches.close(success=self._well)
        for source in self._sources:
            await source.close()
        await self._models.close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sync(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(work)
        work.close()
        raise UsageFault("There is an event loop here already: await achat(), arun() or ago_on() instead.")

    def _open_journal(self) -> Journal:
        if self._journal is None:
            self._journal = self._keeping.journal(self.session_id)
        return self._journal

    def put_down(self) -> None:
        """Lets go of the session's journal; the next use opens it again."""
        if self._journal is not None:
            self._keeping.give_back(self._journal)
            self._journal = None
