"""What `make test` and its siblings add to pytest: costs, the slowest tests, short failures, cheap collection."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SDKS = {"anthropic", "cfnlint", "google.genai", "openai", "playwright"}  # a tenth of a second to two, each
FAILING = """
def test_long():
    print("\\n".join(f"line {number}" for number in range(600)))
    assert "\\n".join(map(str, range(600))) == "", "the list is not empty"
"""
ABANDONING = """
import os, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        while time.process_time() < 1:
            pass
        os.write(writing, str(os.getpid()).encode())
    os._exit(0)
orphan = os.read(reading, 20).decode()
while os.path.exists(f"/proc/{orphan}"):
    time.sleep(0.01)
sys.exit(7)
"""
CONFTEST = """
import pytest
from tests.failure_report import shorten

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    shorten(report)
    return report
"""


def run(*words: str, cwd: Path = ROOT, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment or None, capture_output=True, text=True, check=False
    )


@pytest.mark.thorough
def test_cost_includes_orphans() -> None:
    done = run("-m", "tests.cpu_time", sys.executable, "-c", ABANDONING)
    assert (done.returncode, done.stderr) == (7, "")
    assert float(done.stdout.partition(" CPU-seconds")[0]) >= 1


@pytest.mark.thorough
def test_failure_is_short_in_ci_and_slowest_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ("-m", "pytest", "-p", "tests.slowest", "-p", "no:cacheprovider", "--tb=short", "-n", "1", "-q")
    done = run(*options, cwd=tmp_path, CI="true", PYTHONPATH=str(ROOT))
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) < 100
    assert "AssertionError: the list is not empty" in done.stdout
    assert "slowest tests by CPU seconds" in done.stdout
    assert "test_failing.py::test_long" in done.stdout.partition("slowest tests by CPU seconds")[2]


@pytest.mark.thorough
@pytest.mark.parametrize("sdk", sorted(SDKS))
def test_collection_imports_no_sdk(sdk: str) -> None:
    """Each of pytest's processes reads all test modules."""
    guilty = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if sdk in (text := path.read_text(encoding="utf-8")) and sdk in _imported(ast.parse(text))
    ]
    assert guilty == []


def _imported(module: ast.Module) -> set[str]:
    """Return the SDKs that the top of a module imports."""
    names: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            names |= {statement.module, *(f"{statement.module}.{alias.name}" for alias in statement.names)}
    return {sdk for sdk in SDKS for name in names if f"{name}.".startswith(f"{sdk}.")}


def test_no_code_points_to_a_document_that_readers_do_not_have() -> None:
    """Such as a letter with a number in parentheses, or the numbered facts somebody once collected."""
    files = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.yaml", "*.toml", "*.html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    code = re.compile(r"\((?!S3)(?:[A-Z]\d{1,2}[,;:)]|facts \d)|\bfacts \d")
    found = [
        f"{file}:{number}: {line.strip()[:80]}"
        for file in filter(None, files)
        if "lab/cases" not in file and file != "tests/tooling/test_running_tests.py"
        for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1)
        if code.search(line)
    ]
    assert found == []
