"""What a loop is made of, besides its journal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hummingbird.agent import prompts
from hummingbird.agent.budget import Limits
from hummingbird.agent.compaction import WrappingUp
from hummingbird.agent.tools.permissions import Gate, Permissions
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.agent.tools.results import Shape
from hummingbird.domain.journal import SessionOpened
from hummingbird.domain.limits import INTERRUPT_GRACE_S, JOURNAL_FORMAT, MAX_OUTPUT_TOKENS
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.sessions import About
from hummingbird.domain.text import plain
from hummingbird.domain.verdicts import Verdict
from hummingbird.ports.clock import Clock
from hummingbird.ports.context import ContextEngine
from hummingbird.ports.model import Model
from hummingbird.ports.observer import Observer
from hummingbird.ports.spending import Spending
from hummingbird.ports.tool import Hook


def _nothing() -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a loop needs besides its journal. `models`: the primary first, then the fallback chain (L14). `shape` None:
    results stay inline. `after_tools` is called after each batch of calls and returns at once. `engine` makes room in a
    full context, with summaries by `side_models` (none: by `models`). `grace_s`: how long an interrupt waits for work
    to end before it is left behind. `gate`: that of the agent this one works for, in place of one of `permissions`.
    `about`: what a conversation is begun about, for whoever goes on with it.
    `judged`: what rules say of what its runs are about, which is in the journal before a model speaks (N8)."""

    models: Sequence[Model]
    toolbox: Toolbox
    system: str
    clock: Clock
    limits: Limits = field(default_factory=Limits)
    hooks: Sequence[Hook] = ()
    permissions: Permissions | None = None
    gate: Gate | None = None
    observers: Sequence[Observer] = ()
    shape: Shape | None = None
    after_tools: Callable[[], None] = _nothing
    streaming: bool = False
    continuation: str = prompts.CONTINUATION
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    spending: Spending | None = None
    project: str = ""
    extras: Mapping[str, Any] = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)
    engine: ContextEngine = field(default_factory=WrappingUp)
    side_models: Sequence[Model] = ()
    grace_s: float = INTERRUPT_GRACE_S
    random: Random = field(default_factory=Random)
    about: About = field(default_factory=About)
    judged: Verdict | None = None

    def opened(self, session_id: str) -> SessionOpened:
        """The first line of a session that begins with this."""
        return SessionOpened(
            session_id=session_id,
            system=plain(self.system),
            tools=self.toolbox.definitions,
            format=JOURNAL_FORMAT,
            project=self.about.project,
            workflow=self.about.workflow,
        )
