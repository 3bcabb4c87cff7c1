"""The configuration of an agent loop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hummingbird.agent import prompts
from hummingbird.agent.budget import RunLimits
from hummingbird.agent.compaction import WrapUpEngine
from hummingbird.agent.tools.permission_gate import PermissionGate, SessionPermissions
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.agent.tools.results import ResultShape
from hummingbird.core.background import RunBackground
from hummingbird.core.journal import SessionOpened
from hummingbird.core.limits import INTERRUPT_GRACE_S, JOURNAL_FORMAT, MAX_OUTPUT_TOKENS
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.context_engine import ContextEngine
from hummingbird.core.protocols.model import Model
from hummingbird.core.protocols.observer import Clock, RunObserver
from hummingbird.core.protocols.storage import SpendingStore
from hummingbird.core.protocols.tools import ToolHook
from hummingbird.core.sessions import SessionSubject
from hummingbird.core.text import replace_surrogates
from hummingbird.core.verdicts import FailureVerdict


def _do_nothing() -> None:
    """Do nothing: the default callback."""


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """What a loop needs besides its journal.

    - `models`: the primary first, then the fallback chain.
    - `shape`: how results are shaped; None keeps them inline.
    - `after_tools`: called after each batch of calls; must return at once.
    - `engine`: makes room in a full context, with summaries by `side_models` (by `models` if there are none).
    - `grace_s`: how long an interrupt waits for work to end before it is left behind.
    - `gate`: the permission gate of the parent agent, in place of one made from `permissions`.
    - `about`: what a new conversation is about, for whoever continues it.
    - `background`: what is known about the subject; it is recorded with the start of each run.
    - `verdict`: what rules say about the subject; it is recorded in the journal before a model is asked.
    - `judge_again`: called when a run ends, to judge again with what it has read; None if there is nothing to judge.
    """

    models: Sequence[Model]
    toolbox: Toolbox
    system: str
    clock: Clock
    limits: RunLimits = field(default_factory=RunLimits)
    hooks: Sequence[ToolHook] = ()
    permissions: SessionPermissions | None = None
    gate: PermissionGate | None = None
    observers: Sequence[RunObserver] = ()
    shape: ResultShape | None = None
    after_tools: Callable[[], None] = _do_nothing
    streaming: bool = False
    continuation: str = prompts.CONTINUATION
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    spending: SpendingStore | None = None
    project: str = ""
    extras: Mapping[str, Any] = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)
    engine: ContextEngine = field(default_factory=WrapUpEngine)
    side_models: Sequence[Model] = ()
    grace_s: float = INTERRUPT_GRACE_S
    random: Random = field(default_factory=Random)
    about: SessionSubject = field(default_factory=SessionSubject)
    background: RunBackground | None = None
    verdict: FailureVerdict | None = None
    judge_again: Callable[[], FailureVerdict | None] | None = None

    def session_opened_entry(self, session_id: str) -> SessionOpened:
        """Return the first journal entry of a session that starts with this configuration."""
        return SessionOpened(
            session_id=session_id,
            system=replace_surrogates(self.system),
            tools=self.toolbox.definitions,
            format=JOURNAL_FORMAT,
            project=self.about.project,
            workflow=self.about.workflow,
            folder=replace_surrogates(self.about.folder),
        )
