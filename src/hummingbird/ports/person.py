"""A person who can be asked something that only they know (C5: clarify). Permissions have a port of their own."""

from collections.abc import Sequence
from typing import Protocol


class Clarifier(Protocol):
    """Takes as long as they take. Cancelled when the run is interrupted: the question is then to be taken off the
    screen."""

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        """Their own words, or one of the choices. Empty: they would rather not say."""
        ...
