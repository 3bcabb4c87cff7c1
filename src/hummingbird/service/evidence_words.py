"""What a note says of its own evidence (N6): what was looked at, what was not, and how its quotations fared.

Pure, and Markdown of our own: names are others' words and stand as code.
"""

from collections.abc import Iterator, Sequence

from hummingbird.domain.citation_limits import COVERED_NAMES
from hummingbird.evidence.citations.coverage import Coverage
from hummingbird.evidence.citations.wording import counted, sentences
from hummingbird.service.investigating import Conducted
from hummingbird.service.wording import code


def evidence(conducted: Conducted) -> tuple[str, ...]:
    """For the end of a note: one paragraph, or none where there is nothing to say, or the analysis is elsewhere."""
    lines = () if conducted.repeats else told(conducted)
    return ("<br>\n".join(f"<sub>{line}</sub>" for line in lines),) if lines else ()


def told(conducted: Conducted) -> tuple[str, ...]:
    """Line by line."""
    coverage = conducted.coverage
    looked, missed = list(_looked_at(coverage)), list(_not_looked_at(coverage))
    lines = []
    if looked:
        lines.append(f"Looked at: {'; '.join(looked)}.")
    if missed:
        lines.append(f"Not looked at: {'; '.join(missed)}.")
    return (*lines, *sentences(conducted.tallies))


def _looked_at(coverage: Coverage) -> Iterator[str]:
    if coverage.logs:
        yield f"the {'log' if len(coverage.logs) == 1 else 'logs'} of {_names(coverage.logs)}"
    if coverage.elsewhere:
        yield (
            "1 log or result of other systems"
            if coverage.elsewhere == 1
            else (f"{coverage.elsewhere} logs and results of other systems")
        )
    if coverage.report:
        yield "the test report"
    if coverage.diff:
        files = f" ({counted(coverage.files, 'file')})" if coverage.files else ""
        yield f"the diff{files}"
    if coverage.previewed:
        yield f"{counted(coverage.previewed, 'long result')} through previews and searches"


def _not_looked_at(coverage: Coverage) -> Iterator[str]:
    if coverage.unread:
        yield f"the {'log' if len(coverage.unread) == 1 else 'logs'} of {_names(coverage.unread)}, failed"
    if coverage.without_text:
        yield f"{_names(coverage.without_text)}, which GitLab leaves out of the diff for size"
    if coverage.broken_off:
        yield f"the rest of what {_names(coverage.broken_off)} broke off"
    if coverage.failed:
        yield f"what {_names(coverage.failed)} could not get"


def _names(names: Sequence[str]) -> str:
    told = ", ".join(map(code, names[:COVERED_NAMES]))
    return f"{told} and {len(names) - COVERED_NAMES} more" if len(names) > COVERED_NAMES else told
