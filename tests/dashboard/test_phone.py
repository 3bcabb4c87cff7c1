"""The pages on a phone, in a real browser: nothing is wider than the window, whatever others wrote."""

import json
import time
from pathlib import Path

from hummingbird.core.background import JobStatus, PipelineStatus, RunBackground
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
    ToolStarted,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.protocols.storage import FailureSighting
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement, ObservedFailure
from hummingbird.core.votes import VoteCount
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.journals import FileJournal
from tests.dashboard.browser import browser
from tests.dashboard.test_dashboard import address
from tests.dashboard.test_hostile import SESSION, saved
from tests.dashboard.test_quality import voted
from tests.journeys.service.stage import Stage, staged

WORD = "org.example.VeryLongPackageName" * 8
LINE = "error: cannot find symbol in the class path " * 20
PHONE_PX = 390

WIDTH = "() => [document.documentElement.scrollWidth, document.body.scrollWidth]"
OPEN_ALL = "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"


def long_background() -> RunBackground:
    jobs = tuple(JobStatus(name=f"{number}-{WORD[:200]}", status="failed", id=9) for number in range(70))
    own = PipelineStatus(
        pipeline_id=7, mr_iid=7, sha=WORD[:40], jobs=(*jobs, JobStatus(name=WORD[:200], status="failed"))
    )
    main = PipelineStatus(pipeline_id=6, branch=WORD[:200], jobs=jobs)
    seen = ObservedFailure(fingerprint="f", kind="test", class_=WORD[:50], title=WORD)
    return RunBackground(cause=WORD[:50], title=WORD, branch=WORD[:200], pipelines=(own, main), failures=(seen,))


def long_entries() -> list[JournalEntry]:
    project = f"group/{WORD}"[:120]
    order = json.dumps({"workflow": "analyze-failures", "project": project, "mr_iid": 7, "message": WORD})
    table = f"| job | cause | where |\n|---|---|---|\n| {WORD} | {WORD} | {WORD} |"
    judged = JobJudgement(job=WORD[:200], origin=FailureOrigin.FLAKY, job_id=9, fingerprints=("f",))
    answer = f"# {WORD}\n\n{WORD} and `{WORD}`\n\n{table}\n\n```\n{LINE}\n```\n"
    return [
        SessionOpened(session_id=SESSION, system=LINE, format=JOURNAL_FORMAT),
        RunStarted(run_id="r", model=WORD, background=long_background()),
        UserSaid(text=order, source=MessageSource.ORDER),
        UserSaid(text=WORD),
        VerdictRecorded(run_id="r", verdict=FailureVerdict(origin=FailureOrigin.FLAKY, jobs=(judged,))),
        ModelCalled(call_id="1", model=WORD, messages=1),
        ModelAnswered(call_id="1", model=WORD, message=AssistantMessage(text=LINE)),
        ToolStarted(call_id="t", name=WORD[:60], arguments=WORD),
        ToolFinished(call_id="t", name=WORD[:60], text=f"{LINE}\n{WORD}\n" * 3),
        RunEnded(run_id="r", reason=EndReason.COMPLETED, text=answer, sentence=WORD, answered=True),
    ]


async def fill_with_long_words(stage: Stage) -> None:
    folder = stage.folder / "state" / "sessions" / SESSION
    folder.mkdir(parents=True)
    journal = FileJournal(folder / "journal.jsonl")
    for entry in long_entries():
        journal.append(entry)
    await journal.commit()
    journal.close()
    saved(stage, **{WORD[:90]: b"x"})
    words = {"kind": "test", "class_": "test", "title": WORD, "excerpt": f"{LINE}\n{WORD}", "branch": WORD[:100]}
    await SqliteKnownFailureStore(stage.folder / "state" / "known_failures.sqlite").record_sighting(
        FailureSighting(
            project="group/" + WORD[:100],
            fingerprint="f",
            occurrence="1",
            at=time.time(),
            merge_request="7",
            link="https://ci.example/1",
            **words,
        )
    )
    await voted(stage, VoteCount(1, 2), model=WORD[:100], project="group/" + WORD[:100])


async def test_no_page_is_wider_than_a_phone_also_with_everything_opened(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser(wide=PHONE_PX) as seen:
        await fill_with_long_words(stage)
        session = f"/sessions/{SESSION}"
        pages = [
            "/",
            "/runs",
            "/pipelines",
            "/pipelines?of=branches",
            "/failures",
            "/quality",
            "/costs",
            "/search?q=symbol",
            "/runs?text=symbol",
            session,
        ]
        pages += [f"{session}/entries/8", f"{session}/files", "/nothing-here", f"{session}/entries/99"]
        pages.append(f"/failure?fingerprint=f&project={'group/' + WORD[:100]}")
        for path in pages:
            await seen.page.goto(address(stage) + path)
            assert max(await seen.page.evaluate(WIDTH)) <= PHONE_PX, path
            await seen.page.evaluate(OPEN_ALL)
            assert max(await seen.page.evaluate(WIDTH)) <= PHONE_PX, f"{path}, with its rows opened"
