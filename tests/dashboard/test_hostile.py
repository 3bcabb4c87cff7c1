"""Everything shown is untrusted: logs, titles, names of files and answers try to act in a real browser, and cannot."""

import io
import json
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

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
from hummingbird.dashboard import views
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.journals import FileJournal
from tests.dashboard.browser import browser
from tests.journeys.service.stage import Stage, staged
from tests.thoroughly import also

ATTACK = "</pre></details><script>window.owned=1;alert('owned')</script><img src=x onerror=\"window.owned=1\">"
NAME = "'\"><svg onload=window.owned=1>"
LEAKY = "https://evil.example/steal?x="
SESSION = "hostile1"


HOSTILE_JOB = JobJudgement(job=NAME, origin=FailureOrigin.FLAKY, job_id=9, fingerprints=("f",))


def hostile_background() -> RunBackground:
    """Title, branches and jobs are an outsider's."""
    jobs = (JobStatus(name=NAME, status="failed", id=9), JobStatus(name=ATTACK, status=NAME))
    own = PipelineStatus(pipeline_id=7, mr_iid=7, sha=NAME, jobs=jobs)
    main = PipelineStatus(pipeline_id=6, branch=ATTACK, sha=NAME, jobs=jobs)
    seen = ObservedFailure(fingerprint="f", kind=NAME, class_=NAME, title=ATTACK)
    return RunBackground(
        cause=NAME, title=ATTACK, branch=NAME, target_branch=NAME, pipelines=(own, main), failures=(seen,)
    )


def hostile(lines: int = 400) -> Sequence[JournalEntry]:
    order = json.dumps({"workflow": NAME, "project": f"a/{NAME}", "mr_iid": 7, "message": ATTACK})
    answer = (
        f"# {ATTACK}\n\n![x]({LEAKY}1)\n\n[go](javascript:window.owned=1) <{LEAKY}2>\n\n```\n{ATTACK}\n```\n\n{ATTACK}"
    )
    return [
        SessionOpened(session_id=SESSION, system=ATTACK, format=JOURNAL_FORMAT),
        RunStarted(run_id="r", model=NAME, background=hostile_background()),
        UserSaid(text=order, source=MessageSource.ORDER),
        UserSaid(text=ATTACK),
        VerdictRecorded(run_id="r", verdict=FailureVerdict(origin=FailureOrigin.FLAKY, jobs=(HOSTILE_JOB,))),
        ModelCalled(call_id="1", model=NAME, messages=1),
        ModelAnswered(call_id="1", model=NAME, message=AssistantMessage(text=ATTACK, reasoning=ATTACK)),
        ToolStarted(call_id="t", name=NAME, arguments=ATTACK),
        ToolFinished(call_id="t", name=NAME, text=f"{ATTACK}\n" * lines),
        RunEnded(run_id="r", reason=EndReason.COMPLETED, text=answer, sentence=ATTACK, answered=True),
    ]


async def planted(stage: Stage, results: int = 1, lines: int = 400) -> None:
    folder = stage.folder / "state" / "sessions" / SESSION
    folder.mkdir(parents=True)
    journal = FileJournal(folder / "journal.jsonl")
    *before, result, end = hostile(lines)
    for entry in (*before, *[result] * results, end):
        journal.append(entry)
    await journal.commit()
    journal.close()


def saved(stage: Stage, **files: bytes) -> None:
    """A checkpoint as sandboxes write them."""
    with tarfile.open(stage.folder / "state" / "sessions" / SESSION / "sandbox.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"data/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


async def seen_before(stage: Stage) -> None:
    """A failure whose every word is an outsider's."""
    ledger = SqliteKnownFailureStore(stage.folder / "state" / "known_failures.sqlite")
    words = {"kind": NAME, "class_": NAME, "title": ATTACK, "excerpt": ATTACK, "branch": NAME}
    links = {"merge_request": NAME, "link": f"https://ci.example/{NAME}"}
    await ledger.record_sighting(
        FailureSighting(project=f"a/{NAME}", fingerprint="f", occurrence="1", at=time.time(), **words, **links)
    )


async def said_now(stage: Stage) -> None:
    """Somebody else goes on with the session, while its page is open."""
    journal = FileJournal(stage.folder / "state" / "sessions" / SESSION / "journal.jsonl")
    for entry in hostile()[2:]:
        journal.append(entry)
    await journal.commit()
    journal.close()


# What stands in a page that its templates did not put there.
STRANGERS = """() => [...document.querySelectorAll("*")].filter((one) =>
    [...one.attributes].some((each) => each.name.startsWith("on"))
    || (one.matches("script") && one.getAttribute("src") !== "/static/page.js")
    || (one.matches("img") && one.getAttribute("src") !== "/static/bird.svg")
    || (one.matches("svg") && !one.matches(".bars"))
    || one.matches("iframe, object, embed, base, style, form[action^='http']")
    || (one.matches("a[href]") && !/^(https?:|[/]|#|$)/.test(one.getAttribute("href")))
  ).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("escaping", [True, also(False)])
async def test_nothing_that_is_shown_acts_or_becomes_a_part_of_the_page_whoever_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, escaping: bool
) -> None:
    """Where templates do not escape, every page that shows something of others has strangers in it: or nobody would
    notice. The policy alone keeps them from acting then."""
    made = views._environment().overlay(autoescape=escaping)
    monkeypatch.setattr("hummingbird.dashboard.views._environment", lambda: made)
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        await planted(stage)
        saved(stage, **{NAME: b"x"})
        await seen_before(stage)
        base = f"http://127.0.0.1:{stage.serving.port}"
        session = f"{base}/sessions/{SESSION}"
        project = quote(f"a/{NAME}")
        showing = [base, session, f"{session}/entries/9", f"{session}/files", f"{base}/failures"]
        showing += [f"{base}/runs", f"{base}/search?q=owned", f"{base}/search?q={NAME}"]
        showing += [f"{base}/runs?project={NAME}&text={NAME}", f"{base}/?project={NAME}", f"{base}/pipelines"]
        showing += [f"{base}/pipelines?of=branches", f"{base}/failure?project={project}&fingerprint=f"]
        others = [f"{session}/transcript", f"{base}/failures?project={ATTACK}", f"{base}/costs"]
        others += [f"{base}/sessions/{NAME}", f"{session}/entries/99", f"{session}/file?path={NAME}.no"]
        for address in (*showing, *(others if escaping else ())):
            await seen.page.goto(address)
            assert await seen.page.evaluate("window.owned") is None, address
            assert bool(await seen.page.evaluate(STRANGERS)) is not escaping, address
        await seen.page.goto(session)
        before = await seen.page.locator(".timeline li").count()
        await said_now(stage)
        await seen.page.wait_for_selector(f".timeline li:nth-of-type({before + 6})")
        assert await seen.page.evaluate("window.owned") is None
        assert bool(await seen.page.evaluate(STRANGERS)) is not escaping, "what came live"
        if escaping:
            assert "alert('owned')" in await seen.page.inner_text(".timeline li:last-child"), "shown as what it is"
    assert seen.dialogs == []
    assert [one for one in seen.outside if escaping] == []


@pytest.mark.thorough
async def test_every_answer_forbids_what_pages_do_not_need(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:
            session = f"/sessions/{SESSION}"
            for path in ("/", session, f"{session}/transcript", "/static/page.js", "/sessions/none", "/search"):
                answer = await client.get(path)
                policy = answer.headers["content-security-policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["x-frame-options"] == "DENY"
            assert (await client.get("/", headers={"host": "evil.example"})).status_code == 403
            sent = {"message": "hello", "proof": "0" * 64}
            assert (await client.post(f"{session}/messages", data=sent)).status_code == 403
            assert (await client.post(f"{session}/messages", content=b"x" * 600_000)).status_code == 403
            assert (await client.get("/sessions/..%2f..%2fetc")).status_code == 404
            assert (await client.get("/static/../application.py")).status_code == 404
            assert (await client.put("/")).status_code == 405
