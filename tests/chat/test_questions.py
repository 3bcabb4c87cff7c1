"""Questions to a person (T9, C5): one at a time, never answered by what was typed ahead, gone when cancelled."""

import asyncio

import pytest

from hummingbird.chat.limits import PANEL_CHARS
from hummingbird.chat.questions import Questions
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.permissions import Answer, Question, Scope
from hummingbird.domain.tools import Effect
from tests.chat.noted_screen import NotedScreen


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def question(text: str = "terminal ls", scopes: tuple[Scope, ...] = tuple(Scope)) -> Question:
    return Question("terminal", text, "the default", "k", frozenset({Effect.EXEC}), scopes)


class Stage:
    def __init__(self) -> None:
        self.clock, self.screen = Clock(), NotedScreen()
        self.questions = Questions(self.screen, clock=self.clock)

    async def asked(self, one: Question) -> "asyncio.Task[Answer]":
        task = asyncio.ensure_future(self.questions.ask(one))
        await asyncio.sleep(0)
        return task


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y", Answer(Scope.ONCE)),
        ("Yes ", Answer(Scope.ONCE)),
        ("s", Answer(Scope.SESSION)),
        ("a", Answer(Scope.ALWAYS)),
        ("n", Answer(None)),
        ("no, use make", Answer(None, "no, use make")),
    ],
)
async def test_t9_what_is_typed_is_the_answer_or_a_no_with_words(typed: str, answer: Answer) -> None:
    stage = Stage()
    task = await stage.asked(question())
    stage.clock.now += 0.6
    stage.questions.answer(typed)
    assert await task == answer
    assert not stage.questions.open


@pytest.mark.parametrize("typed", ["", "ok", "yes please", "a"])
async def test_t9_what_is_no_answer_leaves_the_question_open(typed: str) -> None:
    stage = Stage()
    task = await stage.asked(question(scopes=(Scope.ONCE,)))
    stage.clock.now += 0.6
    with pytest.raises(UsageFault):
        stage.questions.answer(typed)
    assert stage.questions.open
    assert "a always" not in stage.questions.panel()[1]
    task.cancel()


async def test_t9_what_was_typed_ahead_never_answers() -> None:
    """Keys before it appeared, and all that follow them without a pause."""
    stage = Stage()
    task = await stage.asked(question())
    for _ in range(20):
        stage.questions.key_pressed()
        stage.clock.now += 0.2
        assert not stage.questions.armed
        with pytest.raises(UsageFault, match="only just appeared"):
            stage.questions.answer("y")
    stage.clock.now += 0.31
    assert stage.questions.armed
    stage.questions.key_pressed()
    assert stage.questions.armed
    stage.questions.answer("y")
    assert (await task).scope is Scope.ONCE


async def test_t9_a_long_call_is_shown_whole_and_again_when_wanted() -> None:
    stage = Stage()
    text = "terminal " + "x" * (PANEL_CHARS * 20) + " rm the end"
    task = await stage.asked(question(text))
    assert text in stage.screen.text
    stage.clock.now += 0.6
    assert "all of it is above" in stage.questions.panel()[0]
    stage.questions.answer("v")
    assert stage.screen.text.count(text) == 2
    stage.questions.answer("n")
    assert await task == Answer(None)


async def test_t9_a_cancelled_question_is_taken_off_and_the_next_one_appears() -> None:
    stage = Stage()
    first, second = await stage.asked(question("terminal one")), await stage.asked(question("terminal two"))
    stage.clock.now += 0.6
    assert "1 more to come" in stage.questions.panel()[1]
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert not stage.questions.armed
    assert "terminal two" in stage.questions.panel()[0]
    stage.clock.now += 0.6
    stage.questions.answer("s")
    assert await second == Answer(Scope.SESSION)


@pytest.mark.parametrize(
    ("typed", "answer"), [("2", "right"), ("neither of them", "neither of them"), ("", ""), (None, "")]
)
async def test_c5_a_clarification_takes_a_number_words_or_nothing(typed: str | None, answer: str) -> None:
    stage = Stage()
    task = asyncio.ensure_future(stage.questions.clarify("Which wing?", ["left", "right"]))
    await asyncio.sleep(0)
    stage.clock.now += 0.6
    if typed is None:
        stage.questions.decline()
    else:
        stage.questions.answer(typed)
    assert await task == answer


async def test_c5_a_number_that_is_no_choice_is_said_to_be_none() -> None:
    stage = Stage()
    task = asyncio.ensure_future(stage.questions.clarify("Which wing?", ["left", "right"]))
    await asyncio.sleep(0)
    stage.clock.now += 0.6
    with pytest.raises(UsageFault, match="say 1 to 2"):
        stage.questions.answer("3")
    task.cancel()


async def test_t9_to_look_away_from_a_permission_is_no_answer() -> None:
    stage = Stage()
    task = await stage.asked(question())
    stage.clock.now += 0.6
    stage.questions.decline()
    assert stage.questions.open
    task.cancel()
