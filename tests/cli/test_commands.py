"""The command line: what a person types, sees and gets back as an exit code (G6, L12)."""

import subprocess
import sys
from pathlib import Path

import pytest

from hummingbird.cli.faults import explain
from hummingbird.domain.errors import ConnectionLost, MissingSetting

COMMAND = [sys.executable, "-m", "hummingbird"]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, env={"HOME": "/nonexistent"}, capture_output=True, text=True, check=False
    )


def test_the_demo_finds_the_cause_with_no_key_no_network_and_an_empty_environment(tmp_path: Path) -> None:
    done = run("demo", "--save", str(tmp_path / "kept"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "net/http: TLS handshake timeout" in done.stdout
    assert "3 model calls" in done.stdout
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"journal.jsonl", "transcript.md"}
    assert "TLS handshake timeout" in (tmp_path / "kept" / "transcript.md").read_text()


def test_the_demo_quotes_only_lines_that_are_in_the_log() -> None:
    """Evidence is verbatim, in the demo too."""
    log = Path(__file__).parents[2] / "src/hummingbird/lab/cases/registry-timeout/job.log"
    lines = log.read_text().splitlines()
    quoted = [line.strip() for line in run("demo").stdout.splitlines() if line.startswith("    ")]
    assert len(quoted) == 5
    for quote in quoted:
        number, text = quote.split(": ", 1)
        plain = lines[int(number) - 1].replace("\x1b[0m", "").replace("\x1b[1m", "").replace("\x1b[31m", "")
        assert text in plain


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """G6"""
    (tmp_path / "file").write_text("in the way")
    done = run("demo", "--save", str(tmp_path / "file" / "x"))
    assert done.returncode == 1
    assert "cannot be opened" in done.stderr
    assert "Traceback" not in done.stderr


def test_verbose_shows_where_an_error_came_from(tmp_path: Path) -> None:
    """G6"""
    (tmp_path / "file").write_text("in the way")
    assert "Traceback" in run("demo", "-v", "--save", str(tmp_path / "file" / "x")).stderr


@pytest.mark.parametrize("arguments", [("nope",), ("demo", "--nope"), ("demo", "extra")])
def test_bad_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    """L12"""
    done = run(*arguments)
    assert done.returncode == 2
    assert "Usage:" in done.stderr


def test_help_and_version_are_success() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    assert "demo" in shown.stdout
    assert "130 interrupted" in shown.stdout
    assert run("--version").stdout.startswith("hummingbird, version")


def test_importing_the_package_imports_no_dependency() -> None:
    """Design: importing `hummingbird` costs nothing; --help loads click and nothing else."""
    heavy = "{'msgspec', 'httpx2', 'jsonschema_rs', 'genai_prices', 'google', 'starlette', 'uvicorn', 'asyncio'}"
    heavy += " | {'gitlab', 'pydantic', 'yaml', 'boto3'}"
    for statement in ("import hummingbird", "import hummingbird.cli.main"):
        code = f"import sys; {statement}; print(sorted(({heavy}) & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", statement


def test_an_operators_error_is_exit_code_2_and_a_providers_1(capsys: pytest.CaptureFixture[str]) -> None:
    """L12"""
    assert explain(MissingSetting("Set X."), ["hummingbird"]) == 2
    assert explain(ConnectionLost("It broke."), ["hummingbird"]) == 1
    assert explain(ValueError("oops"), ["hummingbird"]) == 1
    shown = capsys.readouterr().err
    assert "hummingbird: Set X." in shown
    assert "unexpected ValueError: oops" in shown
