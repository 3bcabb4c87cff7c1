"""A session whose journal a crash or a power cut tore goes on from the entries that are whole."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from hummingbird.app.investigation import AgentInvestigator
from hummingbird.config.configuration import Configuration
from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.journal import JournalEntry, RunEnded, RunStarted, UserSaid
from hummingbird.core.orders import OrderCause
from hummingbird.core.sessions import find_subject
from hummingbird.service.protocols import InvestigationRequest
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.journals import read_journal
from tests.app.conducting import MODEL, PROJECT, TASK, applied, configured, order, shell
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.thoroughly import ALL

BLOCK = 4096
NAME = "journal.jsonl"
FIRST = (shell(f"echo {'x' * 3000}"), shell(f"echo {'y' * 3000}"), Turn(text="The parser is too strict."))


class Torn:
    """One model, and an investigator for each copy of a session."""

    def __init__(self, folder: Path, lab: VendorLab) -> None:
        self._folder, self.lab = folder, lab
        self._environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
        self._configuration: Configuration = configured(folder / "config", f"model: {MODEL}")

    async def begun(self) -> bytes:
        """The journal of a session with one whole run."""
        self.lab.script.extend(*FIRST)
        investigator = self._investigator("first")
        await investigator.investigate(
            InvestigationRequest(order(), self._configuration, applied(self._configuration), TASK)
        )
        return (self._folder / "first" / "session" / NAME).read_bytes()

    async def goes_on(self, name: str, journal: bytes, whole: int) -> None:
        """From the first `whole` entries, whatever comes behind them."""
        path = self._folder / name / "session" / NAME
        path.parent.mkdir(parents=True)
        path.write_bytes(journal)
        asked = order(order_id="reply", cause=OrderCause.REPLY)
        investigator = self._investigator(name)
        before = read_journal(self._folder / "first" / "session" / NAME)[:whole]
        assert await investigator.has_session(asked) is find_subject(before).is_for(PROJECT, asked.mr_iid)
        if not whole:  # nothing is left to go on with, and nobody answers a reply without what came before
            with pytest.raises(ObjectStoreUnusable, match="session session no longer exists"):
                await investigator.investigate(
                    InvestigationRequest(asked, self._configuration, applied(self._configuration), "Which line?")
                )
            return
        self.lab.script.extend(Turn(text="Line 61."))
        conducted = await investigator.investigate(
            InvestigationRequest(asked, self._configuration, applied(self._configuration), "Which line is it?")
        )
        entries = read_journal(path)
        assert (conducted.outcome.text, conducted.trouble) == ("Line 61.", ())
        assert entries[:whole] == before
        ended = [one.run_id for one in entries if isinstance(one, RunEnded)]
        assert ended == heard(entries)
        assert ended[-1] == "reply"

    def _investigator(self, name: str) -> AgentInvestigator:
        return AgentInvestigator(FolderSessionStore(self._folder / name), self._environment)


@pytest.fixture
def torn(tmp_path: Path) -> Iterator[Torn]:
    with VendorLab(Script()) as lab:
        yield Torn(tmp_path, lab)
        lab.script.assert_consumed()


def heard(entries: Sequence[JournalEntry]) -> list[str]:
    """The runs that had something to answer; one that was torn before that is none."""
    pairs = pairwise(entries)
    return [one.run_id for one, after in pairs if isinstance(one, RunStarted) and isinstance(after, UserSaid)]


def cuts(journal: bytes) -> Iterator[tuple[int, int]]:
    """Where a write may have ended, and how many entries are whole then: the first, a middle and the last byte of each
    line, and its end."""
    begin = 0
    for number, line in enumerate(journal.splitlines(keepends=True)):
        yield from ((begin + offset, number) for offset in (1, len(line) // 2, len(line) - 1))
        begin += len(line)
        yield begin, number + 1


async def test_a_session_that_was_torn_anywhere_goes_on_from_its_whole_entries(torn: Torn) -> None:
    journal = await torn.begun()
    points = list(cuts(journal))
    assert len(points) > 40
    for number, (size, whole) in enumerate(points if ALL else points[::7]):
        await torn.goes_on(f"cut-{number}", journal[:size], whole)


@pytest.mark.thorough
async def test_a_session_whose_last_block_was_never_written_goes_on_from_its_whole_entries(torn: Torn) -> None:
    """The file has its length, and zeros at its end: of one block or of two."""
    journal = await torn.begun()
    for blocks in (1, 2):
        begin = (len(journal) // BLOCK - blocks + 1) * BLOCK
        whole = journal[:begin].count(b"\n")
        assert 0 < whole < journal.count(b"\n")
        await torn.goes_on(f"zeros-{blocks}", journal[:begin] + b"\0" * (len(journal) - begin), whole)
