"""A plain install, without what only some need: it works, and says what to install where something is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from hummingbird.core.errors import MissingSetting, require_extra
from tests.deploy.extras_files import ROOT, all_extras

BUCKET = "settings: {session_store: 's3://bucket/sessions'}\n"
QUEUES = "settings: {sqs_queue_url: 'https://sqs.eu-central-1.amazonaws.com/1/a', sqs_fifo_queue_url: 'https://sqs.eu-central-1.amazonaws.com/1/a.fifo'}\n"
KONFLUX = """\
workflows:
  explain:
    trigger: pipeline
    prompt: prompt.md
    projects: {"a/b": {}}
    data_sources: {konflux: {cluster_url: "https://konflux.example/ns/team"}}
"""
SERVER = "chat: {mcp_servers: {clock: {command: python3}}}\n"


def plain(folder: Path, *arguments: str, configuration: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "hummingbird.yaml").write_text(configuration)
    (folder / "prompt.md").write_text("Why did it fail?\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "tests.cli.without_extras", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "arguments", "configuration"),
    [
        ("acp", ["acp"], ""),
        ("mcp", ["mcp"], ""),
        ("buckets", ["sessions", "list", "--config", "hummingbird.yaml"], BUCKET),
        ("kubernetes", ["sandbox", "check", "k8s", "--context", "kind"], ""),
        ("aws", ["doctor", "--config", "hummingbird.yaml"], QUEUES),
        ("kubernetes", ["doctor", "--config", "hummingbird.yaml"], KONFLUX),
        ("mcp", ["doctor", "--config", "hummingbird.yaml"], SERVER),
    ],
)
def test_a_missing_extra_is_named_with_the_command(
    extra: str, arguments: list[str], configuration: str, tmp_path: Path
) -> None:
    done = plain(tmp_path, *arguments, configuration=configuration)
    assert done.returncode != 0
    assert f"pip install 'hummingbird-agent[{extra}]'" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_needs_no_extra(tmp_path: Path) -> None:
    done = plain(tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert "**Likely yours.**" in done.stdout


def test_all_is_every_extra() -> None:
    known = all_extras()
    assert known["all"] == [f"hummingbird-agent[{','.join(sorted(set(known) - {'all'}))}]"]


def test_what_is_there_is_not_asked_for() -> None:
    require_extra("json", "none", "JSON")
    with pytest.raises(MissingSetting, match=r"pip install 'hummingbird-agent\[none\]'"):
        require_extra("no_such_module_here", "none", "It")
