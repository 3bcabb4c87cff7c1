"""`hummingbird doctor`: tests every part of the setup for real and says how to fix what fails.

The checks run side by side. They leave nothing behind, and no finding contains the value of a token.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import Settings


class CheckStatus(StrEnum):
    """How a check ended; `SKIP` means that nothing was tried, and the sentence says why."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One result: `part` names what was tried, like gitlab; `sentence` says what was found and what to do."""

    part: str
    standing: CheckStatus
    sentence: str


CheckOutcomes: TypeAlias = AsyncIterator[tuple[CheckStatus, str]]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check. `run` yields findings as it goes; a HummingbirdError that it raises is reported as a failure."""

    part: str
    run: Callable[[], CheckOutcomes]


AS_CONFIGURED = SandboxChoice()


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """What the checks are about.

    With `try_model`, models may be asked something, which costs money. `chosen` is the sandbox and `host` the address
    that `serve` will be given.
    """

    configuration: Configuration
    environment: Mapping[str, str]
    try_model: bool = False
    chosen: SandboxChoice = AS_CONFIGURED
    host: str = "127.0.0.1"

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    def value(self, variable: str) -> str:
        return self.environment.get(variable, "").strip()
