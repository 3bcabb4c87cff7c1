"""What is broken around a chat is told in one sentence, and the conversation goes on."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.sandboxes.bubblewrap import find_bubblewrap
from tests.journeys.chat.stage import Bird, Home, calling, saying, until
from tests.journeys.faults.disks import PAGE

Chat = Callable[..., Bird]
pytestmark = pytest.mark.thorough
DISK_BYTES = 2 * 1024 * 1024


def told(bird: Bird, words: str) -> int:
    """How often it was said, whatever the terminal broke into lines."""
    return re.sub(r"\s+", " ", bird.all()).count(words)


def fill(folder: Path) -> Path:
    filler = folder / "somebody-elses-file"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * PAGE)
        except OSError:
            return filler


def test_a_full_disk_costs_the_record_and_neither_the_answers_nor_what_was_typed(home: Home, chat: Chat) -> None:
    """A disk of its own, full before the second message."""
    home.state.mkdir()
    wrapped = (str(find_bubblewrap()), "--dev-bind", "/", "/", "--size", str(DISK_BYTES), "--tmpfs", str(home.state))
    home.lab.script.extend(saying("Heard one."), saying("Heard two."), saying("Heard three."), saying("Heard four."))
    bird = chat(prefix=(*wrapped, "--")).ready()
    bird.answered("one", "Heard one.")
    own = next(one for one in bird.started() if not one.line.startswith(wrapped[0].encode()))
    fill(Path(f"/proc/{own.pid}/root") / home.state.relative_to("/"))
    bird.answered("two", "Heard two.")
    bird.answered("three", "Heard three.")
    bird.answered("four", "Heard four.")
    assert "Heard one." in home.asked()
    assert "Heard three." in home.asked(), "what could not be written is still part of the conversation"
    assert told(bird, "This session is not saved from here on") == 1
    assert told(bird, "No space left on device") <= 2, "the journal, and before it what is made of it"
    bird.press("Up")
    bird.wait_for("› four")
    assert "Traceback" not in bird.all()


def test_a_damaged_index_is_made_anew(home: Home, chat: Chat) -> None:
    home.lab.script.extend(saying("About pelicans."), saying("Still here."))
    home.piped("-q", "pelicans please")
    (index,) = (path for path in home.state.rglob("*") if path.is_file() and b"fts5" in path.read_bytes()[:65536])
    for beside in index.parent.glob(f"{index.name}-*"):
        beside.unlink()
    index.write_bytes(b"this is no database " * 500)
    bird = chat().ready()
    bird.answered("are you there?", "Still here.")
    assert told(bird, "a new one is used") == 1
    bird.send("/sessions pelicans")
    bird.wait_below("> /sessions", "pelicans please")
    bird.wait_below("> /sessions", "Said there:")


def test_a_session_of_a_newer_version_is_refused_in_one_sentence_and_left_as_it_is(home: Home, chat: Chat) -> None:
    home.lab.script.extend(saying("From the future."), saying("From the present."))
    home.piped("-q", "hello")
    (session,) = home.sessions()
    journal = home.state / "sessions" / session / "journal.jsonl"
    first, rest = journal.read_bytes().split(b"\n", 1)
    opened = {**json.loads(first), "format": JOURNAL_FORMAT + 1}
    newer = json.dumps(opened).encode() + b"\n" + rest
    journal.write_bytes(newer)
    ran = home.piped("-q", "go on", "--resume", session)
    assert ran.code == 2
    assert len(ran.err.strip().splitlines()) == 1
    assert "newer" in ran.err
    bird = chat().ready()
    bird.send(f"/resume {session}")
    bird.wait_below("> /resume", "newer")
    bird.answered("then a new one", "From the present.")
    assert journal.read_bytes() == newer


def test_a_memory_that_is_no_text_is_told_and_copied_before_it_is_written(home: Home, chat: Chat) -> None:
    home.lab.script.extend(
        *(calling("memory", action="add", file="memory", text="The user likes terns."), saying("Noted."))
    )
    memory, broken = home.state / "memory" / "MEMORY.md", b"\xff\xfe\x00broken \x80"
    memory.parent.mkdir(parents=True)
    memory.write_bytes(broken)
    bird = chat().ready()
    bird.answered("remember terns", "Noted.")
    assert told(bird, str(memory)) >= 1
    assert memory.with_name("MEMORY.md.bak").read_bytes() == broken
    now = memory.read_text(encoding="utf-8")
    assert "broken" in now
    assert now.endswith(": The user likes terns.\n")


def test_servers_of_tools_that_hang_or_die_keep_nobody_waiting(home: Home, chat: Chat) -> None:
    hanging = "import time, sys; sys.stderr.write('x'); time.sleep(300)"
    python = {"command": sys.executable, "tools": ["anything"]}
    home.configure(
        {
            "mcp_servers": {
                "hangs": {**python, "args": ["-c", hanging]},
                "dies": {**python, "args": ["-c", "raise SystemExit(3)"]},
                "missing": {**python, "command": "no-such-program-here"},
            }
        }
    )
    home.lab.script.extend(saying("Answered without them."))
    bird = chat()
    bird.ready()
    started = bird.started(b"time.sleep(300)")
    bird.answered("hello", "Answered without them.")
    assert "Waiting for servers of tools to answer" in " ".join(bird.all().split())
    for name in ("hangs", "dies", "missing"):
        until(lambda name=name: told(bird, name) >= 1, bird.all)  # type: ignore[misc]  # bound to this round
    bird.send("/quit")
    bird.wait_for("ENDED 0")
    until(lambda: not [one for one in started if one.alive], lambda: [one for one in started if one.alive])
