"""How many may have the same thing at the same time. Refuses to know what it is."""

from contextlib import ExitStack


class Seats:
    """A seat is taken before anything is awaited, so that whoever asks next finds it taken; whoever has one gives it
    back by closing it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    def take(self) -> ExitStack | None:
        """None where all are taken. `pop_all()` hands it on to somebody who has it for longer."""
        if self.taken >= self._most:
            return None
        self.taken += 1
        seat = ExitStack()
        seat.callback(self._give_back)
        return seat

    def _give_back(self) -> None:
        self.taken -= 1
