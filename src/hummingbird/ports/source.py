"""What we ask of a data source (D1): tools around one external API, with a credential of their own.

The credential is a `ToolToken`: the tier that reads. The one that writes is another type in another room, and nothing
takes the one for the other (G3).
"""

from collections.abc import Sequence
from typing import Protocol

from hummingbird.ports.tool import Tool


class ToolToken:
    """A credential that reads on the model's behalf. Shown nowhere: its value is only had by asking for it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "ToolToken(…)"


class Source(Protocol):
    """Made for one run of one workflow; opens connections when its first tool is called."""

    @property
    def name(self) -> str:
        """As a workflow declares it: gitlab, konflux, testing_farm."""
        ...

    @property
    def tools(self) -> Sequence[Tool]: ...

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must be masked wherever they appear (T7)."""
        ...

    async def close(self) -> None: ...
