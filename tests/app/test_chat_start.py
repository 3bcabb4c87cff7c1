"""What a chat loads before its prompt: a person waits for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from hummingbird.app.chat_command import _replace_closed_streams, _terminal_settings
from hummingbird.app.chat_context import ChatOptions
from hummingbird.chat.request import ChatRequest
from hummingbird.config.loader import load_config


def test_a_chat_starts_without_the_clients_of_clusters_and_vendors() -> None:
    code = "import sys, hummingbird.app.chat_command; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(ran.stdout.split())
    assert "hummingbird.chat.terminal" in loaded
    unneeded = {"lightkube", "boto3", "opentelemetry.sdk", "sentry_sdk", "gitlab", "fastapi", "starlette", "rich"}
    own = ("evidence.report_preview", "evidence.logs.log_preview", "queues.sqs", "storage.bucket_sessions")
    unneeded |= {f"hummingbird.{name}" for name in own}
    assert loaded.isdisjoint(unneeded)


def test_streams_that_were_closed_before_the_start_take_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        print("gone", file=stream)
        assert not stream.isatty()
        stream.close()


def test_the_bell_can_be_turned_off(tmp_path: Path) -> None:
    def rings_after(text: str) -> float | None:
        (tmp_path / "hummingbird.yaml").write_text(text)
        environment = {"HUMMINGBIRD_HOME": str(tmp_path)}
        configuration = load_config(tmp_path / "hummingbird.yaml", environment)
        parts = ChatOptions(configuration=configuration, environment=environment, workspace=tmp_path)
        return _terminal_settings(parts, ChatRequest(), "", verbose=False).bell_after_s

    assert rings_after("chat: {bell: true}") == 10
    assert rings_after("chat: {bell: false}") is None
