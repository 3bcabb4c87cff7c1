"""Statements of an account, page by page."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

PAGE_SIZE = 50


@dataclass(frozen=True)
class Entry:
    account: str
    amount: Decimal
    note: str = ""


class Ledger:
    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries

    def of(self, account: str) -> list[Entry]:
        return [entry for entry in self._entries if entry.account == account]

    def pages(self, account: str, size: int = PAGE_SIZE) -> Iterator[list[Entry]]:
        """All entries of an account, in order, at most `size` to a page."""
        entries = self.of(account)
        for number in range(len(entries) // size):
            yield entries[number * size : (number + 1) * size]

    def page_count(self, account: str, size: int = PAGE_SIZE) -> int:
        return -(-len(self.of(account)) // size)

    def balance(self, account: str) -> Decimal:
        return sum((entry.amount for entry in self.of(account)), Decimal(0))
