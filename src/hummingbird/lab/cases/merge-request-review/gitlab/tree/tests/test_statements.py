from decimal import Decimal

from ledger.statements import Entry, Ledger


def test_balance() -> None:
    assert Ledger([Entry("a", Decimal(2)), Entry("b", Decimal(5))]).balance("a") == 2


def test_pages_hold_every_entry() -> None:
    entries = [Entry("a", Decimal(n)) for n in range(100)]
    assert [entry for page in Ledger(entries).pages("a", 10) for entry in page] == entries
