"""The doors of the service, and its walls inside: what comes in becomes no line of a log and no place on the disk,
and nothing that runs a model can so much as name the side that writes."""

import io
import json
import logging
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import httpx2
import pytest

from hummingbird.app.console import OneLineFormatter
from hummingbird.core.errors import EventUnreadable
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.service.event_parser import parse_event
from tests.journeys.service.conftest import in_a_hurry  # noqa: F401 - a fixture
from tests.journeys.service.stage import SECRET, Stage, staged
from tests.thoroughly import also

ROOT = Path(__file__).parents[2]
PUBLIC = {"internal_notes": False}
FORGED = "2026-01-01T00:00:00+0000 ERROR everything is lost"
ODD_PATHS = (
    "", "widgets", "../../etc", "acme/../../etc/passwd\n", "acme/wid gets", f"acme/widgets\n{FORGED}", "acme//widgets",
    "acme/widgets\u2028x", "/acme/widgets", "acme/widgets/", "acme/wіdgets", "acme/widgets\x00", "acme/widgets?x=1",
)  # fmt: skip


async def sent(stage: Stage, event: dict[str, Any], **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60) as client:
        url = f"http://127.0.0.1:{stage.serving.port}/webhooks/gitlab"
        return await client.post(url, json=event, headers={"X-Gitlab-Token": SECRET, **headers})


def first_event(stage: Stage) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(stage.deliveries()[0].body)
    return event


@pytest.mark.parametrize("path", ODD_PATHS)
def test_a_project_whose_path_gitlab_would_not_give_is_none(path: str) -> None:
    event = {"object_kind": "pipeline", "project": {"id": 1, "path_with_namespace": path}}
    event |= {"object_attributes": {"id": 1, "status": "failed", "sha": "a" * 40, "ref": "main"}, "user": {"id": 1}}
    with pytest.raises(EventUnreadable):
        parse_event(json.dumps(event).encode())


async def test_nothing_that_is_sent_begins_a_line_of_the_log_of_its_own(tmp_path: Path) -> None:
    """Not by a name, a status, a branch, an action, a kind of event or a header, with or without the secret."""
    lines, log = io.StringIO(), logging.getLogger("hummingbird")
    shown, level = logging.StreamHandler(lines), log.level
    shown.setFormatter(OneLineFormatter("%(levelname)s %(message)s"))
    log.addHandler(shown)
    log.setLevel(logging.DEBUG)
    bad = f"x\r\n{FORGED}"
    try:
        async with staged("failing-test", tmp_path, settings=PUBLIC) as stage:
            await stage.begin_case()
            await stage.notes(2)
            event = first_event(stage)
            for part, name in (("user", "username"), ("object_attributes", "status"), ("object_attributes", "ref")):
                changed = {**event, part: {**event[part], name: bad}}
                await sent(stage, changed)
            await sent(stage, {**event, "object_kind": bad})
            await sent(stage, {**event, "project": {**event["project"], "path_with_namespace": f"a/{bad}"}})
            outsider = {**event, "user": {"id": 4040, "username": bad}}
            await sent(stage, outsider)
            await sent(stage, event, **{"X-Gitlab-Token": "no", "X-Gitlab-Event": FORGED, "Idempotency-Key": FORGED})
            await stage.write("hsato", f"/hummingbird {bad}")
            await stage.idle()
    finally:
        log.removeHandler(shown)
        log.setLevel(level)
    written = lines.getvalue().split("\n")
    assert len(written) > 10
    assert not [line for line in written if line.lstrip().startswith(FORGED[:12])]
    assert not [line for line in written if line and not line.startswith(("DEBUG", "INFO", "WARNING", "ERROR"))]


def test_a_message_is_one_line_and_a_trace_is_not_hidden() -> None:
    said = OneLineFormatter("%(levelname)s %(message)s")
    record = logging.LogRecord("x", logging.INFO, "", 0, "of %s", (f"a\nb\x1b[2J\u2028{FORGED}",), None)
    assert said.format(record).count("\n") == 0
    assert "\x1b" not in said.format(record)
    try:
        raise ValueError("a bug")
    except ValueError:
        record.exc_info = sys.exc_info()
    record.exc_text = None
    assert "ValueError: a bug" in said.format(record).splitlines()[-1]


@pytest.mark.thorough
async def test_a_delivery_that_is_sent_again_does_nothing_again(tmp_path: Path) -> None:
    """Whoever heard a command once can repeat its bytes under another key for as long as they like."""
    async with staged("failing-test", tmp_path, settings=PUBLIC) as stage:
        await stage.write("hsato", "/hummingbird analyze-failures")
        await stage.notes(2)
        event = first_event(stage)
        for number in range(3):
            assert (await sent(stage, event, **{"Idempotency-Key": f"another {number}"})).status_code == 202
        await stage.notes(2)


@pytest.mark.thorough
async def test_a_project_that_nobody_configured_gets_no_answer_and_no_request(tmp_path: Path) -> None:
    only = {"analyze-failures": {"trigger": "pipeline", "projects": {"labri-progress/cidiff": {}}}}
    async with staged("failing-test", tmp_path, settings=PUBLIC, workflows=only) as stage:
        stage.ask(lambda world: setattr(world.projects[0], "path", "somebody/else"))
        await stage.begin_case()
        await stage.write("hsato", "/hummingbird analyze-failures")
        await stage.idle()
        assert len(stage.ask(lambda world: webhook_sender(world).deliveries)) == 2
        assert stage.requests("/") == []
        assert stage.ours() == []


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    environment = {"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [program, "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("agent/loop.py", "from hummingbird.gitlab.write.protocol import GitLabWriter"),
        also("agent/tools/finding_report.py", "from hummingbird.gitlab.write.protocol import OrchestratorToken"),
        also("gitlab/read/source.py", "from hummingbird.gitlab.write.protocol import OrchestratorToken"),
        also("app/investigation.py", "from hummingbird.gitlab.write.protocol import OrchestratorToken"),
    ],
)
def test_nothing_that_runs_a_model_can_name_the_side_that_writes(module: str, line: str, tmp_path: Path) -> None:
    """The contracts say so, and notice when it is broken."""
    copytree(
        ROOT / "src", tmp_path / "src", ignore=lambda _, names: [n for n in names if n in ("cases", "__pycache__")]
    )
    file = tmp_path / "src" / "hummingbird" / module
    file.write_text(f"{file.read_text()}\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert " BROKEN" in done.stdout
    assert "write" in next(row for row in done.stdout.splitlines() if row.endswith("BROKEN"))
