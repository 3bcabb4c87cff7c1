"""Chromium without a screen, as a person would use it: nothing but this machine can be reached from it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.real_parts import missing

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

PATIENCE_MS = 60_000
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)


@dataclass
class Seen:
    """What went on behind the page: sentences of its console, addresses that it wanted outside of this machine."""

    page: Page
    console: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@asynccontextmanager
async def browser(*, dark: bool = False, wide: int = 1280) -> AsyncIterator[Seen]:
    path = shutil.which("chromium") or missing("chromium is not on this machine: install it.")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            context = await started.new_context(
                color_scheme="dark" if dark else "light", viewport={"width": wide, "height": 800}
            )
            page = await context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            seen = Seen(page)

            async def guarded(route: Route) -> None:
                if route.request.url.startswith("http://127.0.0.1:"):
                    await route.continue_()
                    return
                seen.outside.append(route.request.url)
                await route.abort()

            await page.route("**/*", guarded)
            page.on("console", lambda said: seen.console.append(said.text))
            page.on("dialog", lambda shown: seen.dialogs.append(shown.message))
            yield seen
            await context.close()
        finally:
            await started.close()
