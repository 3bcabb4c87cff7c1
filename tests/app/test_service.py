"""The whole service out of a configuration: a webhook comes in, a report is in the merge request, a stop ends it."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from hummingbird.app.http_server import is_loopback
from hummingbird.app.service import HummingbirdService, watch_config
from hummingbird.config.loader import ConfigWatcher
from hummingbird.core.errors import MissingSetting, UsageError
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import LabWorlds, Scene
from tests.app.conducting import MODEL, begun, shell, until
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab

SECRET = "s3cret-of-the-hook"


def configuration(folder: Path, scene: Scene | None = None, *more: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "look.md").write_text("Find out why the pipeline failed.")
    url = scene.url("gitlab") if scene else "http://127.0.0.1:9"
    file = folder / "hummingbird.yaml"
    lines = [
        *("settings:", f"  gitlab_url: {url}", "  settle_seconds: 0", "  internal_notes: false", *more),
        *("workflows:", "  analyze-failures:", "    trigger: pipeline", "    prompt: look.md"),
        *("    data_sources: {gitlab: {token_env: READER}}", '    projects: {"*": {}}'),
    ]
    file.write_text("\n".join(lines) + "\n")
    return file


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "HUMMINGBIRD_HOME": str(folder / "state"),
        "ORCHESTRATOR_GITLAB_TOKEN": Scene.write_token,
        "READER": Scene.read_token,
        "PATH": os.environ["PATH"],
        **more,
    }


@asynccontextmanager
async def served(file: Path, given: Mapping[str, str], *, signals: bool = False) -> AsyncIterator[HummingbirdService]:
    serving = HummingbirdService(ConfigWatcher(file, given), given, grace_s=5.0)
    running = asyncio.create_task(serving.run(signals=signals))
    try:
        yield serving
    finally:
        serving.stop()
        async with asyncio.timeout(30):
            await running


async def notes(scene: Scene, least: int) -> list[str]:
    """Those that our bot wrote, once there are so many."""

    def written(worlds: LabWorlds) -> list[str]:
        found = worlds.gitlab.merge_request.notes
        return [note.body for note in found if "hummingbird-session" in note.body]

    await until(lambda: len(scene.run_in_server(written)) >= least)
    return scene.run_in_server(written)


async def test_a_webhook_becomes_a_report(tmp_path: Path) -> None:
    """Without any model's key, on this machine alone."""
    with Scene(find_case("compiler-error")) as scene:
        given = environment(tmp_path, HUMMINGBIRD_WEBHOOK_SECRET=SECRET)
        async with served(configuration(tmp_path / "config", scene), given) as serving:
            address = f"http://127.0.0.1:{serving.port}/webhooks/gitlab"
            await asyncio.to_thread(scene.send_event_to, address, SECRET)
            placeholder, report = await notes(scene, 2)
    assert "Failure report" not in placeholder
    assert "Failure report" in report
    assert scene.case.description["expected"]["evidence"][0].strip() in report
    state = tmp_path / "state"
    assert {file.name for file in state.iterdir()} >= {"queue.sqlite", "sessions", "known_failures.sqlite"}
    assert state.stat().st_mode & 0o777 == 0o700
    (session,) = [one for one in (state / "sessions").iterdir() if one.is_dir()]
    assert (session / "journal.jsonl").exists()
    assert Scene.write_token not in (session / "journal.jsonl").read_text()


@pytest.mark.thorough
async def test_a_run_that_is_parked_goes_on_in_the_next_process(tmp_path: Path) -> None:
    """One placeholder, one result, and no turn is paid for twice."""
    script = Script([shell("sleep 60"), Turn(text="The compiler said no.")])
    sessions = tmp_path / "state" / "sessions"
    with Scene(find_case("compiler-error")) as scene, VendorLab(script) as lab:
        given = environment(tmp_path, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=lab.anthropic_url)
        file = configuration(tmp_path / "config", scene, f"  model: {MODEL}")
        async with served(file, given) as serving:
            address = f"http://127.0.0.1:{serving.port}/webhooks/gitlab"
            await asyncio.to_thread(scene.send_event_to, address)
            await until(lambda: any(begun(one, "sleep 60") for one in sessions.glob("*/journal.jsonl")))
            serving.stop()  # and once more when it is left: what runs has no time
        async with served(file, given):
            found = await notes(scene, 2)
        script.assert_consumed()
    assert len(found) == 2
    assert "The compiler said no." in found[1]


async def test_a_webhook_without_the_secret_is_refused(tmp_path: Path) -> None:
    given = environment(tmp_path, HUMMINGBIRD_WEBHOOK_SECRET=SECRET)
    async with served(configuration(tmp_path / "config"), given) as serving, httpx2.AsyncClient(timeout=60) as client:
        answer = await client.post(f"http://127.0.0.1:{serving.port}/webhooks/gitlab", json={})
        health = await client.get(f"http://127.0.0.1:{serving.port}/readyz")
    assert (answer.status_code, health.status_code) == (401, 200)
    assert health.json()["warning"].startswith("At least one workflow has no model that can be asked")


def test_a_door_that_anybody_could_enter_is_not_opened(tmp_path: Path) -> None:
    given = environment(tmp_path)
    with pytest.raises(MissingSetting, match="HUMMINGBIRD_WEBHOOK_SECRET"):
        HummingbirdService(ConfigWatcher(configuration(tmp_path / "config"), given), given, host="0.0.0.0")
    assert not (tmp_path / "state").exists()


def test_a_port_that_is_taken_is_said_at_once(tmp_path: Path) -> None:
    given = environment(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="--port"):
        HummingbirdService(ConfigWatcher(configuration(tmp_path / "config"), given), given, port=taken.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "answer"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("10.0.0.1", False), ("me", False)],
)
def test_which_hosts_only_this_machine_reaches(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


@pytest.mark.thorough
async def test_sigterm_stops_it(tmp_path: Path) -> None:
    given = environment(tmp_path)
    serving = HummingbirdService(ConfigWatcher(configuration(tmp_path / "config"), given), given)
    running = asyncio.create_task(serving.run())
    async with httpx2.AsyncClient(timeout=60) as client:
        await until_ready(client, serving.port)
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await running
        with pytest.raises(httpx2.TransportError):
            await client.get(f"http://127.0.0.1:{serving.port}/healthz")


async def test_a_second_signal_is_heard_until_all_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing gives back what was received and not begun, which with SQS takes as long as a poll."""
    given = environment(tmp_path)
    serving = HummingbirdService(ConfigWatcher(configuration(tmp_path / "config"), given), given)
    heard: list[object] = []
    close = serving.queue.close

    async def closing() -> None:
        heard.extend(signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT))
        await close()

    monkeypatch.setattr(serving.queue, "close", closing)
    serving.stop()
    async with asyncio.timeout(30):
        await serving.run()
    assert len(heard) == 2
    assert signal.SIG_DFL not in heard
    assert signal.default_int_handler not in heard


async def until_ready(client: httpx2.AsyncClient, port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                if (await client.get(f"http://127.0.0.1:{port}/readyz")).is_success:
                    return
            except httpx2.TransportError:
                await asyncio.sleep(0.05)


async def test_a_changed_configuration_is_taken_and_a_broken_one_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = environment(tmp_path)
    file = configuration(tmp_path / "config")
    watch = ConfigWatcher(file, given)
    naps: list[float] = []
    steps: list[Callable[[], object]] = [
        lambda: configuration(tmp_path / "config", None, "  max_concurrent_agents: 9", "  config_poll_seconds: 7"),
        lambda: file.write_text("settings: {max_iterations: no}"),
        lambda: None,
        lambda: configuration(tmp_path / "config", None, "  session_store: /elsewhere"),
    ]

    async def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) > len(steps):
            raise asyncio.CancelledError
        steps[len(naps) - 1]()

    with caplog.at_level(logging.INFO, logger="hummingbird"), pytest.raises(asyncio.CancelledError):
        await watch_config(watch, sleep)
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "hummingbird"]
    assert [level for level, _ in told] == ["INFO", "ERROR", "ERROR", "INFO", "WARNING"]
    assert "settings.max_iterations" in told[2][1]
    assert "session_store" in told[4][1]
    assert naps == [5, 7, 7, 7, 5]
    assert watch.current.settings.session_store == "/elsewhere"
