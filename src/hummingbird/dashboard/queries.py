"""The protocol through which the dashboard gets its data. hummingbird.app implements it.

Everything is read-only except `continue_session`, which queues a message.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from hummingbird.core.journal import JournalEntry
from hummingbird.core.protocols.run_figures import RunFiguresSource
from hummingbird.core.protocols.sessions import SearchHit
from hummingbird.core.protocols.storage import FailureDay, KnownFailure, RatedNote
from hummingbird.core.sessions import SessionSummary

# Limits of the dashboard: sizes, counts and times.


RUNS_SHOWN = 100  # sessions on one page
SEARCH_SHOWN = 20
QUERY_CHARS = 300  # of one value in an address
FAILURES_SHOWN = 100
FAILURE_PROJECTS = 500
TREND_DAYS = 30
PERIODS = (7, 30, 90)  # days that overview and costs can show
PERIOD = 30
NEWEST_SHOWN = 8  # sessions on the overview
JOBS_LISTED = 3  # failed jobs of a session in a list
PIPELINES_SHOWN = 40  # rows of the grid
GRID_JOBS = 60  # columns of the grid
FAILURE_RUNS_SHOWN = 50
BUDGETS_SHOWN = 20  # projects whose spending of today is looked up

ENTRY_SHOWN_CHARS = 4_000  # of one entry on the session's page; the entry's own page shows the rest
ENTRY_CHARS = 2_000_000  # of one entry on the entry's own page
TRANSCRIPT_CHARS = 1_000_000  # of a transcript on its page; as Markdown it is whole
ROWS_AT_ONCE = 100  # rows of a session page rendered in one step, before other pages get a turn
PAGES_AT_ONCE = 4  # render steps that run in parallel
PAGES_OPEN = 32  # session pages being sent: each holds a whole journal in memory
PAGE_S = 120.0  # longest time to send a page, however slow the reader is
ANSWERS_HELD = 64  # answers whose citation check is cached
QUOTES_LOOKED_FOR = 2_000  # quoted lines of an answer that are searched in the tool results

LIVE_VIEWERS = 500
LIVE_PAUSE_S = 0.25  # shortest pause between two updates to one viewer
LIVE_WRITES_PER_S = 100  # updates to all viewers together: with more viewers, each gets fewer
LIVE_FEW = 10  # up to this many viewers get updates whatever they cost
LIVE_SHARE = 0.02  # share of the process's CPU time that updates to more viewers may take
LIVE_WRITE_CPU_S = 0.0002  # CPU time of one update to one viewer, as measured
LIVE_LATEST_S = 10.0  # longest time that an update may be held back for that share
LIVE_ALIVE_S = 20.0  # silence before a keep-alive comment is sent: proxies close idle connections
LIVE_BEHIND_BYTES = (
    16 * 1024 * 1024
)  # updates kept for all slow viewers; a viewer who needs older ones reloads the page
LIVE_PIECE_BYTES = 64 * 1024  # about this much is sent to one viewer at a time
LIVE_READS_AT_ONCE = 4  # journals read in parallel for live pages
LIVE_BACKLOG = 500  # a page that lacks more entries than this when it starts to follow is reloaded
LIVE_SENTENCES = 200  # messages about sessions kept for their pages
LIVE_LOOK_S = 3.0  # interval for rereading a session that may run in another process
LIVE_LOOK_CAP_S = 30.0  # longest such interval, after several reads without news

VISIT_S = 12 * 3600  # lifetime of a login cookie
TOKEN_CHARS = 16  # shortest token
WRONG_TOKENS = 10  # wrong tokens per minute, from all visitors together
FORM_BYTES = 512 * 1024  # largest submitted form
MESSAGE_CHARS = 32_000  # longest message sent from a page

FILES_SHOWN = 2_000  # files listed of one sandbox
FILE_BYTES = 64 * 1024 * 1024  # largest sandbox file that can be downloaded
FILES_S = 60.0  # longest time to list or read a sandbox
LOOKS_AT_ONCE = 2  # sandboxes started in parallel to show their files


@dataclass(frozen=True, slots=True)
class SandboxFile:
    """A file of a session's sandbox; `size` is in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class SandboxList:
    """The files of a session's sandbox; `more` is True when the list is not complete."""

    files: Sequence[SandboxFile]
    more: bool = False


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many events and orders are in the queue, those in work included; None if that cannot be told."""

    messages: int | None = None


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The limits of a workflow in a project, None where there is none, and what the project has spent today.

    `spent_today` is None if it cannot be told.
    """

    project: str
    workflow: str
    usd_per_run: float | None
    usd_per_day: float | None
    spent_today: float | None


class DashboardQueries(RunFiguresSource, Protocol):
    """What the dashboard can ask for.

    Methods raise HummingbirdError with a sentence for people: UsageError for what does not exist, others for what does
    not work at the moment.
    """

    @property
    def gitlab(self) -> str:
        """The address of GitLab, without a slash at its end."""
        ...

    async def queue_state(self) -> QueueState: ...

    async def budget_uses(self, projects: Sequence[str]) -> Sequence[BudgetUse]:
        """Return the limits that hold in these projects, and how much of them is used today."""
        ...

    async def find_summary(self, session_id: str) -> SessionSummary | None:
        """Return the summary from the index, which is fast; None for a session that is not in the index (yet)."""
        ...

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        """Return the entries unmasked (the pages mask what they show); empty if there is no such session."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[SearchHit]: ...

    async def load_ratings(self, since: float) -> Sequence[RatedNote]:
        """Return the results posted since then with their votes, newest first."""
        ...

    async def list_projects(self) -> Sequence[str]:
        """Return the projects with known failures, the one with the latest failure first."""
        ...

    async def list_failures(self, project: str, limit: int) -> Sequence[KnownFailure]: ...

    async def find_failure(self, project: str, fingerprint: str) -> KnownFailure | None: ...

    async def failure_trend(self, project: str, since: date) -> Sequence[FailureDay]: ...

    async def failure_trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]: ...

    async def list_files(self, session_id: str) -> SandboxList:
        """List the files of the session's sandbox as it was last saved."""
        ...

    async def open_file(self, session_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """Return the content of a file in pieces. Close the generator when you stop early."""
        ...

    async def continue_session(self, session_id: str, message: str, once: str) -> None:
        """Queue a message that continues the session; a second call with the same `once` does nothing.

        Raises UsageError for a session that the dashboard cannot continue, with a sentence that says how to.
        """
        ...
