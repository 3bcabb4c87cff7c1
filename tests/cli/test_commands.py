"""The command line: what a person types, sees and gets back as an exit code."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hummingbird.cli.error_output import report_error
from hummingbird.cli.main import COMMANDS, commands
from hummingbird.core.errors import MissingSetting, ProviderConnectionLost
from tests.cli.typing_in import Typed, typed
from tests.thoroughly import also

COMMAND = [sys.executable, "-m", "hummingbird"]


def run(*arguments: str) -> Typed:
    """In this process: starting one takes longer than what is tried here."""
    return typed(*arguments, environment={"HOME": "/nonexistent"})


def test_the_name_of_the_distribution_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hummingbird_agent", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("hummingbird")


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run("demo", "--save", str(tmp_path / "file" / "x"))
    assert done.code == 2
    assert "Name another folder" in done.err
    assert "Traceback" not in done.err


def test_verbose_shows_where_an_error_came_from(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "Traceback" in run("demo", "-v", "--save", str(tmp_path / "file" / "x")).err


@pytest.mark.parametrize("arguments", [("nope",), ("demo", "--nope"), ("demo", "extra")])
def test_bad_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert "Usage:" in done.err


def test_help_and_version_are_success() -> None:
    shown = run("--help")
    assert shown.code == 0
    assert "demo" in shown.out
    assert "130 interrupted" in shown.out
    assert run("--version").out.startswith("hummingbird, version")


def test_importing_the_package_imports_no_dependency() -> None:
    """Design: importing `hummingbird` costs nothing; --help loads click and nothing else."""
    heavy = "{'msgspec', 'httpx2', 'jsonschema_rs', 'genai_prices', 'google', 'starlette', 'uvicorn', 'asyncio'}"
    heavy += " | {'gitlab', 'pydantic', 'yaml', 'boto3'}"
    for statement in ("import hummingbird", "import hummingbird.cli.main"):
        code = f"import sys; {statement}; print(sorted(({heavy}) & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", statement


def test_an_operators_error_is_exit_code_2_and_a_providers_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(MissingSetting("Set X."), ["hummingbird"]) == 2
    assert report_error(ProviderConnectionLost("It broke."), ["hummingbird"]) == 1
    assert report_error(ValueError("oops"), ["hummingbird"]) == 1
    shown = capsys.readouterr().err
    assert "hummingbird: Set X." in shown
    assert "unexpected ValueError: oops" in shown


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["hummingbird", "hummingbird-agent"])
def test_both_names_of_the_program_are_the_same_command(name: str) -> None:
    program = Path(sys.executable).with_name(name)
    shown = subprocess.run([program, "config", "--help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "hummingbird config explain group/project" in shown.stdout
    assert run("config", "--help").code == 0


def test_help_lists_every_command_with_a_whole_summary_that_fits() -> None:
    rows = [line.split(maxsplit=1) for line in run("--help").out.splitlines() if line.startswith("  ")]
    listed = {row[0]: row[1] for row in rows if row[0] in COMMANDS}
    assert listed == {name: summary for name, (_, _, summary) in COMMANDS.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", [("--help",), ("config", "schema"), also(("lab",))])
def test_an_output_that_is_full_is_one_sentence(arguments: tuple[str, ...]) -> None:
    """Little is refused when it is flushed, much when it is written."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, env={}, text=True, check=False, timeout=60
        )
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "write" in line or "Error" in line] == [
        "hummingbird: The output cannot be written: No space left on device. Make room, or write it elsewhere."
    ]


@pytest.mark.thorough
def test_a_reader_that_goes_away_is_left_without_a_word() -> None:
    """As of any program in a pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = subprocess.run(
            [*COMMAND, "config", "schema"],
            stdout=gone,
            stderr=subprocess.PIPE,
            env={},
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), also({"NO_COLOR": "1"}, False), also({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colours_unless_they_are_unwanted(
    tmp_path: Path, variables: dict[str, str], coloured: bool
) -> None:
    (tmp_path / "hummingbird.yaml").write_text("modle: x\n")
    shown, terminal = pty.openpty()
    subprocess.run([*COMMAND, "doctor"], cwd=tmp_path, stdout=terminal, env=variables, check=False, timeout=60)
    os.close(terminal)
    said = os.read(shown, 100_000)
    os.close(shown)
    assert b"perhaps" in said or b"no such key" in said
    assert (b"\x1b[" in said) == coloured


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_table_of_commands_shows_each_command_s_own_summary(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    assert command.get_short_help_str(200) == COMMANDS[name][2]
