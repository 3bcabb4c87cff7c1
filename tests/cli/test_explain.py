"""`hummingbird explain`: what a person types, sees and gets back as an exit code."""

import bz2
import gzip
import json
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from hummingbird.cli.main import commands
from hummingbird.core.limits import EXCERPT_BYTES
from tests.cli.explaining import COMPILER, LINT, LOGS, TEST, run, run_process
from tests.evidence.sample_reports import SUREFIRE

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SHOWN = re.compile(r"^   [> ] +(\d+) │ ?(.*)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("log", "verdict", "cause"),
    [
        (COMPILER, "Verdict: code, sure (", "651 │ /home/travis/build/purescript/purescript/sdist-test/src/"),
        (
            TEST,
            "Verdict: test, fairly sure (",
            "488 │ io.reactivex.internal.operators.observable.ObservableRefCountTest > pub",
        ),
        (
            LINT,
            "Verdict: code, fairly sure (",
            "213 │ pages/common/mat2.md:3: TLDR004 Command descriptions should end in",
        ),
    ],
)
def test_a_real_log_is_explained_verdict_first_with_the_line_that_says_why(log: Path, verdict: str, cause: str) -> None:
    done = run(log)
    shown = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert shown.splitlines()[0].startswith(f"{log}: log, ")
    assert shown.splitlines()[2].startswith(verdict)
    assert shown.splitlines()[4].startswith("Failed: `")
    assert cause in shown


def test_it_is_a_command_that_reads_a_pipe() -> None:
    piped = run_process("--json", given=LINT.read_bytes())
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert json.loads(piped.stdout) == json.loads(run("--json", given=LINT.read_bytes()).stdout)


def test_a_group_says_what_it_looks_like_what_is_to_blame_how_sure_why_and_where() -> None:
    _, _, failed, group, blame, caption, *_ = [line for line in run(LINT).stdout.decode().splitlines() if line]
    assert failed == "Failed: `pages/common/mat2.md:3: TLDR004 Command descriptions should end in a period`"
    assert group == "### 1. Style or type check"
    assert blame == "   code, fairly sure (87%). A linter or type check refused the code. (rule linter-finding)"
    assert re.fullmatch(r"   Lines 213–215, fingerprint [0-9a-f]{16}, found by lint", caption)


@pytest.mark.parametrize("log", [COMPILER, TEST, LINT])
def test_every_line_that_is_shown_stands_in_the_log_under_its_number(log: Path) -> None:
    """Evidence is verbatim."""
    lines = log.read_bytes().split(b"\n")
    shown = SHOWN.findall(run(log).stdout.decode())
    assert len(shown) >= 8
    for number, text in shown:
        words = text.removesuffix("…").split()
        assert " ".join(words[:5]) in " ".join(COLOUR.sub("", lines[int(number) - 1].decode()).split())


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_standard_input_is_read_when_nothing_or_a_dash_is_named(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, given=LINT.read_bytes())
    assert done.stdout.decode().partition("\n")[2] == run(LINT).stdout.decode().partition("\n")[2]
    assert done.stdout.startswith(b"standard input: log, 243 lines, 25,057 bytes\n")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_packed_log_is_known_by_its_content_whatever_it_is_called(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "job.txt").write_bytes(pack(LINT.read_bytes()))
    done = run(tmp_path / "job.txt", "--json")
    assert json.loads(done.stdout) == json.loads(run(LINT, "--json").stdout) | {"file": str(tmp_path / "job.txt")}


def test_half_of_a_packed_log_is_explained_and_the_other_half_is_missed(tmp_path: Path) -> None:
    packed = gzip.compress(b"make: *** [all] Error 2\n" * 9 + os.urandom(40_000).hex().encode())
    (tmp_path / "job.gz").write_bytes(packed[:-10_000])
    done = run(tmp_path / "job.gz")
    assert done.returncode == 0
    assert b"make: *** [all] Error 2" in done.stdout
    assert done.stderr.endswith(b"job.gz ends in the middle of what gzip packed; the rest is missing.\n")


def test_a_test_report_is_explained_through_its_own_parser() -> None:
    done = run(given=SUREFIRE)
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert shown.startswith(
        "standard input: test report, 26 lines, 1,416 bytes\n│ Test report, 5 tests: 1 failed, 1 with"
    )
    assert "\nFailed: `org.example.CartTest.totals: " in shown
    assert (
        "Verdict: test, fairly sure (80%). A test ran and what it expected did not happen. (rule test-failed)" in shown
    )
    assert ">  5 │ FAILED org.example.CartTest.totals" in shown


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            b'<testsuite name="a"><testcase name="t2"><failure message="m">1 != 2\n',
            ["It is truncated", "FAILED a > t2"],
        ),
        (b'<testsuite tests="5" failures="3" errors="1"/>', ["The report declares 3 failures and 1 error without"]),
    ],
)
def test_a_report_that_is_not_whole_still_tells_of_its_failures(report: bytes, said: list[str]) -> None:
    done = run(given=report)
    assert done.returncode == 0
    assert all(words in done.stdout.decode() for words in said)
    assert b"It reports no failure" not in done.stdout


def test_tekton_objects_are_explained_and_have_no_line_numbers() -> None:
    done = run(LOGS / "tekton" / "pod_step_failed_exit1.json")
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert ": Tekton objects, " in shown
    assert "Tekton, 1 run: 1 failed" in shown
    assert "   >  │ FAILED Pod " in shown


@pytest.mark.parametrize("quiet", ["pipelinerun_test_succeeded.json", "taskrun_clamav_running.json"])
def test_objects_that_did_not_fail_are_nothing_found(quiet: str) -> None:
    done = run(LOGS / "tekton" / quiet)
    assert done.returncode == 1
    assert b"Nothing found. It reports no failure." in done.stdout


def test_a_pipe_gets_markdown_that_no_line_of_the_log_can_leave(tmp_path: Path) -> None:
    log = b"start\n```\nerror: no space left on device, see `df`\n```text\n# Heading\nERROR: Job failed: exit code 1\n"
    tokens = MarkdownIt().parse(run(given=log).stdout.decode())
    fences = [token for token in tokens if token.type == "fence"]
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert fences
    assert any("> " in fence.content and "no space left on device, see `df`" in fence.content for fence in fences)
    assert headings == [heading for heading in headings if heading[0].isdigit()]
    paragraphs = [token.content for token in tokens if token.type == "inline"]
    assert "Failed: `error: no space left on device, see 'df'`" in paragraphs
    assert any(text.startswith("Next: Retry the job: another runner may have room.") for text in paragraphs)


def test_nothing_found_is_said_plainly_and_is_exit_code_1() -> None:
    done = run(given=b"compiling\nlinking\nall is well\n")
    assert done.returncode == 1
    assert done.stdout == (
        b"standard input: log, 3 lines, 30 bytes\n\nNothing found. Nothing in this log looks like a failure.\n"
    )
    assert json.loads(run("--json", given=b"all is well\n").stdout)["regions"] == []


def test_the_document_has_the_keys_that_are_promised_and_repeats_the_page() -> None:
    """Keys may be added; these may not go while the version is 1."""
    found = json.loads(run(LINT, "--json").stdout)
    assert (found["version"], found["file"], found["form"]) == (1, str(LINT), "log")
    assert (found["lines"], found["bytes"], found["baseline"], found["summary"]) == (243, 25_057, None, [])
    assert found["verdict"] == {
        "class": "code", "sure": 0.87, "rule": "linter-finding", "why": "A linter or type check refused the code.",
    }  # fmt: skip
    region = found["regions"][0]
    assert set(region) >= {
        "group", "first", "last", "kind", "class", "sure", "rule", "why", "signal", "fingerprint", "score", "excerpt",
    }  # fmt: skip
    assert (region["first"], region["last"], region["kind"], region["signal"]) == (
        213,
        215,
        "style or type check",
        "lint",
    )
    assert region["excerpt"][0] == [213, "pages/common/mat2.md:3: TLDR004 Command descriptions should end in a period"]
    documented = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    for key in [*found, *region]:
        assert f"`{key}`" in documented


@pytest.mark.thorough
@pytest.mark.parametrize("budget", [256, 1000, EXCERPT_BYTES])
def test_the_excerpts_stay_within_the_budget_and_say_how_much_is_missing(budget: int) -> None:
    regions = json.loads(run(TEST, "--json", "--budget", str(budget)).stdout)["regions"]
    spent = sum(len(text.encode()) + 1 for region in regions for _, text in region["excerpt"])
    assert min(budget * 0.4, 1000) < spent <= budget
    missing = sum(region["left_out"] for region in regions)
    page = run(TEST, "--budget", str(budget)).stdout.decode()
    left_out = "1 line" if missing == 1 else f"{missing} lines"
    assert (f"\n{left_out} left out; a larger --budget shows more.\n" in page) == (missing > 0)
    assert missing > 0 or budget == EXCERPT_BYTES


def test_what_a_green_log_says_too_counts_for_less(tmp_path: Path) -> None:
    known = "error: the cache could not be restored, see the wiki for what to do about it"
    red, green = tmp_path / "red.log", tmp_path / "green.log.gz"
    red.write_text(f"start\n{known}\n" + "working\n" * 40 + "src/a.c:4:2: error: unknown type name 'sizet'\n")
    green.write_bytes(gzip.compress(f"start\nworking\n{known}".encode()))
    alone, compared = json.loads(run(red, "--json").stdout), json.loads(run(red, "--baseline", green, "--json").stdout)
    assert alone["baseline"] is None
    assert compared["baseline"] == {"file": str(green), "used": True}
    scores = [{r["first"]: r["score"] for r in found["regions"] for _ in r["excerpt"]} for found in (alone, compared)]
    assert scores[1][43] > scores[0][43]
    assert scores[1].get(2, -9.0) < scores[0][2]
    assert f", compared with {green}\n" in run(red, "--baseline", green).stdout.decode()


def test_a_baseline_for_a_report_is_said_to_be_of_no_use() -> None:
    done = run("--baseline", LINT, "--json", given=SUREFIRE)
    assert done.returncode == 0
    assert done.stderr == b"hummingbird: The baseline was not used: this is a test report, not a log.\n"
    assert json.loads(done.stdout)["baseline"] == {"file": str(LINT), "used": False}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("gone.log",), 2, "There is no file gone.log. Check its name and the folder you are in."),
        (("folder",), 2, "folder is a directory. Name a file in it."),
        (("empty.log",), 1, "The file empty.log is empty, so there is nothing to explain."),
        (("noise.bin",), 2, "The file noise.bin is not text, so it cannot be explained."),
        (("logs.zip",), 2, "The file logs.zip is a ZIP archive. Unpack it first"),
        (("torn.gz",), 2, "The file torn.gz begins like gzip and cannot be unpacked"),
        (("stub.gz",), 1, "The file stub.gz ends in the middle of what gzip packed; the rest is missing."),
        (("/proc/self/mem",), 2, "The file /proc/self/mem cannot be read: Input/output error."),
        (("good.log", "--baseline", "gone.log"), 2, "There is no file gone.log."),
        (("good.log", "--baseline", "folder"), 2, "folder is a directory."),
        (("good.log", "--baseline", "noise.bin"), 2, "The file noise.bin is not text"),
        (("good.log", "--baseline", "empty.log"), 2, "The baseline cannot be used: The file empty.log is empty"),
        (("good.log", "--baseline", "-"), 2, "A baseline cannot come from standard input."),
        (
            ("good.log", "--budget", "255"),
            2,
            "A budget of 255 bytes is out of range. Choose one from 256 to 1,048,576.",
        ),
        (("good.log", "--budget", "-1"), 2, "A budget of -1 bytes is out of range."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    arguments: tuple[str, ...], code: int, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.log").touch()
    (tmp_path / "good.log").write_text("fatal: boom\n")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 300)
    (tmp_path / "logs.zip").write_bytes(b"PK\x03\x04" + b"text " * 100)
    (tmp_path / "stub.gz").write_bytes(gzip.compress(b"fatal: boom\n")[:10])
    (tmp_path / "torn.gz").write_bytes(b"\x1f\x8b\x08" + b"not gzip at all" * 10)
    with chdir(tmp_path):
        done = run(*arguments)
    assert done.returncode == code
    assert done.stderr.decode().startswith(f"hummingbird: {sentence}")
    assert done.stderr.count(b"\n") == 1
    assert done.stdout == b""


@pytest.mark.thorough
def test_a_file_that_may_not_be_read_is_one_sentence(tmp_path: Path) -> None:
    """Nothing is forbidden to root, so root becomes nobody once everything is loaded."""
    (tmp_path / "mine.log").touch(mode=0)
    code = (
        "import os, hummingbird.cli.error_output, hummingbird.cli.explain\n"
        "from hummingbird.cli.main import main\n"
        "os.geteuid() or os.seteuid(65534)\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "explain", str(tmp_path / "mine.log")]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "mine.log may not be read by this user. Change its permissions, or read it as its owner.\n" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.thorough
def test_help_teaches_with_two_examples_and_loads_no_engine() -> None:
    shown = run("--help").stdout.decode()
    assert "  hummingbird explain job.log\n" in shown
    assert "  kubectl logs build-pod | hummingbird explain --baseline last-green.log.gz\n" in shown
    code = (
        "import sys; import hummingbird.cli.main; print([n for n in sys.modules if 'evidence' in n or 'ahocor' in n])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_the_command_works_inside_of_another_program_too() -> None:
    done = CliRunner().invoke(commands, ["explain", "--json"], input=b"x.c:1:1: error: expected ';'\n")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["regions"][0]["kind"] == "compiler error"
