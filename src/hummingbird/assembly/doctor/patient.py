"""Whom the checks look at: a sound configuration and the environment it runs in."""

from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.assembly.sandboxes import Chosen
from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import Settings

AS_CONFIGURED = Chosen()


@dataclass(frozen=True, slots=True)
class Patient:
    """`try_model`: models may be asked something, which costs money. `chosen`: the sandbox that `serve` will be told to
    use. `host`: that it will listen on."""

    configuration: Configuration
    environment: Mapping[str, str]
    try_model: bool = False
    chosen: Chosen = AS_CONFIGURED
    host: str = "127.0.0.1"

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    def value(self, variable: str) -> str:
        return self.environment.get(variable, "").strip()
