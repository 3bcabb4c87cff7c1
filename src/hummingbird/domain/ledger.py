"""The usage ledger as a projection of the journal (L15): every attempt is a line, the sum is one number."""

from collections.abc import Iterable
from decimal import Decimal

from hummingbird.domain.journal import Entry, ModelAnswered, ModelCalled, ModelFailed, ToolFinished
from hummingbird.domain.usage import LOST, Bill, Charge, total


class Ledger:
    """Apply entries in order; read `charges` and `bill()`. `settled`: attempts whose end is known."""

    def __init__(self) -> None:
        self.settled: list[Charge] = []
        self._called: dict[str, ModelCalled] = {}
        self.known_usd = Decimal(0)
        self.unknown = 0

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Ledger":
        ledger = cls()
        for entry in entries:
            ledger.apply(entry)
        return ledger

    @property
    def charges(self) -> list[Charge]:
        """Settled attempts, then those whose end nobody saw: they may have been billed."""
        lost = (Charge(call.model, call.purpose, LOST) for call in self._called.values())
        return [*self.settled, *lost]

    def bill(self) -> Bill:
        return total(self.charges)

    def apply(self, entry: Entry) -> None:
        match entry:
            case ModelCalled(call_id=call_id):
                self._called[call_id] = entry
            case ModelAnswered(call_id=call_id, model=model, usage=usage, cost_usd=cost):
                self._add(Charge(model, self._purpose(call_id), "answered", usage, cost))
            case ModelFailed(call_id=call_id, model=model, happening=happening, lost=lost):
                self._add(Charge(model, self._purpose(call_id), LOST if lost else happening.value))
            case ToolFinished(charges=charges):
                for charge in charges:
                    self._add(charge)
            case _:
                pass

    def _purpose(self, call_id: str) -> str:
        called = self._called.pop(call_id, None)
        return called.purpose if called else "turn"

    def _add(self, charge: Charge) -> None:
        self.settled.append(charge)
        if charge.cost_usd is not None:
            self.known_usd += charge.cost_usd
        elif charge.usage is not None:
            self.unknown += 1
