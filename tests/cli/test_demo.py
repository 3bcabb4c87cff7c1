"""`hummingbird demo`: the first thing that anybody sees. With an environment that holds nothing."""

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from hummingbird.lab.case import find_case
from tests.cli.typing_in import Typed, typed

COMMAND = [sys.executable, "-m", "hummingbird", "demo"]


def played(*arguments: str, cwd: Path, **variables: str) -> Typed:
    """In this process: starting one takes longer than most of what is tried here."""
    with chdir(cwd):
        return typed("demo", *arguments, environment={"HOME": "/nonexistent", **variables})


def as_a_command(*arguments: str, cwd: Path) -> Typed:
    command, nothing = [*COMMAND, *arguments], {"HOME": "/nonexistent"}
    done = subprocess.run(command, cwd=cwd, env=nothing, capture_output=True, text=True, check=False, timeout=120)
    return Typed(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("name", "play"), [("failing-test", as_a_command), ("konflux-build-and-test", played)], ids=["process", "here"]
)
def test_a_case_ends_with_its_note_without_a_key_or_a_network(
    name: str, play: Callable[..., Typed], tmp_path: Path
) -> None:
    """Event, queue, sandbox, sources, forge; the evidence is verbatim."""
    done = play("--case", name, "--save", str(tmp_path / "kept"), "--verbose", cwd=tmp_path)
    assert done.code == 0, done.err
    first_screen = done.out[done.out.index("❌ ") :].splitlines()[:12]
    assert any("**Next:** " in line for line in first_screen)
    expected = find_case(name).description["expected"]
    for line in expected["evidence"]:
        assert line.strip() in done.out, f"{line!r} is not quoted"
    kinds = [line.rpartition(": ")[2] for line in done.out.splitlines() if line.startswith("### ")]
    assert expected["verdict"] in kinds
    assert "Signed webhook delivered" in done.err
    assert "as a reply to its placeholder" in done.err
    session = re.search(r"session `([0-9a-f]{32})`", done.out)
    assert session, "the footer names the session"
    kept = {path.name for path in (tmp_path / "kept" / "sessions" / session[1]).iterdir()}
    assert {"journal.jsonl", "transcript.md"} <= kept


@pytest.mark.thorough
def test_a_review_is_a_case_too(tmp_path: Path) -> None:
    """Begun by a merge request that was opened; without a model there is no review, and the note says so."""
    done = played("--case", "merge-request-review", cwd=tmp_path)
    assert done.code == 1
    assert "This workflow needs a language model" in done.out


@pytest.mark.parametrize(
    ("name", "reason"), [("hostile", "is not a developer"), ("odd-corners", "the merge request is a draft")]
)
def test_a_case_that_nobody_may_begin_ends_with_the_reason(name: str, reason: str, tmp_path: Path) -> None:
    done = played("--case", name, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.startswith("No note was posted")
    assert reason in done.out


def test_a_case_that_is_not_there_is_bad_usage_and_names_those_that_are(tmp_path: Path) -> None:
    done = played("--case", "nope", cwd=tmp_path)
    assert done.code == 2
    assert "compiler-error" in done.err
    assert "Traceback" not in done.err


def test_nothing_is_put_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    done = played("--save", str(tmp_path), cwd=tmp_path)
    assert done.code == 2
    assert "is not empty" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.thorough
def test_the_real_gitlabs_tokens_never_reach_the_stand_in(tmp_path: Path) -> None:
    """Somebody tries the demonstration in the shell that the service is started from."""
    given = {
        "ORCHESTRATOR_GITLAB_TOKEN": "glpat-the-real-one-0123456789",
        "ORCHESTRATOR_GITLAB_TOKEN_LABRI_PROGRESS_CIDIFF": "glpat-the-other-one-0123456789",
        "HUMMINGBIRD_WEBHOOK_SECRET": "a-secret-of-the-real-service",
    }
    done = played("-v", cwd=tmp_path, **given)
    assert done.code == 0, done.err
    assert not [value for value in given.values() if value in done.out + done.err]


@pytest.mark.thorough
def test_a_provider_that_cannot_be_reached_does_not_keep_anybody_waiting(tmp_path: Path) -> None:
    """The report is written by rules, and says why, long before a service would give the provider up."""
    key = {"ANTHROPIC_API_KEY": "sk-ant-no-such-key", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    done = played(cwd=tmp_path, **key)
    assert done.code == 0, done.err
    assert "No model could be asked, so rules alone wrote this report: " in done.out
    assert key["ANTHROPIC_API_KEY"] not in done.out + done.err
