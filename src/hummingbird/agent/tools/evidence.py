"""Previews chosen by what explains a failure, not by position (T5).

What an output is decides who reads it: a test report or a Tekton object by its structure, everything else as a log.
Where nothing stands out, head and tail are shown. Knows nothing of sandboxes or tools.
"""

from hummingbird.agent.tools.preview import HeadTail, Preview
from hummingbird.domain.limits import PREVIEW_BYTES
from hummingbird.evidence import LogPreview
from hummingbird.evidence.structured import ObjectPreview, ReportPreview


def by_evidence(_suffix: str) -> Preview:
    """A new one. Its first letter says what an output is, whatever it is called: files are read with `cat` too."""
    return EvidencePreview()


class EvidencePreview:
    def __init__(self) -> None:
        self._begun = False
        self._structured: ReportPreview | ObjectPreview | None = None
        self._log = LogPreview()
        self._plain = HeadTail()

    def feed(self, chunk: bytes) -> None:
        if not self._begun and (said := chunk.lstrip(b"\xef\xbb\xbf \t\r\n")):
            self._begun = True
            self._structured = ReportPreview() if said[:1] == b"<" else ObjectPreview() if said[:1] in b"[{" else None
        if self._structured is not None:
            self._structured.feed(chunk)
        self._log.feed(chunk)
        self._plain.feed(chunk)

    def text(self, budget_bytes: int) -> str:
        budget = min(budget_bytes, PREVIEW_BYTES)
        if self._structured is not None and self._structured.recognised:
            return self._structured.text(budget)
        return self._log.text(budget, ends=True) if self._log.stands_out else self._plain.text(budget)
