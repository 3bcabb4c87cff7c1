"""A branch that is pushed to and reviewed again and again: git says what differs, and a reviewer reports every line
with `defect` in it each time, in other words. GitLab is a list of threads here, so that there can be many rounds."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from hummingbird.agent.tools.finding_report import ReportFindingTool
from hummingbird.core.diffs import CommitComparison, FileDiff
from hummingbird.core.errors import CallDenied, GitLabNotFound
from hummingbird.core.findings import ReviewFinding, Severity, finding_fingerprint
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.gitlab.webhook_events import MergeRequestState
from hummingbird.gitlab.write.protocol import (
    GitLabWriter,
    MergeRequestDetails,
    MergeRequestThread,
    NoteKind,
    NoteMarker,
    ThreadNote,
)
from hummingbird.service.finding_lifecycle import FindingState, ReviewContext, TrackedFinding, track_findings
from hummingbird.service.findings import FindingsStatus
from tests.core.git_trees import between, committed

WORKFLOW, DEFECT = "code-review", "defect"


@dataclass
class Branch:
    """`target` and `feature` are the trees, by path; whoever tests changes them and calls `reviewed`."""

    folder: Path
    target: dict[str, str]
    feature: dict[str, str]
    threads: list[MergeRequestThread] = field(default_factory=list)
    followed: tuple[TrackedFinding, ...] = ()
    base: str = ""
    head: str = ""
    rounds: int = 0
    forgotten: set[str] = field(default_factory=set)

    async def diffs(self, iid: int) -> tuple[FileDiff, ...]:
        return between(self.folder, self.base, self.head)

    async def compare_commits(self, old: str, new: str) -> CommitComparison:
        if old in self.forgotten:
            raise GitLabNotFound("It is not there.")
        return CommitComparison(between(self.folder, old, new))

    async def reviewed(self) -> list[str]:
        """One round; the lines that were newly said something of."""
        self.rounds += 1
        self.base, self.head = committed(self.folder, self.target), committed(self.folder, self.feature)
        order = _order(self.rounds, self.head)
        review = await track_findings(cast(GitLabWriter, self), order, self.request, self.threads)
        self.followed = review.tracked
        said = [code for finding, code in await self._found(review) if self._posted(review, order, finding, code)]
        end = FindingsStatus(review.tracked)
        repaired, back = (
            {thread.id for thread in some} for some in (end.threads_to_resolve(), end.threads_to_reopen())
        )
        self.threads = [_ended(thread, thread.id in repaired, thread.id in back) for thread in self.threads]
        return said

    @property
    def request(self) -> MergeRequestDetails:
        change = MergeRequestState(7, self.head, "feature", "main", False, "opened")
        return MergeRequestDetails(
            change=change, project="p", author="a", title="", url="", base_sha=self.base, start_sha=self.base
        )

    async def _found(self, review: ReviewContext) -> list[tuple[ReviewFinding, str]]:
        """What the tool has taken."""
        tool, codes = ReportFindingTool(review.diff, review.earlier), dict[tuple[str, int], str]()
        for path, line, code in review.diff.iter_lines():
            if DEFECT in code:
                codes[path, line] = code
                await _reported(tool, path, line, f"In round {self.rounds}: {code.split()[-1]} is wrong.")
        return [(finding, codes[finding.path, finding.line]) for finding in review.new_findings(tool.findings)]

    def _posted(self, review: ReviewContext, order: WorkOrder, finding: ReviewFinding, code: str) -> bool:
        marker = NoteMarker(
            id=order.session_id,
            wf=WORKFLOW,
            sha=self.head,
            order=order.id,
            part=NoteKind.FINDING,
            finding=finding_fingerprint(finding, code),
        )
        number = 100 * self.rounds + len(self.threads)
        note = ThreadNote(
            id=number,
            author_id=1,
            by_bot=True,
            internal=False,
            marker=marker,
            path=finding.path,
            line=finding.line,
            at=self.head,
        )
        self.threads.append(MergeRequestThread(id=f"t{number}", notes=(note,), individual=False, resolved=False))
        return review.diff.find_position(finding.path, finding.line) is not None

    def traced(self) -> None:
        """As GitLab does it: the notes of lines that stand in the new diff say where they are now."""
        now = {one.thread.id: one for one in self.followed if one.line and one.state is not FindingState.FIXED}
        self.threads = [_traced(thread, now.get(thread.id), self.head) for thread in self.threads]

    def dismiss(self, thread: MergeRequestThread) -> None:
        """By a person."""
        self.threads = [replace(each, resolved=True) if each.id == thread.id else each for each in self.threads]

    def states(self) -> list[FindingState]:
        return [one.state for one in self.followed]


async def _reported(tool: ReportFindingTool, path: str, line: int, text: str) -> None:
    given = {"file": path, "line": line, "severity": str(Severity.MAJOR), "text": text}
    try:
        await tool(given, ToolContext("session", "call"))
    except CallDenied:
        return


def _order(number: int, head: str) -> WorkOrder:
    return WorkOrder(
        id=f"order-{number}",
        session_id=f"session-{number}",
        cause=OrderCause.MERGE_REQUEST,
        workflow=WORKFLOW,
        project="p",
        mr_iid=7,
        sha=head,
    )


def _ended(thread: MergeRequestThread, repaired: bool, back: bool) -> MergeRequestThread:
    if repaired:
        return replace(thread, resolved=True, resolved_by_bot=True)
    return replace(thread, resolved=False, resolved_by_bot=False) if back else thread


def _traced(thread: MergeRequestThread, now: TrackedFinding | None, head: str) -> MergeRequestThread:
    if now is None:
        return thread
    first, *others = thread.notes
    return replace(thread, notes=(replace(first, path=now.path, line=now.line, at=head), *others))


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def tree(**files: list[str]) -> dict[str, str]:
    return {f"{name}.py": text(lines) for name, lines in files.items()}
