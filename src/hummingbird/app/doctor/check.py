"""What a check found: how it stands, and one sentence that says what to do."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import Settings


class CheckStatus(StrEnum):
    """`SKIP`: not tried, and the sentence says why."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """`part` is what was tried, like gitlab; `sentence` says what is, and what to do about it."""

    part: str
    standing: CheckStatus
    sentence: str


CheckOutcomes: TypeAlias = AsyncIterator[tuple[CheckStatus, str]]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """`run` yields what it finds as it goes; it may raise a HummingbirdError, which is a failure with its sentence."""

    part: str
    run: Callable[[], CheckOutcomes]


# Whom the checks look at: a sound configuration and the environment it runs in.


AS_CONFIGURED = SandboxChoice()


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """`try_model`: models may be asked something, which costs money. `chosen`: the sandbox that `serve` will be told to
    use. `host`: that it will listen on."""

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
