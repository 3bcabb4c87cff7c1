"""The page of a long session in Chromium, beside a static page of the same bytes from the same kind of server."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.service.process import serving
from benchmarks.sessions.journals import entries
from hummingbird.app.http_server import open_listener
from hummingbird.storage.journals import FileJournal

SESSION = "long0session"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
PAINTED = "() => performance.getEntriesByType('paint').find(one => one.name === 'first-contentful-paint')?.startTime"


@dataclass(frozen=True, slots=True)
class Scale:
    entries: int = 5_000
    repeats: int = 11


FULL, QUICK = Scale(), Scale(entries=300, repeats=1)


def report(scale: Scale) -> None:
    print(f"## Dashboard: the page of a session with {scale.entries:,} entries\n")
    asyncio.run(_report(scale))


async def _report(scale: Scale) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        journal_folder = folder / "state" / "sessions" / SESSION
        journal_folder.mkdir(parents=True)
        journal = FileJournal(journal_folder / "journal.jsonl")
        for entry in entries(scale.entries):
            journal.append(entry)
        await journal.commit()
        journal.close()
        with serving(folder, "settings: {gitlab_url: http://127.0.0.1:9}\nworkflows: {}\n", {}) as service:
            ours = f"{service.url.rsplit('/webhooks', 1)[0]}/sessions/{SESSION}"
            async with httpx2.AsyncClient(timeout=60) as client:
                await client.get(ours.rsplit("/sessions", 1)[0])  # as one comes from the list, which indexes it
                content = (await client.get(ours)).content
            async with plain(content) as theirs:
                first, whole = await painted(scale, (ours, theirs))
    print(f"{len(content):,} bytes; median of {scale.repeats}, interleaved.\n")
    print("| page | first paint, ms | ÷ static | loaded, ms | ÷ static |")
    print("|---|--:|--:|--:|--:|")
    for name, at in (("ours", 0), ("static, same bytes", 1)):
        ratios = [one[at] / one[1] for one in first], [one[at] / one[1] for one in whole]
        print(
            f"| {name} | {median(one[at] for one in first):.0f} | {median(ratios[0]):.2f}× "
            f"| {median(one[at] for one in whole):.0f} | {median(ratios[1]):.2f}× |"
        )
    print()


async def painted(
    scale: Scale, addresses: tuple[str, str]
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    from playwright.async_api import async_playwright

    path = shutil.which("chromium")
    if path is None:
        raise SystemExit("chromium is not on this machine: install it.")
    first: list[tuple[float, float]] = []
    whole: list[tuple[float, float]] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        for repeat in range(scale.repeats):
            found: dict[str, tuple[float, float]] = {}
            for address in addresses if repeat % 2 == 0 else addresses[::-1]:
                page = await browser.new_page()
                await page.goto(address, wait_until="load")
                await page.wait_for_function(f"({PAINTED})() !== undefined")
                loaded = await page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
                found[address] = float(await page.evaluate(PAINTED)), float(loaded)
                await page.close()
            ours, theirs = (found[address] for address in addresses)
            first.append((ours[0], theirs[0]))
            whole.append((ours[1], theirs[1]))
        await browser.close()
    return first, whole


@asynccontextmanager
async def plain(content: bytes) -> AsyncIterator[str]:
    """The same bytes from memory, with the same style sheet, and nothing to follow."""
    static = Path(__file__).parents[2] / "src" / "hummingbird" / "web" / "static"
    kinds = {"page.css": "text/css", "page.js": "text/javascript", "bird.svg": "image/svg+xml"}
    files = {name: (static / name).read_bytes() for name in kinds}
    still = content.replace(b"data-live=", b"data-still=")

    async def page(_: object) -> Response:
        return Response(still, media_type="text/html")

    def file(name: str) -> Response:
        return Response(files[name], media_type=kinds[name])

    routes = [Route("/", page)]
    routes += [Route(f"/static/{name}", lambda _, name=name: file(name)) for name in files]
    door = open_listener("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off"))
    running = asyncio.create_task(server.serve(sockets=[door]))
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}/"
    finally:
        server.should_exit = True
        await running
        door.close()
