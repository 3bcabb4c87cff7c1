"""What a project spent on one day, as an object that all hosts share (L6, O3). Knows how it looks as bytes, and nothing
of stores.

    {"sheet":1,"nonce":"…","life":"…","project":"group/project","rest":0,"spent":{"WRITER":[1200000,1794744000.0],…}}

Each process has a line of its own with all that it spent this day, in millionths of a dollar. To write that again, for
an answer got lost, changes nothing; an amount that is added each time would count twice.
"""

from decimal import Decimal
from secrets import token_hex

import msgspec

from hummingbird.adapters.stores.known_words import cut
from hummingbird.domain.errors import JournalUnwritable
from hummingbird.domain.limits import KNOWN_NAME_CHARS
from hummingbird.domain.session_limits import SPENDERS

FORMAT = 1
_MICRO = Decimal(1_000_000)


class Line(msgspec.Struct, frozen=True, array_like=True):
    """`at`: when it was written last."""

    micro: int
    at: float


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """`nonce`: another one each time it is written, for stores tell versions apart by content. `life`: another one for
    a sheet that begins anew after one was removed. `rest`: of lines that were added up, so that it stays small."""

    sheet: int = FORMAT
    nonce: str = ""
    life: str = ""
    project: str = ""
    rest: int = 0
    spent: dict[str, Line] = {}

    @property
    def micro(self) -> int:
        return self.rest + sum(line.micro for line in self.spent.values())


class _Peek(msgspec.Struct):
    sheet: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Sheet)
_peek = msgspec.json.Decoder(_Peek)


class Tally:
    """What this process spent for a project on a day, and what it knows of how much of that is on the sheet."""

    def __init__(self, project: str, where: str) -> None:
        """`where`: the subject of a sentence about the sheet."""
        self._project, self._where = project, where
        self.micro = 0
        self._writer, self._life = token_hex(8), ""
        self._added_up = 0  # of ours, in `rest`
        self._certain = 0  # of ours, on our line when it was seen last

    def on(self, content: bytes | None, at: float) -> Sheet:
        """What the sheet should be, of what it is. Raises JournalUnwritable for one that cannot be read."""
        sheet = self._begun() if content is None else parsed(content, self._where)
        self._find_ourselves(sheet)
        spent = {**sheet.spent, self._writer: Line(self.micro - self._added_up, at)}
        return _smaller(msgspec.structs.replace(sheet, nonce=token_hex(8), spent=spent), self._writer)

    def _begun(self) -> Sheet:
        return Sheet(life=token_hex(8), project=cut(self._project, KNOWN_NAME_CHARS))

    def _find_ourselves(self, sheet: Sheet) -> None:
        """Somebody may have removed the sheet, or added our line up with others: then we begin another one. If a write
        of ours was in doubt just then, what it added counts once more: rather too much than too little."""
        if sheet.life != self._life:
            self._life, self._added_up, self._certain = sheet.life, 0, 0
        ours = sheet.spent.get(self._writer)
        if ours is None and self._certain:
            self._added_up += self._certain
            self._writer = token_hex(8)
        self._certain = ours.micro if ours else 0


def _smaller(sheet: Sheet, ours: str) -> Sheet:
    """With the lines added up that were not written for the longest time, if there are too many."""
    if len(sheet.spent) <= SPENDERS:
        return sheet
    oldest = sorted(sheet.spent, key=lambda writer: (writer == ours, sheet.spent[writer].at))[: SPENDERS // 2]
    rest = sheet.rest + sum(sheet.spent[writer].micro for writer in oldest)
    left = {writer: line for writer, line in sheet.spent.items() if writer not in oldest}
    return msgspec.structs.replace(sheet, rest=rest, spent=left)


def written(sheet: Sheet) -> bytes:
    return _encoder.encode(sheet)


def parsed(content: bytes, where: str) -> Sheet:
    """Raises JournalUnwritable."""
    try:
        if _peek.decode(content).sheet > FORMAT:
            raise JournalUnwritable(f"{where} was written by a newer version of Hummingbird: update this one.")
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalUnwritable(
            f"{where} is damaged: remove it. Each process that goes on then writes again what it spent itself."
        ) from error


def in_micro(usd: Decimal) -> int:
    """Rounded up, so that many small calls cannot pass a ceiling unseen."""
    return int((usd * _MICRO).to_integral_value(rounding="ROUND_UP"))


def in_usd(micro: int) -> Decimal:
    return Decimal(micro) / _MICRO
