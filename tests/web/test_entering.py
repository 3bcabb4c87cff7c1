"""The door of the dashboard, as browsers and programs come to it (O4)."""

import asyncio
from pathlib import Path

import httpx2

from hummingbird.domain.web_limits import PAGES_AT_ONCE
from hummingbird.web.access import COOKIE
from tests.journeys.service.stage import Stage, staged
from tests.web.browser import browser
from tests.web.test_hostile import SESSION, planted

TOKEN = "the-token-of-this-dashboard"


async def with_token(stage: Stage) -> str:
    stage.environment["HUMMINGBIRD_DASHBOARD_TOKEN"] = TOKEN
    return f"http://127.0.0.1:{(await stage.serve()).port}"


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
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (COOKIE, True, "Lax")
        assert TOKEN not in cookie["value"]
        await page.get_by_role("button", name="Leave").click()
        await page.wait_for_selector("#token")
        await page.goto(base)
        await page.wait_for_selector("#token")


async def test_with_a_token_programs_show_it_and_nobody_else_sees_anything(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.configure({}, {"analyze-failures": {}})
        base = await with_token(stage)
        async with httpx2.AsyncClient(base_url=base) as client:
            for path in ("/", "/metrics", "/live/runs", "/sessions/x", "/search?q=a", "/sessions/x/file?path=a"):
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
        async with httpx2.AsyncClient(base_url=base) as client, asyncio.timeout(30):
            for _ in range(2 * PAGES_AT_ONCE):
                async with client.stream("GET", f"/sessions/{SESSION}") as answer:
                    await anext(answer.aiter_raw())
            assert (await client.get(f"/sessions/{SESSION}")).text.rstrip().endswith("</html>")
