"""The Python library: `Agent(...).chat(...)`, synchronous methods over an asynchronous core."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from hummingbird.agent.budget import context_ceiling
from hummingbird.agent.interrupts import cancel_other_tasks
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.prompts import build_system_prompt
from hummingbird.agent.run_state import RunState
from hummingbird.agent.session_compactor import SUMMARY_PURPOSE, SessionCompactor
from hummingbird.agent.session_sandbox import SessionSandbox, has_used_sandbox
from hummingbird.agent.tools.chat_tools import ClarifyTool
from hummingbird.agent.tools.delegate import DelegateTool, RecordEntry
from hummingbird.agent.tools.registry import Toolbox, select_tools
from hummingbird.agent.tools.results import InlineShape
from hummingbird.agent.tools.sandbox_tools import SANDBOX_TOOLS, SandboxToolset, create_sandbox_tools
from hummingbird.agent.tools.spill import LineDigests
from hummingbird.app.agent_config import AgentConfig
from hummingbird.app.callbacks import Callbacks
from hummingbird.app.clock import SystemClock
from hummingbird.app.environment_secrets import environment_secrets
from hummingbird.app.plugins import load_context_engine, plugin_hooks, plugin_tools
from hummingbird.app.session_holder import FolderSessionHolder
from hummingbird.app.sub_agents import create_sub_agent, existing_files
from hummingbird.config.configuration import limit_inline_bytes
from hummingbird.core.errors import UsageError
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import EndReason, JournalEntry
from hummingbird.core.journal import MessageSource as SaidBy
from hummingbird.core.limits import EXEC_TIMEOUT_S, MAX_INLINE_BYTES
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import Notice, message_to_chat
from hummingbird.core.protocols.observer import Clock, RunObserver
from hummingbird.core.protocols.sandbox import ArchiveStore
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.protocols.tools import DataSource, Tool
from hummingbird.core.sessions import SessionSubject
from hummingbird.models.registry import ModelRegistry
from hummingbird.sandboxes.registry import SandboxOptions, SandboxRegistry

_log = logging.getLogger("hummingbird")


class FairLock:
    """Let one run after the other, in the order in which they were asked for.

    Unlike asyncio.Lock it is not bound to the first event loop that waited: an agent may outlive several.
    """

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake_next()  # it was our turn already: pass it on
            else:
                self._waiting.remove(turn)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._wake_next()

    def _wake_next(self) -> None:
        """Pass the lock on without releasing it, so that nobody else can take it in between."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


def outcome_to_dict(outcome: RunOutcome) -> dict[str, Any]:
    """Return what `run_conversation` gives to its caller.

    Calls, usage and cost are those of the session so far, so that they belong together. `messages` leaves out the
    notices that the loop itself added. `undelivered` are messages that came too late for an interrupted run.
    """
    bill = outcome.bill
    return {
        "final_response": outcome.text,
        "messages": [message_to_chat(message) for message in outcome.messages if not isinstance(message, Notice)],
        "api_calls": bill.answered,
        "completed": outcome.answered,
        "exit_reason": outcome.reason.value,
        "usage": {
            "input_tokens": bill.usage.context,
            "fresh_tokens": bill.usage.fresh,
            "cache_read_tokens": bill.usage.cache_read,
            "cache_write_tokens": bill.usage.cache_write,
            "output_tokens": bill.usage.output,
            "reasoning_tokens": bill.usage.reasoning,
        },
        "cost": None if bill.cost_usd is None else float(bill.cost_usd),
        "session_id": outcome.session_id,
        "undelivered": list(outcome.undelivered),
    }


def create_sandboxes(sandbox: str | SandboxOptions, environment: Mapping[str, str], clock: Clock) -> SandboxRegistry:
    """Return the registry that starts the chosen kind of sandbox.

    Raises UsageError for an unknown kind.
    """
    wanted = SandboxOptions(sandbox) if isinstance(sandbox, str) else sandbox
    return SandboxRegistry(wanted, environment, clock, _log.warning)


class SessionBenchHolder:
    """Holds the sandbox and its tools for the current session, and closes them when another session begins.

    `tools` are the other tools of the session. `on_trouble` hears, in sentences, what failed beside the run.
    """

    def __init__(
        self,
        sandboxes: SandboxRegistry,
        tools: Sequence[Tool],
        secrets: Secrets,
        archives: ArchiveStore | None,
        *,
        on_trouble: Callable[[str], None],
        max_inline_bytes: int = MAX_INLINE_BYTES,
        exec_timeout_s: float = EXEC_TIMEOUT_S,
        digested: LineDigests | None = None,
    ) -> None:
        self._sandboxes, self._tools, self._secrets = sandboxes, tools, secrets
        self._archives, self._on_trouble = archives, on_trouble
        self._max_inline_bytes, self._exec_timeout_s = max_inline_bytes, exec_timeout_s
        self._digested = digested
        self._session_id = ""
        self._bench: SandboxToolset | None = None

    async def bench_for(self, session_id: str, entries: Sequence[JournalEntry]) -> SandboxToolset:
        """Return the session's bench, the same one until the session changes.

        Raises SandboxUnavailable.
        """
        if self._bench is None or self._session_id != session_id:
            await self.close_bench(success=True)
            await self._sandboxes.open()
            self._bench, self._session_id = self._create_bench(session_id, entries), session_id
        return self._bench

    def _create_bench(self, session_id: str, entries: Sequence[JournalEntry]) -> SandboxToolset:
        workbench = SessionSandbox(
            session_id,
            lambda: self._sandboxes.make(session_id),
            self._archives,
            earlier=has_used_sandbox(entries, SANDBOX_TOOLS),
            on_trouble=self._on_trouble,
        )
        return create_sandbox_tools(
            workbench,
            self._tools,
            self._secrets,
            entries=entries,
            max_inline_bytes=self._max_inline_bytes,
            exec_timeout_s=self._exec_timeout_s,
            digested=self._digested,
        )

    async def close_bench(self, *, success: bool) -> None:
        bench, self._bench = self._bench, None
        if bench is not None:
            await bench.sandbox.finish(success)

    async def close(self, *, success: bool) -> None:
        """Save the sandbox's files and remove it; after a success it may be left for reuse where that is configured."""
        await self.close_bench(success=success)
        await self._sandboxes.close()


class Agent:
    """A conversation with one model and some tools, recorded in a journal.

    Call `close` when you are done, or use the agent in a `with` statement. The synchronous methods are for programs
    without an event loop; inside one, await `achat`, `arun` and `ago_on`. Messages that are sent while a run is active
    wait in line.

    Args:
        model: The primary model, `provider:model`.
        tools: What the agent can call.
        sources: Bring their tools, and the values that they know to be secret; they are closed with the agent.
        sandbox: Where commands run: bubblewrap, podman, k8s, k8spool, or `SandboxOptions` with all details. The agent
            then has the tool sandbox_exec, and results that are too long to read go to files of the sandbox.
        instructions: Joins the base rules in the system prompt.
        fallback_models: Are asked in this order when a model fails.
        sessions_dir: The folder of sessions; None keeps them in memory.
        session_id: Resumes that session of `sessions_dir`.
        config: Everything else; see `AgentConfig`.
    """

    def __init__(
        self,
        model: str,
        *,
        tools: Iterable[Tool] = (),
        sources: Iterable[DataSource] = (),
        sandbox: str | SandboxOptions | None = None,
        instructions: str = "",
        fallback_models: Sequence[str] = (),
        sessions_dir: Path | str | None = None,
        session_id: str = "",
        config: AgentConfig | None = None,
    ) -> None:
        config = config or AgentConfig()
        environment = dict(os.environ) if config.environment is None else config.environment
        self._clock = config.clock or SystemClock()
        folder = None if sessions_dir is None else Path(sessions_dir)
        self._session_holder = config.session_holder or FolderSessionHolder(folder, self._clock, config.on_trouble)
        limits = config.build_run_limits(records_spending=self._session_holder.spending is not None)

        self._sources = list(sources)
        source_tools = [tool for source in self._sources for tool in source.tools]
        self.delegate = self._create_delegate(config.delegates, config.delegate_iterations, config.has_host_file)
        callbacks = config.callbacks or Callbacks()
        own: list[Tool] = [self.delegate] if self.delegate else []
        if callbacks.clarify:
            own.append(ClarifyTool(callbacks.clarifier))
        offered = [*tools, *source_tools, *own, *(plugin_tools() if config.plugins else ())]
        self._tools = select_tools(offered, config.toolsets, environment)
        self._offered_names = [tool.spec.name for tool in offered]
        self._prompt = config.build_prompt or partial(build_system_prompt, workflow=instructions)
        toolbox = Toolbox(self._tools, hidden=self._offered_names)

        self._models = ModelRegistry(
            environment,
            now=self._clock.now,
            model_regions=config.model_regions,
            price_overrides=config.prices,
            windows=config.model_windows,
            ca_bundle=config.ca_bundle or None,
        )
        self._resolve = partial(self._models.resolve, base_url=config.base_url, api_mode=config.api_mode)
        source_secrets = [value for source in self._sources for value in source.secrets]
        context = config.context
        models = [self._resolve(model), *map(self._models.resolve, fallback_models)]
        secrets = environment_secrets(environment, [*config.secrets, *source_secrets])
        window = min(context_ceiling(limits, one.context_tokens) for one in models)
        inline_bytes = limit_inline_bytes(config.max_inline_bytes, window)
        self._setup = LoopConfig(
            models=models,
            toolbox=toolbox,
            system=self._prompt(toolbox.notes),
            clock=self._clock,
            limits=limits,
            hooks=[*config.hooks, *(plugin_hooks() if config.plugins else ())],
            permissions=callbacks.permissions_with_approval(config.permissions),
            observers=[*([config.on_event] if config.on_event else []), *callbacks.observers()],
            streaming=config.streaming,
            spending=self._session_holder.spending,
            project=config.project,
            about=config.subject or SessionSubject(),
            secrets=secrets,
            shape=InlineShape(secrets, inline_bytes),
            engine=load_context_engine(context) if isinstance(context, str) else context,
            side_models=list(map(self._models.resolve, config.auxiliary.get(SUMMARY_PURPOSE, ()))),
            grace_s=config.grace_s,
            verdict=config.verdict,
        )
        self._equipment = self._setup, list(self._tools)

        self._bench: SandboxToolset | None = None
        self._bench_holder: SessionBenchHolder | None = None
        if sandbox is not None:
            self._bench_holder = SessionBenchHolder(
                create_sandboxes(sandbox, environment, self._clock),
                self._tools,
                self._setup.secrets,
                self._session_holder.archives,
                on_trouble=config.on_trouble or _log.warning,
                max_inline_bytes=inline_bytes,
                exec_timeout_s=config.exec_timeout_s,
                digested=config.line_digests,
            )
        self._last_run_answered = False
        self.session_id = session_id or uuid4().hex
        self._journal: Journal | None = None
        self._loop: AgentLoop | None = None
        self._state: RunState | None = None
        self._run_lock = FairLock()
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Runner | None = None

    def chat(self, message: str) -> str:
        """Return the answer to a message; the next call continues the conversation."""
        return self._run_sync(self.arun(message)).text

    def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """Run once and return the answer with messages, usage and cost.

        A history, even an empty one, begins a new session with it.
        """
        return outcome_to_dict(self._run_sync(self.arun(user_message, system_message, conversation_history, task_id)))

    def go_on(self) -> dict[str, Any]:
        """Finish a run of this session whose process died, without a new message."""
        return outcome_to_dict(self._run_sync(self.ago_on()))

    async def achat(self, message: str) -> str:
        """Return the answer to a message, like `chat`."""
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
    ) -> RunOutcome:
        """Run once, like `run_conversation`.

        `run_id` names the run in the journal; `source` says who wrote the message.
        """
        async with self._run_lock:
            if conversation_history is not None and self._open_journal().entries():
                self.close_journal()
                self.session_id = uuid4().hex
            history = conversation_history or ()
            first = partial(AgentLoop.run, text=user_message, source=source, history=history, run_id=run_id)
            outcome = await self._run_loop(first, system_message, task_id)
            while outcome.undelivered and outcome.reason is not EndReason.INTERRUPTED:
                # these messages came too late for the run, so another run answers them
                late = partial(AgentLoop.run, text="\n\n".join(outcome.undelivered))
                outcome = await self._run_loop(late, system_message, task_id)
            return outcome

    async def ago_on(self) -> RunOutcome:
        """Finish a run of this session whose process died, like `go_on`."""
        async with self._run_lock:
            return await self._run_loop(AgentLoop.resume, None, None)

    def entries(self) -> Sequence[JournalEntry]:
        """Return the journal entries of the session so far."""
        return self._open_journal().entries()

    async def _run_loop(
        self, work: Callable[[AgentLoop], Awaitable[RunOutcome]], system_message: str | None, task_id: str | None
    ) -> RunOutcome:
        setup = await self.prepare_setup()
        system = setup.system if system_message is None else system_message
        setup = replace(setup, system=system, extras={"task_id": task_id or uuid4().hex})
        self._loop = AgentLoop(self._open_journal(), setup, self.session_id, self._state)
        self._event_loop = asyncio.get_running_loop()
        self._last_run_answered = False
        try:
            outcome = await work(self._loop)
            self._last_run_answered = outcome.answered
            return outcome
        finally:
            self._state, self._loop, self._event_loop = self._loop.state, None, None

    async def prepare_setup(self) -> LoopConfig:
        """Return the loop's configuration for this session, and start the sandbox if there is to be one.

        Raises SandboxUnavailable.
        """
        if self._bench_holder is None:
            self._equipment = self._setup, self._tools
            return self._setup
        bench = self._bench = await self._bench_holder.bench_for(self.session_id, self._open_journal().entries())
        tools = [*bench.tools, *self._tools]
        toolbox = Toolbox(tools, hidden=self._offered_names)
        setup = replace(
            self._setup,
            toolbox=toolbox,
            system=self._prompt(toolbox.notes),
            shape=bench.shape,
            after_tools=bench.sandbox.checkpoint,
        )
        self._equipment = setup, tools
        return setup

    async def open_compactor(self, system: str | None = None) -> SessionCompactor:
        """Return what compacts the conversation or takes back a turn; to be used between two runs."""
        setup = await self.prepare_setup()
        frozen = replace(setup, system=setup.system if system is None else system)
        return AgentLoop(self._open_journal(), frozen, known=self._state).compactor

    async def put_file(self, path: str, content: bytes) -> None:
        """Write a file into the sandbox.

        Raises UsageError if there is none, and what the sandbox raises.
        """
        await self.prepare_setup()
        if self._bench is None:
            raise UsageError("There is no sandbox to put it into; choose one with --sandbox, or send less.")
        async with self._bench.sandbox.use() as sandbox:
            await sandbox.write_file(path, content)

    def switch_model(self, name: str) -> str:
        """Use another model from the next run on, and return its full name.

        Raises UnknownModel and MissingSetting.
        """
        primary = self._resolve(name)
        others = [model for model in self._setup.models[1:] if model.name != primary.name]
        self._setup = replace(self._setup, models=[primary, *others])
        return primary.name

    def use_state(self, state: RunState) -> None:
        """Take over a state that was already computed from the session, which saves computing it again.

        The agent keeps it up to date from then on; others may only read it.
        """
        self._state = state

    @property
    def setup(self) -> LoopConfig:
        """The loop's configuration as it is now."""
        return self._equipment[0]

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the agent has now; those of its sandbox are there from the first run on."""
        return self._equipment[1]

    def _create_delegate(
        self, at_once: int, iterations: int, on_host: Callable[[str], bool] | None
    ) -> DelegateTool | None:
        def begin(observer: RunObserver, usd: Decimal | None, record: RecordEntry) -> AgentLoop:
            assert self._loop is not None  # only a tool of a running loop calls this
            return create_sub_agent(self._loop, self.tools, observer, usd, iterations, record=record)

        made = partial(DelegateTool, begin, exist=lambda paths: existing_files(self._bench, paths, on_host))
        return made(at_once=at_once) if at_once else None

    def interrupt(self) -> None:
        """Stop the active run. Call it on the event loop's thread; use `interrupt_soon` on any other."""
        if self._loop is not None:
            self._loop.interrupt()

    def interrupt_soon(self) -> None:
        """Stop the active run, from any thread."""
        if (event_loop := self._event_loop) is not None:
            event_loop.call_soon_threadsafe(self.interrupt)

    def steer(self, message: str) -> None:
        """Deliver a message to the active run at its next turn.

        Raises UsageError if nothing is running.
        """
        if self._loop is None:
            raise UsageError("Nothing is running; use chat() to say something.")
        self._loop.steer(message)

    def close(self) -> None:
        """Close sandbox, sources, models and journal.

        Returns even if an interrupted tool never ends: its event loop is then abandoned.
        """
        if (runner := self._runner) is not None:
            self._runner = None
            runner.run(self._release())
            if runner.run(cancel_other_tasks()):
                runner.close()
        self.close_journal()

    async def aclose(self) -> None:
        """Close sandbox, sources, models and journal, inside an event loop."""
        await self._release()
        self.close_journal()

    async def _release(self) -> None:
        if self._bench_holder is not None:
            await self._bench_holder.close(success=self._last_run_answered)
        for source in self._sources:
            await source.close()
        await self._models.close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_sync(self, work: Coroutine[Any, Any, RunOutcome]) -> RunOutcome:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(work)
        work.close()
        raise UsageError("There is an event loop here already: await achat(), arun() or ago_on() instead.")

    def _open_journal(self) -> Journal:
        if self._journal is None:
            self._journal = self._session_holder.open_journal(self.session_id)
        return self._journal

    def close_journal(self) -> None:
        """Release the session's journal; the next use opens it again."""
        if self._journal is not None:
            self._session_holder.release_journal(self._journal)
            self._journal = None
