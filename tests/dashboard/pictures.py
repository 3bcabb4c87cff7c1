"""Fills the service's stores with some weeks of runs, and takes pictures of every page: `make pictures`.

    python -m tests.dashboard.pictures FOLDER [FOLDER-OF-THE-DOCUMENTED-ONES]

The runs are invented, and written through the stores that the service has: pages cannot tell them from real ones.
"""

import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path

import httpx2

from hummingbird.app.session_holder import SPENDING_FILE
from hummingbird.core.background import JobStatus, PipelineStatus, RunBackground
from hummingbird.core.events import EntryRecorded
from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelCalled,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage, ToolCall
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.protocols.storage import AnalysisLink, FailureSighting, VotableNote
from hummingbird.core.usage import TokenUsage
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement, ObservedFailure, VerdictReason
from hummingbird.core.votes import VoteCount
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.spending_store import SqliteSpendingStore
from hummingbird.storage.vote_store import SqliteVoteStore
from tests.dashboard.browser import browser
from tests.journeys.service.stage import Stage, staged

DAY_S = 86_400.0
WIDTHS = (390, 768, 1440)
WINDOW_PX = 745  # height of a documented picture
DOCUMENTED = {"overview": 1440, "pipelines": 1440, "session": 1440}  # pages whose pictures are in docs/pictures
JOBS = ("lint", "build", "unit-tests", "integration-tests", "ui-tests", "image", "deploy-preview")
PROJECTS = ("acme/shop", "acme/payments-api", "acme/mobile", "platform/images")
MODELS = ("anthropic:claude-sonnet-5-5", "anthropic:claude-sonnet-5-5", "google:gemini-3-flash", "digest")


@dataclass(frozen=True, slots=True)
class SampleFailure:
    """A failure that happens again and again; `weight` says how often beside the others."""

    job: str
    origin: FailureOrigin
    title: str
    class_: str
    kind: str
    log: str
    weight: int

    @property
    def fingerprint(self) -> str:
        return digest_of(self.title)[:16]


def digest_of(text: str) -> str:
    """Return 32 hex digits, the same ones for the same text."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


FAILURES = (
    SampleFailure(
        "unit-tests",
        FailureOrigin.CHANGE,
        "CartTest.totalWithVoucher: expected 42.00 but was 42.50",
        "test",
        "test failure",
        "CartTest > totalWithVoucher() FAILED\n"
        "    org.opentest4j.AssertionFailedError: expected: <42.00> but was: <42.50>"
        "\n        at shop.CartTest.totalWithVoucher(CartTest.java:87)\n214 tests completed, 1 failed",
        7,
    ),
    SampleFailure(
        "build",
        FailureOrigin.CHANGE,
        "error[E0308]: mismatched types in src/ledger/booking.rs:112",
        "code",
        "compiler error",
        "error[E0308]: mismatched types\n   --> src/ledger/booking.rs:112:21\n    |\n"
        "112 |         let total: u64 = sum(&rows);"
        "\n    |                    ---   ^^^^^^^^^^ expected `u64`, found `i64`\nerror: could not compile `payments`",
        5,
    ),
    SampleFailure(
        "ui-tests",
        FailureOrigin.FLAKY,
        "checkout.spec.ts: Timeout 30000ms exceeded waiting for locator('#pay')",
        "test",
        "test failure",
        "  1) checkout.spec.ts:41:3 > pays with a stored card\n"
        "    TimeoutError: locator.click: Timeout 30000ms exceeded."
        "\n    Call log:\n      - waiting for locator('#pay')\n  1 flaky, 88 passed (4.2m)",
        6,
    ),
    SampleFailure(
        "image",
        FailureOrigin.INFRASTRUCTURE,
        "registry.example: 503 Service Unavailable while pulling base image",
        "infrastructure",
        "network",
        "STEP 1/9: FROM registry.example/base/python:3.13\nError: initializing source: reading manifest: received "
        "unexpected HTTP status: 503 Service Unavailable\nERROR: Job failed: exit code 125",
        4,
    ),
    SampleFailure(
        "integration-tests",
        FailureOrigin.TARGET,
        'test_migration_0042: relation "voucher" already exists',
        "test",
        "test failure",
        "FAILED tests/db/test_migrations.py::test_migration_0042\n"
        'E   psycopg.errors.DuplicateTable: relation "voucher" '
        "already exists\n=== 1 failed, 340 passed in 71.20s ===",
        3,
    ),
    SampleFailure(
        "integration-tests",
        FailureOrigin.UNKNOWN,
        "Process completed with exit code 137",
        "infrastructure",
        "killed",
        "tests/load/test_bulk.py ....\nKilled\nERROR: Job failed: command terminated with exit code 137",
        2,
    ),
    SampleFailure(
        "lint",
        FailureOrigin.CHANGE,
        "ruff: F401 `decimal.Decimal` imported but unused",
        "code",
        "lint",
        "src/shop/prices.py:3:21: F401 [*] `decimal.Decimal` imported but unused\nFound 1 error.",
        3,
    ),
)
TITLES = (
    "Apply vouchers after shipping",
    "Round totals half up",
    "Store cards of returning customers",
    "Split the ledger by currency",
    "Update the base image to Python 3.13",
    "Cache price lists for an hour",
    "Retry webhooks that time out",
    "Drop the old checkout",
)


def sample_entries(
    number: int, at: float, project: str, failure: SampleFailure, draw: random.Random
) -> list[JournalEntry]:
    """Return the journal of one investigated pipeline."""
    iid, pipeline, job_id = 100 + number % 23, 90_000 + 10 * number, 700_000 + number
    model, took = draw.choice(MODELS), draw.uniform(35, 400) * (4 if draw.random() < 0.07 else 1)
    flaky, is_target = failure.origin is FailureOrigin.FLAKY, failure.origin is FailureOrigin.TARGET

    def ended(name: str) -> str:
        later = JOBS.index(name) > JOBS.index(failure.job)
        return "failed" if name == failure.job else "skipped" if later and draw.random() < 0.6 else "success"

    own = tuple(
        JobStatus(name=name, status=ended(name), id=job_id, retried=flaky and name == failure.job) for name in JOBS
    )
    main = tuple(
        JobStatus(name=name, status="failed" if is_target and name == failure.job else "success", id=job_id + 1)
        for name in JOBS
    )
    seen = ObservedFailure(
        fingerprint=failure.fingerprint,
        kind=failure.kind,
        class_=failure.class_,
        title=failure.title,
        excerpt=failure.log,
    )
    background = RunBackground(
        cause="command" if number % 9 == 0 else "pipeline",
        asked_at=at - 4,
        title=TITLES[iid % len(TITLES)],
        branch=f"feature/{iid}",
        target_branch="main",
        pipelines=(
            PipelineStatus(pipeline_id=pipeline, mr_iid=iid, sha=digest_of(str(pipeline)), jobs=own),
            PipelineStatus(pipeline_id=pipeline - 7, branch="main", sha=digest_of(str(number)), jobs=main),
        ),
        failures=(seen,),
    )
    reason = VerdictReason(sign="sample", speaks_for=failure.origin, text="The rules say so.")
    judged = JobJudgement(
        job=failure.job,
        origin=failure.origin,
        sure=0.9,
        reasons=(reason,),
        fingerprints=(failure.fingerprint,),
        job_id=job_id,
    )
    order = {"workflow": "analyze-failures", "project": project, "mr_iid": iid, "pipeline_id": pipeline}
    price = Decimal(0) if model == "digest" else Decimal(str(round(draw.uniform(0.02, 0.35), 4)))
    quoted = "\n".join(failure.log.split("\n")[:2])
    answer = (
        f"**`{failure.job}`**: {failure.title}\n\nThe log of the job says so:\n\n```\n{quoted}\n```\n\n"
        "**Next:** look at the line that is named there, and run the job again when it is fixed."
    )
    call = ToolCall(id=f"t{number}", name="gitlab_get_job_log", arguments=json.dumps({"job_id": job_id}))
    files = ToolCall(id=f"d{number}", name="gitlab_get_mr_diff", arguments=json.dumps({"iid": iid}))
    used = TokenUsage(
        fresh=draw.randint(900, 4_000), cache_read=draw.randint(3_000, 22_000), output=draw.randint(150, 900)
    )
    half = price / 2
    return [
        SessionOpened(session_id=digest_of(f"{number} {project}"), system="", format=JOURNAL_FORMAT, at=at),
        RunStarted(run_id="r", model=model, at=at, background=background),
        UserSaid(text=json.dumps(order), source=MessageSource.ORDER, at=at),
        VerdictRecorded(run_id="r", verdict=FailureVerdict(origin=failure.origin, sure=0.9, jobs=(judged,)), at=at),
        ModelCalled(call_id="1", model=model, messages=1, at=at + 1),
        ModelAnswered(
            call_id="1",
            model=model,
            message=AssistantMessage(text="I read the log and the diff.", calls=(call, files)),
            usage=used,
            cost_usd=half,
            at=at + took * 0.3,
        ),
        ToolStarted(call_id=call.id, name=call.name, arguments=call.arguments, at=at + took * 0.3),
        ToolStarted(call_id=files.id, name=files.name, arguments=files.arguments, at=at + took * 0.3),
        ToolFinished(
            call_id=files.id, name=files.name, text="1 file changed", seconds=took * 0.05, at=at + took * 0.35
        ),
        ToolFinished(
            call_id=call.id,
            name=call.name,
            text=failure.log,
            outcome=ToolOutcome.OK,
            seconds=took * 0.2,
            at=at + took * 0.5,
        ),
        ModelCalled(call_id="2", model=model, messages=4, at=at + took * 0.5),
        ModelAnswered(
            call_id="2", model=model, message=AssistantMessage(text=answer), usage=used, cost_usd=half, at=at + took
        ),
        RunEnded(
            run_id="r",
            reason=EndReason.COST_LIMIT if number % 41 == 40 else EndReason.COMPLETED,
            text=answer,
            sentence="The limit of this run's cost is reached." if number % 41 == 40 else "",
            answered=True,
            at=at + took,
        ),
    ]


async def fill_with_runs(stage: Stage, days: int = 30, *, seed: int = 7) -> list[str]:
    """Write the runs of so many days, and what the service remembers of them. Returns the ids, oldest first."""
    draw, state = random.Random(seed), stage.folder / "state"
    sessions = FolderSessionStore(state / "sessions")
    now, made, number = time.time(), list[str](), 0
    for back in reversed(range(days)):
        weekend = int(now / DAY_S - back) % 7 in (2, 3)
        moments = [draw.uniform(0.02, 0.6) for _ in range(draw.randint(1, 3) if weekend else draw.randint(4, 11))]
        for moment in sorted(moments, reverse=True):
            number += 1
            project = PROJECTS[min(3, int(abs(draw.gauss(0, 1.4))))]
            failure = draw.choices(FAILURES, [one.weight for one in FAILURES])[0]
            at = now - back * DAY_S - moment * DAY_S
            entries = sample_entries(number, at, project, failure, draw)
            made.append(await save_session(sessions, entries))
            await _remember(stage, project, failure, entries, number)
    spending = SqliteSpendingStore(state / "sessions" / SPENDING_FILE, time.time)
    for project, usd in zip(PROJECTS, ("3.41", "1.02", "0.55", "0.12"), strict=True):
        await spending.add(project, Decimal(usd))
    return made


async def save_session(sessions: SessionStore, entries: Sequence[JournalEntry]) -> str:
    opened = entries[0]
    assert isinstance(opened, SessionOpened)
    session = await sessions.open(opened.session_id)
    for entry in entries:
        session.journal.append(entry)
    await session.journal.commit()
    await session.release()
    return opened.session_id


async def _remember(
    stage: Stage, project: str, failure: SampleFailure, entries: Sequence[JournalEntry], number: int
) -> None:
    state = stage.folder / "state"
    failures, votes = SqliteKnownFailureStore(state / "known_failures.sqlite"), SqliteVoteStore(state / "votes.sqlite")
    opened, ended, iid = entries[0], entries[-1], 100 + number % 23
    assert isinstance(opened, SessionOpened)
    link = f"{stage.scene.url('gitlab')}/{project}/-/merge_requests/{iid}#note_{number}"
    await failures.record_sighting(
        FailureSighting(
            project=project,
            fingerprint=failure.fingerprint,
            occurrence=str(number),
            at=opened.at,
            kind=failure.kind,
            class_=failure.class_,
            title=failure.title,
            excerpt=failure.log,
            merge_request=f"!{iid}",
            branch=f"feature/{iid}",
            link=link,
        )
    )
    await failures.record_analysis(
        project, failure.fingerprint, AnalysisLink(at=ended.at, merge_request=f"!{iid}", link=link), since=0.0
    )
    if number % 3 == 0:
        model = MODELS[number % 4]
        note = VotableNote(
            project=project,
            iid=iid,
            note_id=number,
            workflow="analyze-failures",
            model=model,
            session_id=opened.session_id,
            posted_at=ended.at,
        )
        await votes.record_note(note)
        await votes.record_votes(note, VoteCount(int(number % 5 != 0), int(number % 10 == 0)), ended.at + 60)


def begin_live_run(stage: Stage) -> None:
    """Let one run be under way, as the pages see it."""
    live = stage.serving._live
    assert live is not None
    order = WorkOrder(
        id="o",
        session_id="live",
        cause=OrderCause.PIPELINE,
        workflow="analyze-failures",
        project=PROJECTS[0],
        mr_iid=117,
    )
    observe, now = live(order), time.time()
    for entry in (
        RunStarted(run_id="o", model=MODELS[0], at=now - 40),
        ModelCalled(call_id="1", model=MODELS[0], messages=1, at=now - 39),
        ModelAnswered(
            call_id="1",
            model=MODELS[0],
            message=AssistantMessage(text=""),
            usage=TokenUsage(fresh=3_000, cache_read=9_000, output=80),
            cost_usd=Decimal("0.0214"),
            at=now - 20,
        ),
        ToolStarted(call_id="t", name="gitlab_get_job_log", arguments="{}", at=now - 20),
    ):
        observe(EntryRecorded(entry))


def page_addresses(session_id: str, fingerprint: str) -> dict[str, str]:
    """Return the pages by the names of their pictures."""
    session = f"/sessions/{session_id}"
    return {
        "overview": "/",
        "runs": "/runs",
        "runs-search": "/runs?text=voucher&verdict=change",
        "pipelines": f"/pipelines?project={PROJECTS[0]}",
        "pipelines-main": f"/pipelines?project={PROJECTS[0]}&of=branches",
        "failures": f"/failures?project={PROJECTS[0]}",
        "failure": f"/failure?project={PROJECTS[0]}&fingerprint={fingerprint}",
        "quality": "/quality",
        "costs": "/costs",
        "session": session,
        "transcript": f"{session}/transcript",
        "entry": f"{session}/entries/10",
        "missing": "/sessions/nothing-here",
    }


async def find_run(stage: Stage) -> str | None:
    """Return the newest run of the first model about the first failure."""
    asked = {"model": MODELS[0], "project": PROJECTS[0], "text": FAILURES[0].title, "limit": "1"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:
        items = (await client.get("/api/v1/runs", params=asked)).json()["items"]
    return str(items[0]["id"]) if items else None


async def take_pictures(stage: Stage, pages: dict[str, str], folder: Path, theme: str) -> None:
    """Save a picture of each page in each width."""
    for wide in WIDTHS:
        async with browser(dark=theme == "dark", wide=wide) as seen:
            for name, path in pages.items():
                await seen.page.goto(f"http://127.0.0.1:{stage.serving.port}{path}", wait_until="domcontentloaded")
                file = folder / f"{name}-{wide}-{theme}.png"
                if DOCUMENTED.get(name) == wide:
                    await seen.page.set_viewport_size({"width": wide, "height": WINDOW_PX})
                    await seen.page.screenshot(path=file)
                else:
                    await seen.page.screenshot(path=file, full_page=True)
                wider = await seen.page.evaluate("document.documentElement.scrollWidth - innerWidth")
                print(f"{file.name}{f': {wider} px too wide' if wider > 0 else ''}")  # noqa: T201 - a command


async def main(folder: Path) -> None:
    """Take all pictures: of a filled service, and of the start page of an empty one."""
    with tempfile.TemporaryDirectory() as made:
        async with staged("failing-test", Path(made) / "empty") as stage:
            for theme in ("light", "dark"):
                await take_pictures(stage, {"empty": "/", "empty-pipelines": "/pipelines"}, folder, theme)
        async with staged("failing-test", Path(made) / "full", begin=False) as stage:
            stage.configure({"budgets": {"usd_per_run": 0.5, "usd_per_day": 4}}, {"analyze-failures": {}})
            ids = await fill_with_runs(stage)
            await stage.serve()
            begin_live_run(stage)
            shown = await find_run(stage) or ids[-1]
            for theme in ("light", "dark"):
                await take_pictures(stage, page_addresses(shown, FAILURES[0].fingerprint), folder, theme)


if __name__ == "__main__":
    pictures = Path(sys.argv[1])
    pictures.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(pictures))
    for documented in sys.argv[2:]:
        for name, width in DOCUMENTED.items():
            shutil.copyfile(pictures / f"{name}-{width}-light.png", Path(documented) / f"{name}.png")
