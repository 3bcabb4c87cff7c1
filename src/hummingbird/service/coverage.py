"""Write the paragraph of a note about its evidence: what was read, what was not, and which quotations were checked.

The text is our own Markdown; names come from elsewhere and are shown as code.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from hummingbird.core.errors import GitLabWriteError
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.evidence.bounds import COVERED_NAMES
from hummingbird.evidence.citations.checker import describe_citations, pluralize
from hummingbird.evidence.citations.coverage import Coverage
from hummingbird.gitlab.write.protocol import CommitCheck, GitLabWriter
from hummingbird.models.model_names import DIGEST
from hummingbird.service.note_text import inline_code
from hummingbird.service.protocols import InvestigationResult

_FAILED = "failed"
_JOB = "/-/jobs/"


NO_LOG_READ = "The model read no log and no report of what failed, so rules alone answer here; what it said is below."


def has_read_no_log(order: WorkOrder, result: InvestigationResult) -> bool:
    """Return whether a model answered about a failure without a look at any log or report of it."""
    coverage, verdict = result.coverage, result.verdict
    if order.cause not in (OrderCause.PIPELINE, OrderCause.COMMAND) or result.is_known_failure:
        return False
    about_failure = bool(verdict.jobs if verdict is not None else coverage.unread)
    seen = coverage.logs or coverage.elsewhere or coverage.report
    return about_failure and result.model != DIGEST and result.outcome.answered and not seen


async def add_failed_checks(result: InvestigationResult, order: WorkOrder, forge: GitLabWriter) -> InvestigationResult:
    """Add failed checks that the run did not read to the coverage of a pipeline's order.

    If GitLab does not answer, the result is returned unchanged.
    """
    if order.cause is not OrderCause.PIPELINE or not order.sha:
        return result
    with suppress(GitLabWriteError):
        checks = await forge.checks(order.sha, order.pipeline_id)
        return replace(result, coverage=_add_unread_jobs(result.coverage, checks))
    return result


def _add_unread_jobs(coverage: Coverage, checks: Sequence[CommitCheck]) -> Coverage:
    """Add failed jobs whose log was not read.

    Checks of other systems count only if no result of another system was read: it is not known which of them that was.
    """
    named = {*coverage.logs, *coverage.unread}
    failed = [one for one in checks if one.status == _FAILED and not one.allow_failure and one.name not in named]
    more = dict.fromkeys(one.name for one in failed if _JOB in one.url or not coverage.elsewhere)
    return replace(coverage, unread=(*coverage.unread, *more))


def evidence_paragraph(result: InvestigationResult) -> tuple[str, ...]:
    """Return the last paragraph of a note; empty if there is nothing to say or the analysis is in another note."""
    lines = () if result.is_known_failure else coverage_lines(result)
    return ("<br>\n".join(f"<sub>{line}</sub>" for line in lines),) if lines else ()


def coverage_lines(result: InvestigationResult) -> tuple[str, ...]:
    """Return the lines about what was looked at, what was not, and the citations."""
    coverage = result.coverage
    read, missed = list(_parts_read(coverage)), list(_parts_missing(coverage))
    lines = []
    if read:
        lines.append(f"Looked at: {'; '.join(read)}.")
    if missed:
        lines.append(f"Not looked at: {'; '.join(missed)}.")
    return (*lines, *describe_citations(result.tallies))


def _parts_read(coverage: Coverage) -> Iterator[str]:
    if coverage.logs:
        yield f"the {'log' if len(coverage.logs) == 1 else 'logs'} of {_list_names(coverage.logs)}"
    if coverage.elsewhere:
        yield (
            "1 log or result of other systems"
            if coverage.elsewhere == 1
            else (f"{coverage.elsewhere} logs and results of other systems")
        )
    if coverage.report:
        yield "the test report"
    if coverage.diff:
        files = f" ({pluralize(coverage.files, 'file')})" if coverage.files else ""
        yield f"the diff{files}"
    if coverage.previewed:
        yield f"{pluralize(coverage.previewed, 'long result')} through previews and searches"


def _parts_missing(coverage: Coverage) -> Iterator[str]:
    if coverage.unread:
        yield f"the {'log' if len(coverage.unread) == 1 else 'logs'} of {_list_names(coverage.unread)}, failed"
    if coverage.without_text:
        yield f"{_list_names(coverage.without_text)}, which GitLab leaves out of the diff for size"
    if coverage.broken_off:
        yield f"the rest of what {_list_names(coverage.broken_off)} broke off"
    if coverage.failed:
        yield f"what {_list_names(coverage.failed)} could not get"


def _list_names(names: Sequence[str]) -> str:
    listed = ", ".join(map(inline_code, names[:COVERED_NAMES]))
    return f"{listed} and {len(names) - COVERED_NAMES} more" if len(names) > COVERED_NAMES else listed
