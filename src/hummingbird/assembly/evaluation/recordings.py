"""Sessions of earlier evaluations, to be played again without a network and without a key.

A recording is a journal in which the stand-ins' addresses are placeholders, as in a case: `recordings/MODEL/` of its
case's folder, or `CASE/MODEL/` of a folder that somebody named. Nothing that was recorded is written over.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hummingbird.adapters.stores.journal import read
from hummingbird.agent.tools.fence import fenced
from hummingbird.domain.errors import HummingbirdError, SessionUnreadable, UsageFault
from hummingbird.domain.eval_limits import RECORDING_BYTES
from hummingbird.domain.journal import TURN, Entry, ModelAnswered, ToolFinished, dump, load
from hummingbird.domain.sessions import JOURNAL
from hummingbird.lab.case import Case

FOLDER = "recordings"
PLAYED = "played.jsonl"
_FENCED = re.compile(
    r'<untrusted tool="(?P<tool>[^"\n]*)" id="(?P<mark>[0-9a-f]{16})">\n(?P<content>.*?)\n</untrusted id="(?P=mark)">',
    re.DOTALL,
)
_NO_NAME = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True, slots=True)
class Recording:
    """`model`: whose answers are played. `turns`: how many."""

    journal: Path
    model: str
    entries: Sequence[Entry]

    @property
    def turns(self) -> int:
        return len(answers(self.entries))

    def placed(self, addresses: Mapping[str, str], folder: Path) -> Path:
        """A copy with the addresses that hold now, and the fences that belong to them."""
        text = self.journal.read_text(encoding="utf-8")
        for name, address in addresses.items():
            text = text.replace("{{" + name + "}}", address)
        lines = enumerate(filter(None, text.split("\n")), 1)
        target = folder / PLAYED
        target.write_bytes(b"".join(dump(_refenced(load(line.encode(), number))) for number, line in lines))
        return target


def _refenced(entry: Entry) -> Entry:
    """The marks of a fence are the digest of what is in it (T8)."""
    if not isinstance(entry, ToolFinished):
        return entry
    text = _FENCED.sub(lambda found: fenced(found["content"], found["tool"]), entry.text)
    return msgspec.structs.replace(entry, text=text)


def answers(entries: Sequence[Entry]) -> list[ModelAnswered]:
    return [entry for entry in entries if isinstance(entry, ModelAnswered) and entry.purpose == TURN]


def recorded(case: Case, folder: Path | None, models: Sequence[str]) -> list[Recording]:
    """Those of a case, of these models or of all. Raises UsageFault for one that cannot be read."""
    place = case.folder / FOLDER if folder is None else folder / case.name
    found = [_read(journal) for journal in sorted(place.glob(f"*/{JOURNAL}"))]
    return [one for one in found if not models or one.model in models]


def _read(journal: Path) -> Recording:
    try:
        if journal.stat().st_size > RECORDING_BYTES:
            raise SessionUnreadable(f"it is larger than {RECORDING_BYTES:,} bytes.")
        entries = read(journal)
    except (HummingbirdError, OSError) as error:
        raise UsageFault(f"The recording {journal} cannot be played: {error} Record it again.") from error
    if not (spoken := answers(entries)):
        raise UsageFault(f"The recording {journal} holds no model answer: record it again.")
    return Recording(journal, spoken[-1].model, entries)


def place_of(folder: Path, case: Case, model: str, number: int) -> Path:
    """Where one is to be kept. Raises UsageFault if there is one already."""
    name = _NO_NAME.sub("_", model) + (f"-{number}" if number > 1 else "")
    target = folder / case.name / name / JOURNAL
    if target.exists():
        raise UsageFault(f"{target} was recorded before: remove it, or name another folder for --record.")
    return target


def keep(journal: Path, target: Path, addresses: Mapping[str, str]) -> None:
    """Raises UsageFault."""
    try:
        text = journal.read_text(encoding="utf-8")
        for name, address in addresses.items():
            text = text.replace(address, "{{" + name + "}}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageFault(f"The recording {target} cannot be written: {error.strerror}. Name another folder.") from error
