"""What a mutation is: a small text in place of another, and who has to notice.

Where two walls stand behind each other, one that is gone is noticed only by a test of that very wall: such a test is
named then, not one of the whole service.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """`broken`: a sentence that says what is no longer so. `file`: below src. `old` stands in it exactly once.
    `tests`: pytest's names of those that are expected to turn red, few and quick ones."""

    invariant: str
    broken: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
