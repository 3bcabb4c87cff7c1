"""The Python library: `Agent(...).chat(...)`, synchronous methods over an asynchronous core."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, overload
from uuid import uuid4

from hummingbird.agent.budget import context_ceiling
from hummingbird.agent.interrupts import cancel_other_tasks
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.run_state import RunState
from hummingbird.agent.session_compactor import SUMMARY_PURPOSE, SessionCompactor
from hummingbird.agent.tools.chat_tools import ClarifyTool
from hummingbird.agent.tools.delegate import DelegateTool, RecordEntry
from hummingbird.agent.tools.registry import Toolbox, select_tools
from hummingbird.agent.tools.results import InlineShape
from hummingbird.agent.tools.sandbox_tools import SandboxToolset
from hummingbird.agent.tools.typed_function import as_tool
from hummingbird.app.agent_config import (
    AgentConfig,
    check_sequence,
    choose_permissions,
    choose_prompt,
    create_own_tools,
)
from hummingbird.app.callbacks import Callbacks, ObserverGuard
from hummingbird.app.console import SystemClock
from hummingbird.app.environment_secrets import environment_secrets
from hummingbird.app.plugins import load_context_engine, plugin_hooks, plugin_tools
from hummingbird.app.run_result import (
    RunResult,
    answer_text,
    build_run_result,
    chat_messages,
    failure_sentence,
    run_for_output,
)
from hummingbird.app.session_bench import LOG, FairLock, SessionBenchHolder, create_sandboxes
from hummingbird.app.session_holder import FolderSessionHolder, check_known_session
from hummingbird.app.sub_agents import create_sub_agent, existing_files
from hummingbird.config.configuration import limit_inline_bytes
from hummingbird.core.errors import RunFailed, UsageError
from hummingbird.core.events import EntryRecorded, ReasoningDelta, RunEvent, RunOutcome, TextDelta
from hummingbird.core.journal import EndReason, JournalEntry, ToolFinished, ToolStarted
from hummingbird.core.journal import MessageSource as SaidBy
from hummingbird.core.limits import MAX_OUTPUT_TOKENS
from hummingbird.core.messages import IMAGE_BYTES, ImagePart, make_image
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.protocols.tools import DataSource, Tool
from hummingbird.core.sessions import SessionSubject
from hummingbird.core.text import shorten_line
from hummingbird.models.model_names import api_key_variable
from hummingbird.models.registry import ModelRegistry
from hummingbird.models.wire_format import ModelSampling
from hummingbird.sandboxes.registry import SandboxOptions

ResultT = TypeVar("ResultT")
StreamEvent: TypeAlias = TextDelta | ReasoningDelta | ToolStarted | ToolFinished | RunResult[str]

# The agents whose runs led to the code that asks: a tool may not wait for the agent that waits for it.
_RUNNING_HERE: ContextVar[frozenset[int]] = ContextVar("hummingbird_running_here", default=frozenset())


@dataclass(slots=True)
class _RunWatch:
    """What one run shows to its caller: its entries, and each event as it happens."""

    tell: Callable[[RunEvent], None] | None = None
    entries: list[JournalEntry] = field(default_factory=list)

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            self.entries.append(event.entry)
        if self.tell is not None:
            self.tell(event)


def outcome_to_dict(outcome: RunOutcome) -> dict[str, Any]:
    """Return what `run_conversation` gives to its caller.

    Calls, usage and cost are those of the session so far, so that they belong together. `messages` leaves out the
    notices that the loop itself added. `undelivered` are messages that came too late for an interrupted run. `error`
    says why there is no answer; it is None if there is one.
    """
    bill = outcome.bill
    return {
        "final_response": outcome.text,
        "messages": chat_messages(outcome),
        "api_calls": bill.answered,
        "completed": outcome.answered,
        "exit_reason": outcome.reason.value,
        "error": failure_sentence(outcome),
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


class Agent:
    """A conversation with one model and some tools, recorded in a journal.

    Use the agent in a `with` or an `async with` statement, or call `close` or `aclose` when you are done. `chat`,
    `run_sync`, `run_conversation` and `go_on` are for programs without an event loop, and may be called from any
    thread; inside an event loop, await `achat`, `run` and `ago_on`, or iterate over `stream`. Messages that are sent
    while a run is active wait in line.

    Args:
        model: The primary model, `provider:model`.
        tools: What the agent can call: functions, what `@tool` makes of them, and other tools.
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
        tools: Iterable[Tool | Callable[..., object]] = (),
        sources: Iterable[DataSource] = (),
        sandbox: str | SandboxOptions | None = None,
        instructions: str = "",
        fallback_models: Sequence[str] = (),
        sessions_dir: Path | str | None = None,
        session_id: str = "",
        config: AgentConfig | None = None,
    ) -> None:
        config = AgentConfig() if config is None else config
        _check_arguments(model, instructions, config, tools=tools, sources=sources, fallback_models=fallback_models)
        environment = dict(os.environ) if config.environment is None else config.environment
        self._clock = config.clock or SystemClock()
        folder = None if sessions_dir is None else Path(sessions_dir)
        self._session_holder = config.session_holder or FolderSessionHolder(folder, self._clock, config.on_trouble)
        limits = config.build_run_limits(records_spending=self._session_holder.spending is not None)

        if config.api_key is not None:
            environment = {**environment, api_key_variable(model): config.api_key}
        self._sources = list(sources or ())
        source_secrets = [value for source in self._sources for value in source.secrets]
        secrets = environment_secrets(environment, [*config.secrets, *source_secrets])
        source_tools = [tool for source in self._sources for tool in source.tools]
        self.delegate = self._create_delegate(config.delegates, config.delegate_iterations, config.has_host_file)
        callbacks = config.callbacks or Callbacks()
        self._warnings: list[str] = []
        observers = [*([("on_event", config.on_event)] if config.on_event else []), *callbacks.observers()]
        own: list[Tool] = [self.delegate] if self.delegate else []
        if callbacks.clarify:
            own.append(ClarifyTool(callbacks.clarifier))
        own += create_own_tools(config, self.entries, self._clock.now, secrets)
        offered = [*map(as_tool, tools or ()), *source_tools, *own, *(plugin_tools() if config.plugins else ())]
        self._tools = select_tools(offered, config.toolsets, environment)
        self._offered_names = [tool.spec.name for tool in offered]
        self._prompt = choose_prompt(config, instructions, secrets)
        toolbox = Toolbox(self._tools, hidden=self._offered_names)

        self._models = ModelRegistry(
            environment,
            now=self._clock.now,
            model_regions=config.model_regions,
            price_overrides=config.prices,
            windows=config.model_windows,
            ca_bundle=config.ca_bundle or None,
            sampling=ModelSampling(config.temperature, config.effort),
        )
        self._resolve = partial(self._models.resolve, base_url=config.base_url, api_mode=config.api_mode)
        context = config.context
        models = [self._resolve(model), *map(self._models.resolve, fallback_models or ())]
        window = min(context_ceiling(limits, one.context_tokens) for one in models)
        inline_bytes = limit_inline_bytes(config.max_inline_bytes, window)
        self._setup = LoopConfig(
            models=models,
            toolbox=toolbox,
            system=self._prompt(toolbox.notes),
            clock=self._clock,
            limits=limits,
            hooks=[*config.hooks, *(plugin_hooks() if config.plugins else ())],
            permissions=choose_permissions(config, callbacks, self._tools),
            observers=[ObserverGuard(name, observe, self._warnings.append) for name, observe in observers],
            streaming=config.streaming,
            max_output_tokens=config.max_output_tokens or MAX_OUTPUT_TOKENS,
            spending=self._session_holder.spending,
            project=config.project,
            about=config.subject or SessionSubject(),
            secrets=secrets,
            shape=InlineShape(secrets, inline_bytes),
            engine=load_context_engine(context) if isinstance(context, str) else context,
            side_models=list(map(self._models.resolve, config.auxiliary.get(SUMMARY_PURPOSE, ()))),
            grace_s=config.grace_s,
            background=config.background,
            verdict=config.verdict,
            judge_again=config.judge_again,
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
                on_trouble=config.on_trouble or LOG.warning,
                max_inline_bytes=inline_bytes,
                exec_timeout_s=config.exec_timeout_s,
                digested=config.line_digests,
            )
        self._last_run_answered = False
        self.session_id = check_known_session(folder, session_id) if session_id else uuid4().hex
        self._journal: Journal | None = None
        self._loop: AgentLoop | None = None
        self._state: RunState | None = None
        self._run_lock = FairLock()
        self._thread_lock = threading.Lock()
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Runner | None = None

    def chat(self, message: str) -> str:
        """Return the answer to a message; the next call continues the conversation.

        Raises RunFailed if there is none.
        """
        return _require_answer(self._run_sync(self.arun(_check_message(message))))

    @overload
    def run_sync(
        self, message: str, *, task_id: str | None = None, images: Sequence[Path | str] = ()
    ) -> RunResult[str]: ...
    @overload
    def run_sync(
        self, message: str, *, output: type[ResultT], task_id: str | None = None, images: Sequence[Path | str] = ()
    ) -> RunResult[ResultT]: ...

    def run_sync(
        self,
        message: str,
        *,
        output: type[Any] | None = None,
        task_id: str | None = None,
        images: Sequence[Path | str] = (),
    ) -> RunResult[Any]:
        """Run once, like `run`, without an event loop."""
        return self._run_sync(self._run(message, output, task_id, images))

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
        return _require_answer(await self.arun(_check_message(message)))

    @overload
    async def run(
        self, message: str, *, task_id: str | None = None, images: Sequence[Path | str] = ()
    ) -> RunResult[str]: ...
    @overload
    async def run(
        self, message: str, *, output: type[ResultT], task_id: str | None = None, images: Sequence[Path | str] = ()
    ) -> RunResult[ResultT]: ...

    async def run(
        self,
        message: str,
        *,
        output: type[Any] | None = None,
        task_id: str | None = None,
        images: Sequence[Path | str] = (),
    ) -> RunResult[Any]:
        """Answer a message and return the result, however the run ended.

        Args:
            message: What the user says.
            output: A type that the answer is to fit: a pydantic model, a dataclass, `list[str]`. `result.output` is
                then the validated object. It works with every model; one that answers otherwise is told so and may try
                again twice.
            task_id: Reaches every tool as `context.extras["task_id"]`; made up if None.
            images: Files of images (PNG, JPEG, GIF, WebP) that go along with the message.
        """
        return await self._run(message, output, task_id, images)

    async def stream(
        self, message: str, *, task_id: str | None = None, images: Sequence[Path | str] = ()
    ) -> AsyncGenerator[StreamEvent, None]:
        """Answer a message, and yield its text, reasoning and tool calls as they come; the last item is the result.

        Leaving the loop early interrupts the run.
        """
        _check_message(message)
        events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()

        def tell(event: RunEvent) -> None:
            match event:
                case TextDelta() | ReasoningDelta():
                    events.put_nowait(event)
                case EntryRecorded(entry=ToolStarted() | ToolFinished() as entry):
                    events.put_nowait(entry)
                case _:
                    pass

        watch, shown = _RunWatch(tell), self._load_images(images)
        work = asyncio.create_task(self._run_watched(message, task_id, watch, images=shown, streaming=True))
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield await work
        finally:
            if not work.done():
                self.interrupt() if watch.entries else work.cancel()
                with suppress(asyncio.CancelledError):
                    await work

    async def arun(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
        *,
        run_id: str = "",
        source: SaidBy = SaidBy.USER,
        images: Sequence[ImagePart] = (),
    ) -> RunOutcome:
        """Run once, like `run_conversation`.

        `run_id` names the run in the journal; `source` says who wrote the message.
        """
        async with self._run_lock:
            if conversation_history is not None and self._open_journal().entries():
                self.close_journal()
                self.session_id = uuid4().hex
            history = conversation_history or ()
            first = partial(
                AgentLoop.run, text=user_message, source=source, history=history, run_id=run_id, images=images
            )
            return await self._run_until_delivered(partial(self._run_loop, None, system_message, task_id), first)

    async def ago_on(self) -> RunOutcome:
        """Finish a run of this session whose process died, like `go_on`."""
        async with self._run_lock:
            return await self._run_loop(None, None, None, AgentLoop.resume)

    def entries(self) -> Sequence[JournalEntry]:
        """Return the journal entries of the session so far."""
        return self._open_journal().entries()

    async def _run_until_delivered(
        self,
        run_loop: Callable[[Callable[[AgentLoop], Awaitable[RunOutcome]]], Awaitable[RunOutcome]],
        first: Callable[[AgentLoop], Awaitable[RunOutcome]],
    ) -> RunOutcome:
        """Run until every message is answered; messages that came too late for one run start another one."""
        outcome = await run_loop(first)
        while outcome.undelivered and outcome.reason is not EndReason.INTERRUPTED:
            outcome = await run_loop(partial(AgentLoop.run, text="\n\n".join(outcome.undelivered)))
        return outcome

    async def _run(
        self, message: str, output: type[Any] | None, task_id: str | None, images: Sequence[Path | str] = ()
    ) -> RunResult[Any]:
        _check_message(message)
        waiting = [self._load_images(images)]  # they go along with the first attempt

        async def run_once(text: str) -> RunResult[str]:
            return await self._run_watched(text, task_id, images=waiting.pop() if waiting else ())

        return await (run_once(message) if output is None else run_for_output(output, message, run_once))

    def _load_images(self, paths: Sequence[Path | str]) -> list[ImagePart]:
        """Read images from files. Raises UsageError for a file that is no image, and if the model takes none."""
        check_sequence("images", paths)
        if paths and not (model := self._setup.models[0]).takes_images:
            raise UsageError(f"The model {model.name} takes no images: choose another, or leave them out.")
        try:
            return [make_image(Path(path).name, _read_head(Path(path))) for path in paths]
        except OSError as error:
            raise UsageError(f"The image {error.filename} cannot be read: {error.strerror}.") from error

    async def _run_watched(
        self,
        message: str,
        task_id: str | None,
        watch: _RunWatch | None = None,
        *,
        images: Sequence[ImagePart] = (),
        streaming: bool = False,
    ) -> RunResult[str]:
        watch = watch or _RunWatch()
        async with self._run_lock:
            self._warnings.clear()
            run_loop = partial(self._run_loop, watch, None, task_id, streaming=streaming)
            named = "\n\n".join([message, *(f"[image: {one.name}]" for one in images)])
            first = partial(AgentLoop.run, text=named, images=images)
            outcome = await self._run_until_delivered(run_loop, first)
            return build_run_result(outcome, watch.entries, self._warnings)

    async def _run_loop(
        self,
        watch: _RunWatch | None,
        system_message: str | None,
        task_id: str | None,
        work: Callable[[AgentLoop], Awaitable[RunOutcome]],
        *,
        streaming: bool = False,
    ) -> RunOutcome:
        setup = await self.prepare_setup()
        system = setup.system if system_message is None else system_message
        setup = replace(setup, system=system, extras={"task_id": task_id or uuid4().hex})
        if watch is not None:
            observers = [*setup.observers, watch]
            setup = replace(setup, observers=observers, streaming=setup.streaming or streaming)
        self._loop = AgentLoop(self._open_journal(), setup, self.session_id, self._state)
        self._event_loop = asyncio.get_running_loop()
        self._last_run_answered = False
        running_here = _RUNNING_HERE.set(_RUNNING_HERE.get() | {id(self)})
        try:
            outcome = await work(self._loop)
            self._last_run_answered = outcome.answered
            return outcome
        finally:
            _RUNNING_HERE.reset(running_here)
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
        """Return the compactor, which also takes back turns; use it only between two runs."""
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
        self._equipment = replace(self._equipment[0], models=self._setup.models), self._equipment[1]
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
        """Close sandbox, sources, models and journal, once the run of another thread has ended.

        Returns even if an interrupted tool never ends: its event loop is then abandoned.
        """
        self._close_runner(self._release)
        self.close_journal()

    async def aclose(self) -> None:
        """Close sandbox, sources, models and journal, inside an event loop."""
        await self._release()
        if self._runner is not None:  # threads have used the agent too, on its own event loop
            await asyncio.to_thread(self._close_runner, self._models.close)
        self.close_journal()

    def _close_runner(self, release: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Release what belongs to the agent's own event loop, and close it, if there is one."""
        with self._thread_lock:
            runner, self._runner = self._runner, None
            if runner is not None:
                runner.run(release())
                if runner.run(cancel_other_tasks()):
                    runner.close()

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

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _run_sync(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run the work on the agent's own event loop, one thread after the other."""
        if _has_event_loop():
            work.close()
            raise UsageError("There is an event loop here already: await achat(), run() or ago_on() instead.")
        if id(self) in _RUNNING_HERE.get():
            work.close()
            raise UsageError("A tool asked the agent that is waiting for it: give the tool an agent of its own.")
        with self._thread_lock:
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(work)

    def _open_journal(self) -> Journal:
        if self._journal is None:
            self._journal = self._session_holder.open_journal(self.session_id)
        return self._journal

    def close_journal(self) -> None:
        """Release the session's journal; the next use opens it again."""
        if self._journal is not None:
            self._session_holder.release_journal(self._journal)
            self._journal = None


def _has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _read_head(path: Path) -> bytes:
    """Read one byte more than an image may have, which shows that it has too many."""
    with path.open("rb") as file:
        return file.read(IMAGE_BYTES + 1)


def _check_arguments(model: object, instructions: object, config: object, **several: object) -> None:
    """Raise UsageError for arguments of the wrong type."""
    if not isinstance(model, str) or not model.strip():
        raise UsageError("There is no model: name one, such as anthropic:claude-sonnet-5-5.")
    if not isinstance(instructions, str):
        raise UsageError(f"instructions is {shorten_line(repr(instructions), 80)}; give a text.")
    if not isinstance(config, AgentConfig):
        raise UsageError(f"config is of the type {type(config).__name__}; give an AgentConfig(…).")
    for name, given in several.items():
        check_sequence(name, given)


def _check_message(message: object) -> str:
    """Return the message. Raises UsageError if it is empty or not text."""
    if not isinstance(message, str):
        raise UsageError(f"The message is {shorten_line(repr(message), 80)}; give a text.")
    if not message.strip():
        raise UsageError("The message is empty: say something.")
    return message


def _require_answer(outcome: RunOutcome) -> str:
    """Return the answer. Raises RunFailed if there is none."""
    if not outcome.answered:
        raise RunFailed(failure_sentence(outcome) or "", outcome.reason, answer_text(outcome))
    return outcome.text
