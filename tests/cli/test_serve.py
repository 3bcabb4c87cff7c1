"""`hummingbird serve`: what it says before it begins, and what it does not begin with."""

import asyncio
from pathlib import Path

import pytest

from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.app.service import HummingbirdService, serve_command
from tests.cli.typing_in import Typed, typed


def serve(folder: Path, *arguments: str, **variables: str) -> Typed:
    given = {"HUMMINGBIRD_HOME": str(folder / "state"), "HOME": str(folder), **variables}
    return typed("serve", "--port", "0", *arguments, environment=given)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--namespace", "n"), "--namespace is for Kubernetes, and commands run in bubblewrap"),
        (("--sandbox", "k8s"), "There is no kubeconfig"),
        (("--sandbox", "k8spool"), "There is no kubeconfig"),
        (("--host", "0.0.0.0"), "set HUMMINGBIRD_WEBHOOK_SECRET"),
    ],
)
def test_what_it_cannot_work_with_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = serve(tmp_path, *arguments)
    assert done.code == 2
    assert said in done.err


def test_a_signing_token_that_is_none_is_told_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = serve(tmp_path, HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN="s3cret")
    assert done.code == 2
    assert "HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN cannot be used" in done.err
    assert "s3cret" not in done.err


@pytest.mark.parametrize("token", ["", "s3cret"])
def test_that_nothing_can_be_posted_is_known_before_the_first_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def at_once(serving: HummingbirdService) -> None:
        serving.stop()
        async with asyncio.timeout(30):
            await begun(serving, signals=False)

    begun = HummingbirdService.run
    monkeypatch.setattr(HummingbirdService, "run", at_once)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUMMINGBIRD_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ORCHESTRATOR_GITLAB_TOKEN", token)
    monkeypatch.delenv("CONFIG_PATH", raising=False)
    assert serve_command(None, "127.0.0.1", 0, SandboxChoice(), grace=0, verbose=False) == 0
    said = capfd.readouterr().err
    assert ("ORCHESTRATOR_GITLAB_TOKEN is not set" in said) == (token == "")
    assert "No model can be asked in analyze-failures, code-review: set ANTHROPIC_API_KEY" in said
    assert "Commands run in bubblewrap: nothing names another one." in said
    assert "s3cret" not in said
