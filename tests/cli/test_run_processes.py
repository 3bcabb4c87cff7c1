"""`hummingbird run` in processes of its own: by both names, resumed elsewhere, interrupted, watched."""

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.app.conducting import MODEL, begun, shell, until
from tests.app.running_on import FILES, WORKFLOW, Site, site
from tests.cli.typing_in import typed
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.thoroughly import also

MODULE = (sys.executable, "-m", "hummingbird")
AGENT = (str(Path(sys.executable).with_name("hummingbird-agent")),)


def environment(here: Site, **more: str) -> dict[str, str]:
    return {**here.environment, "CONFIG_PATH": str(here.config), **more}


def run(here: Site, program: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*program, "run", *arguments], input=b"", env=environment(here), capture_output=True, check=False, timeout=90
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def all_of(terminal: int) -> bytes:
    seen = b""
    with os.fdopen(terminal, "rb", buffering=0) as screen, suppress(OSError):  # so Linux says that all have left
        while piece := screen.read(65536):
            seen += piece
    return seen


@pytest.mark.thorough
@pytest.mark.parametrize("program", [MODULE, AGENT])
def test_the_reference_documents_command_lines_work(tmp_path: Path, program: tuple[str, ...]) -> None:
    """One saves, the next only asks, and the next goes on with an event file and is saved in another folder."""
    one, two = str(tmp_path / "my-session"), str(tmp_path / "my-session-2")
    with site(tmp_path) as here:
        named = ("--workflow", WORKFLOW, "--project", here.project, "--event", here.event())
        first = run(here, program, *named, "--save-session", one)
        assert first.returncode == 0, first.stderr
        saved = (Path(one) / "journal.jsonl").read_bytes()
        asked = ("--resume-session", one, "--message", "Can you look at the failure more closely?")
        second = run(here, program, *named, *asked)
        assert second.returncode == 0, second.stderr
        (tmp_path / "event.json").write_text(json.dumps(here.webhook()))
        event = ("--event-file", str(tmp_path / "event.json"))
        third = run(here, program, *event, "--resume-session", one, "--message", "Which?", "--save-session", two)
        assert third.returncode == 0, third.stderr
        assert here.written == []
    assert here.evidence in first.stdout
    assert sorted(file.name for file in Path(two).iterdir()) == [*FILES]
    transcript = (Path(two) / "transcript.md").read_text()
    assert "Can you look at the failure more closely?" not in transcript
    assert "Which?" in transcript
    assert (Path(one) / "journal.jsonl").read_bytes() == saved, "what was not to be saved there was not"


def test_an_event_comes_from_standard_input(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        event = json.dumps(here.webhook()).encode()
        done = typed("run", "--event-file", "-", environment=environment(here), piped=event)
    assert done.code == 0, done.err
    assert here.evidence in done.out


@pytest.mark.parametrize(("number", "code"), [also(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"])
def test_what_is_interrupted_can_go_on(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """By Ctrl-C or by whoever ends processes: it says where the session is, and another process goes on with it."""
    folder = tmp_path / "mine"
    script = Script([shell("sleep 60"), Turn(text="Now I know.")])
    with site(tmp_path) as here, VendorLab(script) as lab:
        given = environment(here, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=lab.anthropic_url)
        named = [*MODULE, "run", "--workflow", WORKFLOW, "--project", here.project, "--model", MODEL]
        command = [*named, "--event", here.event(), "--save-session", str(folder)]
        with subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            asyncio.run(until(lambda: begun(folder / "journal.jsonl", "sleep 60")))
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (code, "")
        assert "Traceback" not in err
        assert f"--resume-session {folder}" in err
        again = [*named[len(MODULE) :], "--resume-session", str(folder), "--message", "Go on."]
        done = typed(*again, environment=given)
        script.assert_consumed()
    assert done.code == 0, done.err
    assert done.out.startswith("Now I know.\n")


@pytest.mark.thorough
def test_a_person_at_a_terminal_sees_what_happens_and_nothing_acts_on_it(tmp_path: Path) -> None:
    """Progress; and an escape sequence that the model repeats is shown, not done."""
    script = Script([shell("true"), Turn(text="The log says \x1b]0;owned\x07 here.")])
    with site(tmp_path) as here, VendorLab(script) as lab:
        given = environment(here, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=lab.anthropic_url)
        named = ["--workflow", WORKFLOW, "--project", here.project, "--model", MODEL, "--event", here.event()]
        mine, its = pty.openpty()
        with subprocess.Popen([*MODULE, "run", *named], env=given, stdin=its, stdout=its, stderr=its) as process:
            os.close(its)
            seen = all_of(mine).decode()
    assert process.returncode == 0, seen
    assert "→ sandbox_exec" in seen
    assert r"\x1b]0;owned\x07" in seen
    assert "\x1b]0;owned" not in seen
