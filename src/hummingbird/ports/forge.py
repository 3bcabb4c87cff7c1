"""What we ask of the forge, the write side. Imported by forge, service and assembly alone.

Its credential is an `OrchestratorToken`: the tier that writes. The one that reads is another type in another room, and
nothing takes the one for the other (G3).
"""


class OrchestratorToken:
    """A credential that writes with the bot's rights. Shown nowhere: its value is only had by asking for it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "OrchestratorToken(…)"
