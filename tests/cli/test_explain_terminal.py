"""`hummingbird explain` with a terminal, with pipes that break, with hostile logs and with very long ones."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.explaining import COLUMNS, COMMAND, LINT, TEST, on_terminal, run, run_process
from tests.thoroughly import also

OWN_STYLE = re.compile(r"\x1b\[[0-9;]*m")
PROGRESS = re.compile(r"\r\x1b\[K")
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
HOSTILE = (
    b"error: sets the clipboard \x1b]52;c;ZXZpbA==\x07 end\n"
    b"error: begins a clipboard and never ends it \x1b]52;c;ZXZpbA==\n"
    b"error: titles \x1b]0;owned\x1b\\ and \x1b]2;owned\n"
    b"error: one byte controls \xc2\x9b31m \xc2\x9d0;owned\xc2\x9c \xc2\x90q\xc2\x9c\n"
    b"error: device control \x1bPq#0;2;0\x1b\\ and \x1b_Gf=100;AAAA\x1b\\ and \x1b^pm\x1b\\\n"
    b"error: turns around \xe2\x80\xaetxt.exe \xe2\x81\xa7 isolated \xe2\x80\x8b hidden\n"
    b"error: line ends \xe2\x80\xa8 and \xc2\x85 and \x0b and \x0c\n"
    b"error: keys \x1b[?1049h \x1b[2J \x1b[6n \x1bc \x08\x08\x08 bell \x07 cut\x1b[\n"
    b"error: not UTF-8 \xff\xfe \xed\xa0\x80\n"
    b"error: accents Z" + "\u0335\u0322\u0327\u033a".encode() * 30 + b"\n"
)  # fmt: skip


@pytest.mark.parametrize("arguments", [(), also(("--color",)), also(("--json",))])
def test_nothing_in_a_log_reaches_the_terminal_as_a_command(arguments: tuple[str, ...], tmp_path: Path) -> None:
    log = tmp_path / "\x1b]0;owned\x07\u202eevil.log"
    log.write_bytes(HOSTILE)
    for seen in (run(log, *arguments).stdout.decode(), on_terminal(log, *arguments)[1]):
        assert "error: turns around" in seen
        assert FORBIDDEN.findall(OWN_STYLE.sub("", seen)) == []


HOSTILE_REPORT = (
    b'<testsuite><testcase name="x&#x202e;y&#x9b;31m"><failure message="boom&#10;Verdict: fine &#x1b;]0;t&#7;">'
    b"E  x\xe2\x80\xa8y</failure></testcase></testsuite>"
)
HOSTILE_OBJECT = (
    rb'{"kind":"TaskRun","metadata":{"name":"a\u001b]0;x\u0007\ud83d\u202e\nVerdict: fine"}, "status": {"conditions": '
    rb'[{"type": "Succeeded", "status": "False", "reason": "Failed", "message": "\u202e oh\nVerdict: \u009b"}]}}'
)


@pytest.mark.parametrize("content", [HOSTILE_REPORT, HOSTILE_OBJECT])
def test_reports_and_objects_are_no_safer_than_logs(content: bytes) -> None:
    seen = run(given=content).stdout.decode()
    assert FORBIDDEN.findall(seen) == []
    assert "\\u202e" in seen
    assert sum(row.startswith("Verdict") for row in seen.splitlines()) == 1
    assert seen.count("Verdict") > 1
    json.loads(run("--json", given=content).stdout)


def test_what_would_be_acted_upon_is_shown_in_backslashes() -> None:
    seen = run(given=HOSTILE).stdout.decode()
    assert "turns around \\u202etxt.exe \\u2067 isolated \\u200b hidden" in seen
    assert "never ends it \\x1b]52;c;ZXZpbA==" in seen
    assert "one byte controls \\x9b31m" in seen
    assert "line ends \\u2028 and \\x85" in seen


def test_the_name_of_a_file_is_no_safer_than_its_content(tmp_path: Path) -> None:
    done = run(tmp_path / "\x1b]0;owned\x07\u202e\udcff.log")
    assert "\\x1b]0;owned\\x07\\u202e\\udcff.log. Check its name" in done.stderr.decode()
    assert FORBIDDEN.findall(done.stderr.decode().rstrip("\n")) == []


def test_the_document_is_valid_whatever_the_log_holds() -> None:
    found = run("--json", given=HOSTILE).stdout
    assert found.isascii()
    assert any("\u202etxt.exe" in text for region in json.loads(found)["regions"] for _, text in region["excerpt"])


def test_a_long_line_cannot_pass_for_a_line_of_ours() -> None:
    """It is wrapped behind the bar."""
    forged = b"error: boom " + b"x" * COLUMNS + b"Verdict: all is well" + b" " * COLUMNS + b"1. Nothing to see here\n"
    _, seen = on_terminal("--no-color", given=b"start\n" + forged)
    rows = seen.splitlines()
    assert all("│" in row for row in rows if "boom" in row or "xxx" in row or "all is well" in row)
    excerpt = rows[next(at for at, row in enumerate(rows) if "2 │ error: boom" in row) :]
    assert len(excerpt) > 3
    assert all("│" in row and len(row) <= COLUMNS for row in excerpt)
    assert sum(row.startswith("Verdict") for row in rows) == 1


@pytest.mark.thorough
def test_wide_letters_are_wrapped_by_their_width() -> None:
    _, seen = on_terminal("--no-color", given="error: fatal 失敗\n".encode() + ("error: " + "失敗" * 60).encode())
    rows = [row for row in seen.splitlines() if "失敗失敗" in row]
    assert len(rows) > 3
    assert all(len(row) + len(re.findall("[失敗]", row)) <= COLUMNS for row in rows)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "environment", "coloured"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        also((), {"NO_COLOR": ""}, True),
        also((), {"TERM": "dumb"}, False),
        also(("--no-color",), {}, False),
        also(("--color",), {"NO_COLOR": "1"}, True),
        also(("--json",), {}, False),
    ],
)
def test_a_terminal_gets_colours_unless_somebody_objects(
    arguments: tuple[str, ...], environment: dict[str, str], coloured: bool
) -> None:
    code, seen = on_terminal(LINT, *arguments, environment=environment)
    assert code == 0
    assert (OWN_STYLE.search(seen) is not None) == coloured
    assert "TLDR004" in seen


def test_a_pipe_gets_no_colours_unless_they_are_asked_for() -> None:
    assert b"\x1b" not in run(LINT, TERM="xterm").stdout
    lead = next(
        line for line in run(LINT, "--color").stdout.decode().splitlines() if "│ " in line and "TLDR004" in line
    )
    assert "\x1b[31m\x1b[1mpages/common/mat2.md" in lead


@pytest.mark.thorough
def test_colours_change_nothing_but_colours() -> None:
    assert OWN_STYLE.sub("", run(TEST, "--color").stdout.decode()) == run(TEST).stdout.decode()


@pytest.mark.thorough
def test_a_terminal_that_knows_no_utf_8_gets_numbers_instead_of_an_error() -> None:
    done = run_process(LINT, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert b"213 \\u2502 pages/common/mat2.md" in done.stdout


@pytest.mark.thorough
def test_a_person_who_pipes_nothing_in_is_told_how_to_use_it() -> None:
    code, seen = on_terminal(given=None)
    assert code == 2
    assert seen.startswith(
        "hummingbird: Name a log, or pipe one in. Try: hummingbird explain job.log, or: kubectl logs"
    )


@pytest.mark.thorough
def test_much_input_shows_progress_to_a_person_and_to_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "long.log").write_bytes(b"all is well\n" * 1_500_000)
    _, seen = on_terminal(tmp_path / "long.log", "--no-color")
    told, _, page = seen.rpartition("\r\x1b[K")
    assert re.findall(r"Read [\d,]+ of 18 MB", told) == ["Read 8 of 18 MB", "Read 17 of 18 MB"]
    assert PROGRESS.search(page) is None
    assert run(tmp_path / "long.log").stderr == b""


@pytest.mark.thorough
def test_a_reader_that_goes_away_is_one_sentence_and_no_traceback() -> None:
    its, mine = os.pipe()
    os.close(its)
    done = subprocess.run([*COMMAND, str(LINT)], stdout=mine, stderr=subprocess.PIPE, env={}, check=False)
    os.close(mine)
    assert done.returncode == 1
    assert done.stderr == b"hummingbird: Whoever was reading the output has stopped, so the rest was not written.\n"


@pytest.mark.thorough
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMMAND, str(LINT)], stdout=full, stderr=subprocess.PIPE, env={}, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"hummingbird: The output cannot be written: No space left on device.")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.thorough
def test_closed_standard_input_is_one_sentence() -> None:
    done = subprocess.run(["/bin/sh", "-c", '"$@" <&-', "sh", *COMMAND], env={}, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == b"hummingbird: Standard input is closed. Name a file: hummingbird explain job.log\n"


@pytest.mark.thorough
def test_ctrl_c_while_reading_is_exit_code_130(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (  # what runs the tests may have told its children to ignore the signal
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv[0] = 'hummingbird'; "
        "from hummingbird.cli.main import main; main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, "explain", str(pipe)], stderr=subprocess.PIPE, env={})
    with pipe.open("wb"):  # returns once the other side is reading
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said.strip() == b"interrupted"


PEAK = (  # of this program alone; getrusage would count the process that started it too
    "import re, runpy, sys; sys.argv = ['hummingbird', 'explain', '-', '--json']\n"
    "try: runpy.run_module('hummingbird', run_name='__main__')\n"
    "finally: print(re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1], file=sys.stderr)\n"
)


@pytest.mark.thorough
@pytest.mark.parametrize("packed", [also(False), True])
def test_a_long_log_costs_less_memory_than_it_is_long(packed: bool) -> None:
    """The bound of 64 MB is that of a log of any size; this one has 100 MB."""
    block = b"".join(b"[%d] compiling module_%d: no error so far\n" % (at, at * 7) for at in range(25_000))
    wanted = 100_000_000 // len(block) + 1
    pieces = [block] * wanted + [b"x.c:1:1: error: expected ';'\n"]
    command = [sys.executable, "-c", PEAK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for piece in pieces:
            process.stdin.write(gzip.compress(piece, 1) if packed else piece)
        process.stdin.close()
        found, peak = json.loads(process.stdout.read()), int(process.stderr.read())
    assert found["bytes"] == sum(map(len, pieces))
    assert found["regions"][0]["last"] == wanted * 25_000 + 1
    assert peak < 64 * 1024


@pytest.mark.thorough
def test_a_line_without_an_end_costs_no_memory_either() -> None:
    """Packed it is small, and it has not one line feed in 128 MiB."""
    bomb = gzip.compress(b"fatal: " + b"x" * (128 * 1024 * 1024), 9)
    done = subprocess.run([sys.executable, "-c", PEAK], input=bomb, capture_output=True, check=False)
    assert json.loads(done.stdout)["lines"] == 1
    assert int(done.stderr) < 64 * 1024
