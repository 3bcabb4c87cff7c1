"""The lines of a log that explain its failure, within a budget: for a whole text, or while it streams by (T5, V1).

Where nothing stands out there is nothing to show, and whoever asks falls back to something plainer.
"""

from hummingbird.evidence.logs.baseline import Baseline
from hummingbird.evidence.logs.choosing import Chooser, lines_of
from hummingbird.evidence.logs.ends import head_and_tail
from hummingbird.evidence.logs.looked import Looked, look
from hummingbird.evidence.logs.reader import Reader


def preview(text: str, budget_bytes: int, *, baseline: str | None = None) -> str:
    """Numbered lines in the order of the log; never more bytes than that, never half a line but for very long ones."""
    reading = LogPreview(None if baseline is None else Baseline.of(baseline))
    reading.feed(text.encode("utf-8", "replace"))
    return reading.text(budget_bytes)


class LogPreview:
    """Streaming: feed it everything, then ask, as often as there are budgets."""

    def __init__(self, baseline: Baseline | None = None) -> None:
        self._reader = Reader()
        self._baseline = baseline
        self._looked: Looked | None = None

    def feed(self, chunk: bytes) -> None:
        self._reader.feed(chunk)

    def looked(self) -> Looked:
        if self._looked is None:
            self._looked = look(self._reader.kept(), self._baseline)
        return self._looked

    @property
    def stands_out(self) -> bool:
        return self.looked().stands_out

    def text(self, budget_bytes: int, *, ends: bool = False) -> str:
        """With `ends`, the first line and the last one are among them."""
        looked = self.looked()
        if not looked.stands_out:
            return head_and_tail(looked.rows, looked.total, budget_bytes)
        chooser = Chooser(looked.rows, looked.standing, budget_bytes + 1)  # no newline after the last line
        if ends:
            chooser.take_ends()
        chooser.choose()
        return lines_of(sorted(chooser.taken), looked.rows.numbers, looked.rows.texts)
