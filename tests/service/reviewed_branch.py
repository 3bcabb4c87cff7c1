"""A branch that is pushed to and reviewed again and again: git says what differs, and a reviewer reports every line
with `defect` in it each time, in other words. GitLab is a list of threads here, so that there can be many rounds."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from hummingbird.agent.tools.findings import ReportFinding
from hummingbird.domain.diffs import Comparison, FileDiff
from hummingbird.domain.errors import CallDenied, ForgeMissing
from hummingbird.domain.findings import Finding, Severity, fingerprint
from hummingbird.domain.incoming import Change
from hummingbird.domain.notes import Marker, Part
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.ports.forge import Forge, MergeRequest, NoteSeen, Thread
from hummingbird.ports.tool import ToolContext
from hummingbird.service.lifecycle import Followed, Review, State, following
from hummingbird.service.review_end import ReviewEnd
from tests.domain.git_trees import between, committed

WORKFLOW, DEFECT = "code-review", "defect"


@dataclass
class Branch:
    """`target` and `feature` are the trees, by path; whoever tests changes them and calls `reviewed`."""

    folder: Path
    target: dict[str, str]
    feature: dict[str, str]
    threads: list[Thread] = field(default_factory=list)
    followed: tuple[Followed, ...] = ()
    base: str = ""
    head: str = ""
    rounds: int = 0
    forgotten: set[str] = field(default_factory=set)

    async def diffs(self, iid: int) -> tuple[FileDiff, ...]:
        return between(self.folder, self.base, self.head)

    async def compare(self, old: str, new: str) -> Comparison:
        if old in self.forgotten:
            raise ForgeMissing("It is not there.")
        return Comparison(between(self.folder, old, new))

    async def reviewed(self) -> list[str]:
        """One round; the lines that were newly said something of."""
        self.rounds += 1
        self.base, self.head = committed(self.folder, self.target), committed(self.folder, self.feature)
        order = _order(self.rounds, self.head)
        review = await following(cast(Forge, self), order, self.request, self.threads)
        self.followed = review.followed
        said = [code for finding, code in await self._found(review) if self._posted(review, order, finding, code)]
        end = ReviewEnd(review.followed)
        mended, back = ({thread.id for thread in some} for some in (end.mended(), end.back()))
        self.threads = [_ended(thread, thread.id in mended, thread.id in back) for thread in self.threads]
        return said

    @property
    def request(self) -> MergeRequest:
        change = Change(7, self.head, "feature", "main", False, "opened")
        return MergeRequest(
            change=change, project="p", author="a", title="", url="", base_sha=self.base, start_sha=self.base
        )

    async def _found(self, review: Review) -> list[tuple[Finding, str]]:
        """What the tool has taken."""
        tool, codes = ReportFinding(review.diff, review.earlier), dict[tuple[str, int], str]()
        for path, line, code in review.diff.lines():
            if DEFECT in code:
                codes[path, line] = code
                await _reported(tool, path, line, f"In round {self.rounds}: {code.split()[-1]} is wrong.")
        return [(finding, codes[finding.path, finding.line]) for finding in review.fresh(tool.findings)]

    def _posted(self, review: Review, order: WorkOrder, finding: Finding, code: str) -> bool:
        marker = Marker(
            id=order.session_id,
            wf=WORKFLOW,
            sha=self.head,
            order=order.id,
            part=Part.FINDING,
            finding=fingerprint(finding, code),
        )
        number = 100 * self.rounds + len(self.threads)
        note = NoteSeen(
            id=number,
            author_id=1,
            by_bot=True,
            internal=False,
            marker=marker,
            path=finding.path,
            line=finding.line,
            at=self.head,
        )
        self.threads.append(Thread(id=f"t{number}", notes=(note,), individual=False, resolved=False))
        return review.diff.spot(finding.path, finding.line) is not None

    def traced(self) -> None:
        """As GitLab does it: the notes of lines that stand in the new diff say where they are now."""
        now = {one.thread.id: one for one in self.followed if one.line and one.state is not State.FIXED}
        self.threads = [_traced(thread, now.get(thread.id), self.head) for thread in self.threads]

    def dismiss(self, thread: Thread) -> None:
        """By a person."""
        self.threads = [replace(each, resolved=True) if each.id == thread.id else each for each in self.threads]

    def states(self) -> list[State]:
        return [one.state for one in self.followed]


async def _reported(tool: ReportFinding, path: str, line: int, text: str) -> None:
    given = {"file": path, "line": line, "severity": str(Severity.MAJOR), "text": text}
    try:
        await tool(given, ToolContext("session", "call"))
    except CallDenied:
        return


def _order(number: int, head: str) -> WorkOrder:
    return WorkOrder(
        id=f"order-{number}",
        session_id=f"session-{number}",
        cause=Cause.MERGE_REQUEST,
        workflow=WORKFLOW,
        project="p",
        mr_iid=7,
        sha=head,
    )


def _ended(thread: Thread, mended: bool, back: bool) -> Thread:
    if mended:
        return replace(thread, resolved=True, resolved_by_bot=True)
    return replace(thread, resolved=False, resolved_by_bot=False) if back else thread


def _traced(thread: Thread, now: Followed | None, head: str) -> Thread:
    if now is None:
        return thread
    first, *others = thread.notes
    return replace(thread, notes=(replace(first, path=now.path, line=now.line, at=head), *others))


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def tree(**files: list[str]) -> dict[str, str]:
    return {f"{name}.py": text(lines) for name, lines in files.items()}
