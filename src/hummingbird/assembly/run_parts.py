"""What a single run is made of, and what it leaves (G6): shared by those that post and those that do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.sandboxes import Chosen
from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.findings import Severity
from hummingbird.domain.orders import WorkOrder
from hummingbird.ports.clock import Clock
from hummingbird.ports.observer import Observer
from hummingbird.service.evidence_words import told
from hummingbird.service.findings import Published, summary
from hummingbird.service.investigating import Conducted
from hummingbird.service.verdict_wording import above
from hummingbird.service.wording import duration, ended_early, nothing_found

_SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """`environment` is the whole one; runs are given less."""

    configuration: Configuration
    environment: Mapping[str, str]
    chosen: Chosen = field(default_factory=Chosen)
    clock: Clock = field(default_factory=SystemClock)
    on_event: Observer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was typed. `event` is JSON, `event_file` a path or -; `save` and `resume` are folders."""

    workflow: str = ""
    project: str = ""
    event: str | None = None
    event_file: str | None = None
    execute: bool = False
    save: str | None = None
    resume: str | None = None
    message: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """`saved`: the folder that was named for its session. `posted`: the merge request that it is told on. `failure`:
    why it is not, though it was to be."""

    order: WorkOrder
    conducted: Conducted
    saved: Path | None = None
    posted: str = ""
    failure: HummingbirdError | None = None

    @property
    def exit_code(self) -> int:
        return self.conducted.outcome.exit_code or (1 if self.failure else 0)

    @property
    def text(self) -> str:
        """What rules say, the answer, and what was found on lines of the diff below it."""
        listed = sorted(dict.fromkeys(self.conducted.findings), key=lambda one: _SEVERITIES.index(one.severity))
        found, answer = summary(Published(listed=tuple(listed))), self.conducted.outcome.text.strip()
        verdict = "" if self.conducted.verdict is None else above(self.conducted.verdict, answer)
        return "\n\n".join(filter(None, (verdict, "" if found and nothing_found(answer) else answer, found)))

    @property
    def bill(self) -> str:
        """With what was looked at and how quotations fared above it (N6)."""
        outcome = self.conducted.outcome
        turns = "1 iteration" if outcome.iterations == 1 else f"{outcome.iterations} iterations"
        used = f"{self.conducted.model}, {turns}, {outcome.bill}, {duration(self.conducted.seconds)}"
        return "\n".join((*told(self.conducted), used))

    @property
    def remarks(self) -> Sequence[str]:
        """Sentences: that it ended early, what could not be kept or posted."""
        failed = f"This could not be posted. {self.failure}" if self.failure else ""
        return tuple(filter(None, (ended_early(self.conducted.outcome), *self.conducted.trouble, failed)))
