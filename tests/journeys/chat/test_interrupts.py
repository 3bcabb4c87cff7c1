"""Ctrl-C, whatever goes on: the prompt is back, takes the next message and answers it, and nothing that the
run had started is left. Processes are looked for by their numbers.
"""

import os
import signal
from collections.abc import Callable

import pytest

from tests.journeys.chat.processes import Process
from tests.journeys.chat.stage import Bird, Home, calling, saying, until
from tests.standins.vendors.script import Call, Fault, Turn

Chat = Callable[..., Bird]
ALLOWED = {"permissions": [{"action": "allow", "tool": "terminal"}]}
LONG = Turn(text=" ".join(f"word{number}" for number in range(400)))
# A child that ignores SIGTERM, one in a session of its own, and one that nobody waits for
STUBBORN = '(trap "" TERM; sleep 301) & setsid sleep 302 & (sleep 303 &) ; sleep 300'
SLEEPS = (b"sleep 300", b"sleep 301", b"sleep 302", b"sleep 303")


def broken_off(bird: Bird, message: str, next_answer: str) -> None:
    """Ctrl-C, and then the next message is answered."""
    bird.press("C-c")
    bird.wait_below(f"> {message}", "■ interrupted")
    bird.wait_for("\nready")
    bird.answered(f"after {message}", next_answer)


def gone(processes: list[Process]) -> None:
    until(lambda: not [one for one in processes if one.alive], lambda: [one for one in processes if one.alive])


def test_the_model_is_interrupted_while_it_streams_is_silent_or_rests(home: Home, chat: Chat) -> None:
    rest = Fault("status", status=503, retry_after="60", message="overloaded")
    home.lab.script.extend(
        *(Fault("stall", after=40, turn=LONG), saying("Heard the first.")),
        *(Fault("slow", delay_s=600, turn=saying("too late")), saying("Heard the second.")),
        *(rest, saying("Heard the third.")),
    )
    bird = chat().ready()
    bird.send("stream")
    bird.wait_for("word5 ")
    broken_off(bird, "stream", "Heard the first.")
    bird.send("silence")
    bird.wait_for("waiting for the model")
    until(lambda: "silence" in home.asked(), home.asked)  # else the next message would meet the silence
    broken_off(bird, "silence", "Heard the second.")
    bird.send("overload")
    bird.wait_for("retry 1 of 4 in 60 s")
    bird.wait_for("recovering")
    broken_off(bird, "overload", "Heard the third.")
    assert "too late" not in bird.all()
    assert "stream" in home.asked()
    assert "overload" in home.asked()
    os.kill(bird.process().pid, signal.SIGTERM)
    bird.wait_for("ENDED 143")
    assert "The session is kept: hummingbird chat --resume" in bird.screen()


@pytest.mark.thorough
def test_commands_of_the_host_and_of_the_sandbox_are_ended_with_all_that_they_started(home: Home, chat: Chat) -> None:
    home.configure(ALLOWED)
    home.lab.script.extend(
        *(calling("terminal", command=STUBBORN), saying("The host is quiet.")),
        *(calling("sandbox_exec", command=STUBBORN), saying("The sandbox is quiet.")),
        *(calling("sandbox_exec", command="echo still-$((1 + 1))"), saying("The sandbox still works.")),
    )
    bird = chat("--verbose").ready()
    bird.send("host")
    started = bird.started(*SLEEPS)
    broken_off(bird, "host", "The host is quiet.")
    gone(started)
    bird.send("sandbox")
    inside = [one for one in bird.started(*SLEEPS) if b"sleep 30" in one.line]
    broken_off(bird, "sandbox", "The sandbox is quiet.")
    gone(inside)
    assert "still-2" in bird.answered("again", "The sandbox still works.")


@pytest.mark.thorough
def test_a_question_and_a_summary_are_interrupted_and_nothing_is_changed(home: Home, chat: Chat) -> None:
    home.configure({"compression": {"protect_last_n": 2}})
    filling = [Turn(text=f"answer {number}: {'many words ' * 900}") for number in range(3)]
    home.lab.script.extend(
        *(calling("file_edit", path="a.txt", new="text"), saying("Nothing was written.")),
        *filling,
        *(Fault("slow", delay_s=600, turn=saying("a summary")), saying("All is still there.")),
    )
    bird = chat().ready()
    bird.send("edit")
    bird.wait_for("no, and say what to do instead")
    bird.press("C-c")
    bird.wait_for("the question is withdrawn")
    bird.answered("after edit", "Nothing was written.")
    assert list(home.workspace.iterdir()) == []
    for number in range(3):
        bird.send(f"fill {number}")
        bird.wait_all(f"answer {number}: many")
        bird.wait_for("\nready")
    bird.send("/compress")
    until(lambda: len(home.lab.requests) == 6)
    bird.press("C-c")
    bird.wait_for("/compress is interrupted")
    bird.answered("after all", "All is still there.")
    assert "answer 0: many words" in home.asked()


@pytest.mark.thorough
def test_nothing_of_the_host_outlives_a_chat_that_was_killed_and_it_is_continued(home: Home, chat: Chat) -> None:
    """Everything that was said is there again; the call that was under way is told as of unknown outcome."""
    home.configure(ALLOWED)
    home.lab.script.extend(
        saying("I know the name now."),
        Turn(text="I run it.", calls=(Call("terminal", {"command": STUBBORN}),)),
        saying("It was broken off."),
    )
    bird = chat().ready()
    bird.answered("my name is Ada", "I know the name now.")
    bird.send("run it")
    started, own = bird.started(*SLEEPS), bird.process()
    os.kill(own.pid, signal.SIGKILL)
    gone([own, *started])
    bird.close()
    bird = chat("--continue").ready()
    bird.answered("what happened?", "It was broken off.")
    asked = home.asked()
    for said in ("my name is Ada", "I know the name now.", "run it", "I run it.", "what happened?"):
        assert said in asked
    assert len(home.sessions()) == 1
