"""Claims of an answer that stand in nothing that was fetched, as whoever posts it counts them (N6): lines that it
quotes, their numbers, places and jobs that it names, links."""

from dataclasses import dataclass

from hummingbird.evidence.citations.checking import Tallies
from hummingbird.evidence.citations.wording import sentences


@dataclass(frozen=True, slots=True)
class Claims:
    """`fared`: how, in sentences, where any is wrong or could not be looked at."""

    made: int = 0
    wrong: int = 0
    fared: tuple[str, ...] = ()


def claims_of(tallies: Tallies) -> Claims:
    wrong = tallies.removed + tallies.renumbered + tallies.marked + tallies.links_removed
    made = tallies.quoted + tallies.mentioned + tallies.links
    return Claims(made, wrong, () if tallies.clean else tuple(sentences(tallies)))
