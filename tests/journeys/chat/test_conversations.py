"""One conversation after the other, and what is done to one: new, resumed, compacted, saved."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from hummingbird.core.journal import Compacted, CompactionUndone
from tests.chat.window import environment
from tests.journeys.chat.stage import MODEL, OTHER, PATIENCE_S, Bird, Home, saying, until
from tests.standins.vendors.script import Turn

Chat = Callable[..., Bird]


def test_sessions_are_begun_listed_and_resumed_and_the_model_is_another_one(home: Home, chat: Chat) -> None:
    home.lab.script.extend(
        saying("The first hears."), saying("The second hears."), saying("The first again."), saying("Another voice.")
    )
    bird = chat().ready()
    bird.answered("albatross here", "The first hears.")
    (first,) = home.sessions()
    bird.send("/new")
    bird.wait_all(f"/resume {first[:12]}")
    bird.wait_for(f"ready · {MODEL}")
    bird.answered("budgerigar here", "The second hears.")
    assert "albatross" not in home.asked()
    bird.send("/sessions")
    bird.wait_below("> /sessions", "albatross here")
    bird.wait_below("> /sessions", "budgerigar here")
    bird.send(f"/resume {first[:6]}")
    bird.wait_below("> /resume", "Going on with")
    bird.answered("still you?", "The first again.")
    assert "albatross here" in home.asked()
    assert "budgerigar" not in home.asked()
    bird.send(f"/model {OTHER}")
    bird.wait_for("From the next message on")
    bird.answered("and now?", "Another voice.")
    assert home.lab.requests[-1].body["model"] == OTHER.partition(":")[2]
    assert "The first again." in home.asked()
    bird.wait_for(f"ready · {OTHER}")


@pytest.mark.thorough
def test_a_long_session_is_compacted_after_a_preview_taken_back_saved_and_read_elsewhere(
    home: Home, chat: Chat
) -> None:
    home.configure({"compression": {"protect_last_n": 2}})
    home.lab.script.extend(
        *(Turn(text=f"answer {number} is long: {'feathers ' * 700}") for number in range(4)),
        *(saying("They spoke of feathers."), saying("They spoke of feathers, again.")),
        *(saying("From the summary."), saying("From all of it."), saying("From the folder.")),
    )
    bird = chat().ready()
    for number in range(4):
        bird.send(f"question {number}")
        bird.wait_all(f"answer {number} is long")
        bird.wait_for("\nready")
    bird.send("/compress")
    bird.wait_all("/compress undo takes it back.")
    assert "They spoke of feathers." in bird.all()
    bird.send("/compress undo")
    bird.wait_for("The last compaction is taken back.")
    bird.send("/compress feathers")
    until(lambda: bird.all().count("/compress undo takes it back.") == 2, bird.screen)
    bird.answered("what was it?", "From the summary.")
    assert "They spoke of feathers, again." in home.asked()
    assert home.asked().count("feathers") < 1_000
    assert "question 1" in home.asked(), "what the user asked is kept word for word"
    bird.send("/compress undo")
    until(lambda: bird.all().count("The last compaction is taken back.") == 2, bird.screen)
    bird.answered("and now?", "From all of it.")
    assert home.asked().count("feathers") >= 2_800
    bird.send(f"/save {home.folder / 'saved'}")
    bird.wait_for("The session is in")
    (session,) = home.sessions()
    kinds = [type(entry) for entry in home.entries(session)]
    assert (kinds.count(Compacted), kinds.count(CompactionUndone)) == (2, 2)
    _read_elsewhere(home, session)


def _read_elsewhere(home: Home, session: str) -> None:
    """By `sessions show`, and by `run`, which goes on with the folder."""
    shown = _ran(home, "sessions", "show", session[:8])
    assert "question 3" in shown
    assert "From all of it." in shown
    task = ("--resume-session", str(home.folder / "saved"), "--message", "and in the folder?")
    about = ("--workflow", "analyze-failures", "--project", "acme/widgets", "--model", MODEL)
    assert "From the folder." in _ran(home, "run", *about, *task)
    assert home.asked().count("feathers") >= 2_800


def _ran(home: Home, *words: str) -> str:
    command = [sys.executable, "-m", "hummingbird", *words]
    given = environment(**home.given)
    ran = subprocess.run(
        command, env=given, cwd=home.workspace, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
