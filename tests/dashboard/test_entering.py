"""The door of the dashboard, as browsers and programs come to it."""

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from hummingbird.core.journal import JournalEntry, UserSaid
from hummingbird.dashboard.access import COOKIE_NAME
from hummingbird.dashboard.queries import PAGES_AT_ONCE
from hummingbird.dashboard.views import PageRenderer, SessionAnswer
from tests.dashboard.browser import browser
from tests.dashboard.test_hostile import SESSION, planted, said_now
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Turn
from tests.thoroughly import also

TOKEN = "the-token-of-this-dashboard"


async def with_token(stage: Stage) -> str:
    stage.environment["HUMMINGBIRD_DASHBOARD_TOKEN"] = TOKEN
    return f"http://127.0.0.1:{(await stage.serve()).port}"


@pytest.mark.thorough
async def test_with_a_token_a_person_enters_once_and_leaves(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage, browser() as seen:
        stage.configure({}, {"analyze-failures": {}})
        base, page = await with_token(stage), seen.page
        await page.goto(f"{base}/failures?project=a%2Fb")
        await page.fill("#token", "wrong")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("text=That is not the token.")
        await page.fill("#token", TOKEN)
        await page.keyboard.press("Enter")
        await page.wait_for_selector("h1:has-text('Known failures')")
        assert page.url == f"{base}/failures?project=a%2Fb", "where one wanted to go"
        (cookie,) = await page.context.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (COOKIE_NAME, True, "Lax")
        assert TOKEN not in cookie["value"]
        await page.get_by_role("button", name="Leave").click()
        await page.wait_for_selector("#token")
        await page.goto(base)
        await page.wait_for_selector("#token")


async def test_with_a_token_programs_show_it_and_nobody_else_sees_anything(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.configure({}, {"analyze-failures": {}})
        base = await with_token(stage)
        async with httpx2.AsyncClient(base_url=base, timeout=60) as client:
            pages = ["/", "/runs", "/pipelines", "/failures", "/failure?project=a&fingerprint=b", "/costs", "/quality"]
            pages += ["/metrics", "/live/runs", "/sessions/x", "/sessions/x/transcript.md", "/search?q=a", "/nothing"]
            for path in (*pages, "/sessions/x/file?path=a", "/api/v1/runs", "/api/v1/openapi.json"):
                answer = await client.get(path)
                assert answer.status_code == 401, path
                assert answer.headers["www-authenticate"] == "Bearer"
            assert (await client.get("/", headers={"authorization": f"Bearer {TOKEN}"})).status_code == 200
            assert (await client.get("/healthz")).status_code == 200
            elsewhere = {"token": TOKEN, "back": "//evil.example/"}
            assert (await client.post("/login", data=elsewhere)).headers["location"] == "/"
            slashed = {"token": TOKEN, "back": "/\\evil.example/"}
            assert (await client.post("/login", data=slashed)).headers["location"] == "/"


async def test_whoever_leaves_while_a_page_is_made_takes_nothing_from_the_others(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage)
        base = f"http://127.0.0.1:{stage.serving.port}"
        async with httpx2.AsyncClient(base_url=base, timeout=60) as client, asyncio.timeout(60):
            for _ in range(2 * PAGES_AT_ONCE):
                async with client.stream("GET", f"/sessions/{SESSION}") as answer:
                    await anext(answer.aiter_raw())
            assert (await client.get(f"/sessions/{SESSION}")).text.rstrip().endswith("</html>")


@pytest.mark.thorough
async def test_slow_readers_keep_no_page_from_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, path = 2 * PAGES_AT_ONCE, f"/sessions/{SESSION}"
    monkeypatch.setattr("hummingbird.dashboard.application.PAGES_OPEN", slow + 1)
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage, results=900, lines=40)
        with ExitStack() as leaving:
            readers = await opened(stage, path, slow, leaving)
            assert Counter(line.split()[1] for line, _ in readers) == {b"200": slow}
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:
                assert (await client.get(path)).text.rstrip().endswith("</html>")
                assert (await client.get("/healthz")).status_code == 200
            more = await opened(stage, path, 2, leaving)
            assert Counter(line.split()[1] for line, _ in more) == {b"200": 1, b"503": 1}, "nobody has read it all yet"


@pytest.mark.thorough
async def test_how_a_long_answer_fared_is_found_once_for_all_who_look_and_anew_when_more_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds of a processor, of which everybody else would wait for each."""
    looked: list[int] = []

    def counted(pages: PageRenderer, entries: Sequence[JournalEntry]) -> SessionAnswer:
        looked.append(len(entries))
        return answer(pages, entries)

    answer = PageRenderer.build_answer
    monkeypatch.setattr(PageRenderer, "build_answer", counted)
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage, results=20)
        base, path = f"http://127.0.0.1:{stage.serving.port}", f"/sessions/{SESSION}"
        async with httpx2.AsyncClient(base_url=base, timeout=60) as client:
            found = await asyncio.gather(*(client.get(path) for _ in range(2 * PAGES_AT_ONCE)))
            assert {one.text.rstrip().endswith("</html>") for one in found} == {True}
            assert len(looked) == 1
            await said_now(stage)
            assert (await client.get(path)).status_code == 200
        assert len(looked) == 2
        assert looked[1] > looked[0]


async def test_a_proxy_that_says_nothing_of_itself_is_known_by_how_it_speaks(tmp_path: Path) -> None:
    """As nginx does with `proxy_pass http://127.0.0.1:8080;` alone."""
    async with staged("failing-test", tmp_path) as stage:
        for version, code in (("1.0", b"403"), ("1.1", b"200")):
            reader, writer = await asyncio.open_connection("127.0.0.1", stage.serving.port)
            host = f"127.0.0.1:{stage.serving.port}"
            writer.write(f"GET / HTTP/{version}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            assert (await reader.readline()).split()[1] == code
            writer.close()


async def opened(
    stage: Stage, path: str, readers: int, leaving: ExitStack | None = None
) -> list[tuple[bytes, asyncio.StreamWriter]]:
    """What each of them was answered first, all at once; none of them reads any more of it. With `leaving`, all go."""

    async def one() -> tuple[bytes, asyncio.StreamWriter]:
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", stage.serving.port))
        reader, writer = await asyncio.open_connection(sock=narrow, limit=1024)
        if leaving is not None:
            leaving.callback(writer.close)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return await reader.readline(), writer

    return await asyncio.gather(*(one() for _ in range(readers)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("path", "results", "lines"), [also("", 900, 40), also("/transcript", 300, 300), ("/entries/8", 300, 300)]
)
async def test_only_so_many_whole_journals_are_read_at_once_and_others_hear_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, results: int, lines: int
) -> None:
    monkeypatch.setattr("hummingbird.dashboard.application.PAGES_OPEN", 3)
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage, results=results, lines=lines)
        found = await opened(stage, f"/sessions/{SESSION}{path}", 12)
        assert Counter(line.split()[1] for line, _ in found) == {b"200": 3, b"503": 9}
        for _, writer in found:
            writer.close()
        base = f"http://127.0.0.1:{stage.serving.port}"
        async with httpx2.AsyncClient(base_url=base, timeout=60) as client, asyncio.timeout(60):
            while (await client.get(f"/sessions/{SESSION}/entries/1")).status_code == 503:
                pass  # until it is noticed that they are gone


@pytest.mark.thorough
async def test_only_so_many_look_at_live_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.dashboard.application.LIVE_VIEWERS", 5)
    async with staged("failing-test", tmp_path) as stage:
        found = await opened(stage, "/live/runs", 12)
        assert Counter(line.split()[1] for line, _ in found) == {b"200": 5, b"503": 7}
        for _, writer in found:
            writer.close()
        async with asyncio.timeout(60):
            while (again := await opened(stage, f"/live/sessions/{SESSION}?after=%C2%B2", 1))[0][0].split()[
                1
            ] == b"503":
                again[0][1].close()
        assert again[0][0].split()[1] == b"200"
        again[0][1].close()


@pytest.mark.thorough
async def test_numbers_that_are_none_are_answered_with_a_sentence(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:
            for number in ("9" * 5_000, "0", "-1", "x", "²", "%00"):
                answer = await client.get(f"/sessions/{SESSION}/entries/{number}")
                assert answer.status_code == 404, number


@pytest.mark.thorough
async def test_a_message_that_is_sent_twice_is_one_and_a_failure_is_told_on_the_page(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, turns=[Turn(text="First."), Turn(text="Once.")]) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:
            page = (await client.get(f"/sessions/{result.session}")).text
            form = {name: re.search(f'name="{name}" value="([^"]+)"', page)[1] for name in ("proof", "once")}  # type: ignore[index]  # it is there
            given = {**form, "message": "Again?"}
            sent = [await client.post(f"/sessions/{result.session}/messages", data=given) for _ in range(2)]
            assert [one.status_code for one in sent] == [303, 303]
            assert "Your message is queued" in (await client.get(sent[0].headers["location"])).text
            await stage.idle()
            said = [one.text for one in stage.entries(result.session) if isinstance(one, UserSaid)]
            assert said[1:] == ["Again?"]
            stage.environment.pop("ORCHESTRATOR_GITLAB_TOKEN")
            await stage.stop()
            await stage.serve()
            client.base_url = httpx2.URL(f"http://127.0.0.1:{stage.serving.port}")
            page = (await client.get(f"/sessions/{result.session}")).text
            form = {name: re.search(f'name="{name}" value="([^"]+)"', page)[1] for name in ("proof", "once")}  # type: ignore[index]  # it is there
            await client.post(f"/sessions/{result.session}/messages", data={**form, "message": "And now?"})
            await stage.idle()
            page = (await client.get(f"/sessions/{result.session}")).text
            assert "It was not answered." in page
            assert "ORCHESTRATOR_GITLAB_TOKEN" in page
