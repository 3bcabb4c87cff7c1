"""`hummingbird chat` as somebody runs it: the real command in a real terminal or through a pipe, a real workspace, a
real sandbox, real commands of the host. Only the model's vendor is one of the lab's, and says what the script says.
"""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from hummingbird.core.journal import JournalEntry
from hummingbird.storage.journals import FileJournal
from tests.chat.window import Window, environment
from tests.cli.typing_in import Typed, typed
from tests.journeys.chat.processes import Process, below
from tests.standins.vendors.script import Call, Turn
from tests.standins.vendors.server import VendorLab

MODEL = "openai:gpt-6.1-terra"
OTHER = "openai:gpt-6.1-sol"
READY = "\nready"
COLUMNS, ROWS = 110, 50
PATIENCE_S = 60.0  # of a machine that does other things
T = TypeVar("T")


def calling(name: str, **arguments: Any) -> Turn:
    return Turn(calls=(Call(name, arguments),))


def saying(text: str) -> Turn:
    return Turn(text=text)


@dataclass
class Home:
    """A machine with a workspace and a state folder, as many chats after one another as are begun."""

    folder: Path
    lab: VendorLab
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workspace.mkdir(exist_ok=True)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def config(self) -> Path:
        return self.folder / "hummingbird.yaml"

    @property
    def given(self) -> dict[str, str]:
        return {
            "HUMMINGBIRD_HOME": str(self.state),
            "OPENAI_BASE_URL": self.lab.openai_url,
            "OPENAI_API_KEY": "k-123456789",
            **self.more,
        }

    def configure(self, chat: Mapping[str, Any], **settings: Any) -> None:
        self.config.write_text(
            yaml.safe_dump({"settings": settings, "chat": {"titles": False, **chat}}), encoding="utf-8"
        )

    def words(self, *options: str) -> list[str]:
        config = ["--config", str(self.config)] if self.config.exists() else []
        model = [] if "--model" in options else ["--model", MODEL]
        place = ["--workspace", str(self.workspace)]
        return [sys.executable, "-m", "hummingbird", "chat", *config, *model, *place, *options]

    def piped(self, *options: str, stdin: bytes = b"") -> Typed:
        """What a chat without a terminal says, in this process: starting one takes longer than the chat itself."""
        return typed(*self.words(*options)[3:], environment=environment(**self.given), piped=stdin)

    def piped_process(self, *options: str) -> Typed:
        given, words = environment(**self.given), self.words(*options)
        ran = subprocess.run(words, env=given, input=b"", capture_output=True, check=False, timeout=PATIENCE_S)
        return Typed(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    def asked(self, at: int = -1) -> str:
        """All that the model was shown by one request."""
        return json.dumps(self.lab.requests[at].body, ensure_ascii=False)

    def sessions(self) -> list[str]:
        """The ids, the one that changed last first."""
        found = (self.state / "sessions").glob("*/journal.jsonl")
        return [path.parent.name for path in sorted(found, key=lambda path: -path.stat().st_mtime)]

    def entries(self, session_id: str) -> Sequence[JournalEntry]:
        journal = FileJournal(self.state / "sessions" / session_id / "journal.jsonl")
        journal.close()
        return journal.entries()


class Bird(Window):
    """A chat in a terminal. Close it, or a server is left behind."""

    def __init__(self, home: Home, *options: str, prefix: Sequence[str] = ()) -> None:
        self._socket = f"hb-{uuid.uuid4().hex[:8]}"
        self._environment = environment(**home.given)
        self._folder = home.folder
        script = home.folder / f"start-{self._socket}"
        script.write_text('"$@"; echo ENDED $?; sleep 60\n')
        given = [word for name, value in environment(**home.given).items() for word in ("-e", f"{name}={value}")]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        command = ["sh", str(script), *prefix, *home.words(*options)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, *given, "-c", str(home.workspace), *command)

    def ready(self) -> "Bird":
        self.wait_for(READY)
        return self

    def answered(self, message: str, answer: str) -> str:
        """What stands there when it was answered and the prompt is back."""
        self.send(message)
        self.wait_for(answer)
        return self.wait_for(READY)

    def wait_below(self, mark: str, words: str) -> str:
        """Words that stand below the last line with the mark."""
        return self.wait_for(lambda seen: words in seen.rpartition(mark)[2] and mark in seen)

    def wait_all(self, words: str) -> str:
        """Also in what has scrolled away."""
        return until(lambda: self.all() if words in self.all() else "", self.screen)

    def process(self) -> Process:
        """Hummingbird itself."""
        shell = int(self._tmux("display-message", "-p", "#{pane_pid}"))
        return next(one for one in below(shell) if b"hummingbird" in one.line)

    def started(self, *patterns: bytes) -> list[Process]:
        """All that hummingbird has started, once there is one for each pattern."""
        own = self.process().pid

        def found() -> list[Process]:
            there = below(own)
            return there if all(any(one in each.line for each in there) for one in patterns) else []

        return until(found, lambda: str([each.line for each in below(own)]))


def until(holds: Callable[[], T], instead: Callable[[], object] = lambda: "") -> T:
    """What it is once it is anything. Fails with what is there instead."""
    end = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        if time.monotonic() > end:
            pytest.fail(f"that did not come within {PATIENCE_S} s; there is: {instead()}")
        time.sleep(0.02)
    return found


def parsed(lines: str) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        yield json.loads(line)
