"""The library's front door (C2): `Agent(...).chat(...)`, sync over an async core."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from hummingbird.adapters.models.registry import Models
from hummingbird.adapters.stores.journal import FileJournal, MemoryJournal
from hummingbird.agent.budget import CHAT
from hummingbird.agent.loop import Loop, Setup
from hummingbird.agent.prompts import system_prompt
from hummingbird.agent.tools.registry import Toolbox, enabled
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.plugins import plugin_hooks, plugin_tools
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.limits import CHAT_ITERATIONS
from hummingbird.domain.messages import Notice, as_chat
from hummingbird.domain.runs import Outcome
from hummingbird.ports.clock import Clock
from hummingbird.ports.observer import Observer
from hummingbird.ports.tool import Hook, Tool


class Agent:
    """A conversation with one model and some tools, kept in a journal.

    `session_id` continues a session of `sessions_dir` (None: nothing is kept on disk). `instructions` joins the
    base rules in the system prompt. `on_event` sees every journal entry and delta as it happens.
    The sync methods are for programs without an event loop; inside one, await `achat` and `arun`.
    """

    def __init__(
        self,
        model: str,
        *,
        tools: Iterable[Tool] = (),
        toolsets: Iterable[str] | None = None,
        instructions: str = "",
        fallback_models: Sequence[str] = (),
        session_id: str = "",
        sessions_dir: Path | str | None = None,
        max_iterations: int = CHAT_ITERATIONS,
        context_limit: int | None = None,
        max_usd: Decimal | float | None = None,
        max_seconds: float | None = None,
        streaming: bool = False,
        on_event: Observer | None = None,
        hooks: Iterable[Hook] | None = None,
        plugins: bool = False,
        base_url: str | None = None,
        api_mode: str | None = None,
        model_regions: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if max_iterations < 1:
            raise UsageFault(f"max_iterations is {max_iterations}; give the agent at least one turn.")
        found = dict(os.environ) if environment is None else environment
        offered = [*tools, *(plugin_tools() if plugins else ())]
        self._toolbox = Toolbox(enabled(offered, toolsets, found))
        self._instructions = instructions
        self._clock = clock or SystemClock()
        self._models = Models(found, now=self._clock.now, model_regions=model_regions or {})
        names = [model, *fallback_models]
        primary = self._models.resolve(model, base_url=base_url, api_mode=api_mode)
        self._setup = Setup(
            models=[primary, *(self._models.resolve(name) for name in names[1:])],
            toolbox=self._toolbox,
            system=system_prompt(self._toolbox.notes, instructions),
            clock=self._clock,
            limits=replace(
                CHAT,
                iterations=max_iterations,
                context_tokens=context_limit,
                usd=None if max_usd is None else Decimal(str(max_usd)),
                seconds=max_seconds,
            ),
            hooks=list(hooks) if hooks is not None else plugin_hooks() if plugins else [],
            observers=[on_event] if on_event else [],
            streaming=streaming,
        )
        self._sessions_dir = None if sessions_dir is None else Path(sessions_dir)
        self.session_id = session_id or uuid4().hex
        self._journal: FileJournal | MemoryJournal | None = None
        self._loop: Loop | None = None
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
        """One run with everything it brought. A given history begins a new session with it."""
        return as_result(self._sync(self.arun(user_message, system_message, conversation_history, task_id)))

    async def achat(self, message: str) -> str:
        return (await self.arun(message)).text

    async def arun(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
    ) -> Outcome:
        if conversation_history is not None and self._journal is not None:
            self._close_journal()
            self.session_id = uuid4().hex
        setup = replace(
            self._setup,
            system=self._setup.system if system_message is None else system_message,
            extras={"task_id": task_id or uuid4().hex},
        )
        self._loop = Loop(self._open_journal(), setup, self.session_id)
        try:
            return await self._loop.run(user_message, history=conversation_history or ())
        finally:
            self._loop = None

    def interrupt(self) -> None:
        """Stops the run under way; to be called on the event loop's thread (`interrupt_soon` from another one)."""
        if self._loop is not None:
            self._loop.interrupt()

    def interrupt_soon(self) -> None:
        """Stops the run under way, from any thread."""
        if self._runner is not None:
            self._runner.get_loop().call_soon_threadsafe(self.interrupt)

    def steer(self, message: str) -> None:
        """A message for the run under way, delivered at its next turn."""
        if self._loop is None:
            raise UsageFault("Nothing is running; use chat() to say something.")
        self._loop.steer(message)

    def close(self) -> None:
        if self._runner is not None:
            self._runner.run(self._models.close())
            self._runner.close()
            self._runner = None
        self._close_journal()

    async def aclose(self) -> None:
        await self._models.close()
        self._close_journal()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sync(self, work: Any) -> Outcome:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._runner = self._runner or asyncio.Runner()
            outcome: Outcome = self._runner.run(work)
            return outcome
        work.close()
        raise UsageFault("There is an event loop here already: await achat() or arun() instead.")

    def _open_journal(self) -> FileJournal | MemoryJournal:
        if self._journal is None:
            folder = self._sessions_dir
            path = None if folder is None else folder / _folder_name(self.session_id) / "journal.jsonl"
            self._journal = MemoryJournal() if path is None else FileJournal(path)
        return self._journal

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def _folder_name(session_id: str) -> str:
    if not session_id.replace("-", "").replace("_", "").isalnum():
        raise UsageFault(f"Session id {session_id[:80]!r} is not usable: letters, digits, - and _ only.")
    return session_id


def as_result(outcome: Outcome) -> dict[str, Any]:
    """C2's dictionary. Notices are scaffolding and are left out of `messages` (L8)."""
    bill = outcome.bill
    return {
        "final_response": outcome.text,
        "messages": [as_chat(message) for message in outcome.messages if not isinstance(message, Notice)],
        "api_calls": outcome.iterations,
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
    }
