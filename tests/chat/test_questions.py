"""Questions to a person: one at a time, never answered by what was typed ahead, gone when cancelled."""

import asyncio

import pytest

from hummingbird.chat.questions import QuestionQueue
from hummingbird.chat.screen import PANEL_CHARS
from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionQuestion
from hummingbird.core.tool_spec import ToolEffect
from tests.chat.noted_screen import NotedScreen


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def question(command: str = "ls", scopes: tuple[GrantScope, ...] = tuple(GrantScope)) -> PermissionQuestion:
    given = {"command": command}
    effects = frozenset({ToolEffect.EXEC})
    return PermissionQuestion("terminal", f"terminal {command}", "the default", "k", effects, scopes, given)


DIFF = "--- wings.py\n+++ wings.py\n@@ -1,2 +1,2 @@\n def flap():\n-    return 80\n+    return 81\n"
EDIT = PermissionQuestion(
    "file_edit",
    'file_edit {"new":"    return 81","old":"    return 80","path":"wings.py"}',
    "the default",
    "k",
    frozenset({ToolEffect.WRITE}),
    tuple(GrantScope),
    {"path": "wings.py", "old": "    return 80", "new": "    return 81"},
    DIFF,
)


class Stage:
    def __init__(self) -> None:
        self.clock, self.screen = Clock(), NotedScreen()
        self.questions = QuestionQueue(self.screen, clock=self.clock)

    async def asked(self, one: PermissionQuestion) -> "asyncio.Task[PermissionAnswer]":
        task = asyncio.ensure_future(self.questions.ask(one))
        await asyncio.sleep(0)
        return task


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y", PermissionAnswer(GrantScope.ONCE)),
        ("Yes ", PermissionAnswer(GrantScope.ONCE)),
        ("s", PermissionAnswer(GrantScope.SESSION)),
        ("a", PermissionAnswer(GrantScope.ALWAYS)),
        ("n", PermissionAnswer(None)),
        ("no, use make", PermissionAnswer(None, "no, use make")),
    ],
)
async def test_what_is_typed_is_the_answer_or_a_no_with_words(typed: str, answer: PermissionAnswer) -> None:
    stage = Stage()
    task = await stage.asked(question())
    stage.clock.now += 0.6
    stage.questions.answer(typed)
    assert await task == answer
    assert not stage.questions.is_open


@pytest.mark.parametrize("typed", ["", "ok", "yes please", "a"])
async def test_what_is_no_answer_leaves_the_question_open(typed: str) -> None:
    stage = Stage()
    task = await stage.asked(question(scopes=(GrantScope.ONCE,)))
    stage.clock.now += 0.6
    with pytest.raises(UsageError):
        stage.questions.answer(typed)
    assert stage.questions.is_open
    panel = stage.questions.panel()
    assert panel is not None
    assert panel.rows == ("1 yes (y)", "2 no, and say what to do instead (n)")
    task.cancel()


async def test_what_was_typed_ahead_never_answers() -> None:
    """Keys before it appeared, and all that follow them without a pause."""
    stage = Stage()
    task = await stage.asked(question())
    for _ in range(20):
        stage.questions.note_key_press()
        stage.clock.now += 0.2
        assert not stage.questions.is_armed
        with pytest.raises(UsageError, match="only just appeared"):
            stage.questions.answer("y")
    stage.clock.now += 0.31
    assert stage.questions.is_armed
    stage.questions.note_key_press()
    assert stage.questions.is_armed
    stage.questions.answer("y")
    assert (await task).scope is GrantScope.ONCE


async def test_a_long_call_is_shown_whole_and_again_when_wanted() -> None:
    stage = Stage()
    text = "echo " + "x" * (PANEL_CHARS * 20) + " rm the end"
    task = await stage.asked(question(text))
    assert text in stage.screen.text
    stage.clock.now += 0.6
    panel = stage.questions.panel()
    assert panel is not None
    assert "all of it is above" in panel.title
    assert stage.questions.press("v")
    assert stage.screen.text.count(text) == 2
    stage.questions.answer("n")
    assert await task == PermissionAnswer(None)


async def test_a_cancelled_question_is_taken_off_and_the_next_one_appears() -> None:
    stage = Stage()
    first, second = await stage.asked(question("make one")), await stage.asked(question("make two"))
    stage.clock.now += 0.6
    panel = stage.questions.panel()
    assert panel is not None
    assert panel.title == "? Run make one (1 more to come)"
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert not stage.questions.is_armed
    panel = stage.questions.panel()
    assert panel is not None
    assert panel.title == "? Run make two"
    stage.clock.now += 0.6
    stage.questions.answer("s")
    assert await second == PermissionAnswer(GrantScope.SESSION)


@pytest.mark.parametrize(
    ("typed", "answer"), [("2", "right"), ("neither of them", "neither of them"), ("", ""), (None, "")]
)
async def test_a_clarification_takes_a_number_words_or_nothing(typed: str | None, answer: str) -> None:
    stage = Stage()
    task = asyncio.ensure_future(stage.questions.clarify("Which wing?", ["left", "right"]))
    await asyncio.sleep(0)
    stage.clock.now += 0.6
    if typed is None:
        stage.questions.decline()
    else:
        stage.questions.answer(typed)
    assert await task == answer


async def test_a_number_that_is_no_choice_is_said_to_be_none() -> None:
    stage = Stage()
    task = asyncio.ensure_future(stage.questions.clarify("Which wing?", ["left", "right"]))
    await asyncio.sleep(0)
    stage.clock.now += 0.6
    with pytest.raises(UsageError, match="say 1 to 2"):
        stage.questions.answer("3")
    task.cancel()


async def test_an_edit_is_asked_about_as_a_diff_and_one_key_answers() -> None:
    stage = Stage()
    task = await stage.asked(EDIT)
    assert stage.screen.lines == [
        "? Edit wings.py (+1 −1)",
        "    @@ -1,2 +1,2 @@",
        "     def flap():",
        "    -    return 80",
        "    +    return 81",
    ]
    with pytest.raises(UsageError, match="only just appeared"):
        stage.questions.press("y")
    stage.clock.now += 0.6
    assert not stage.questions.press("x")
    assert stage.questions.press("y")
    assert await task == PermissionAnswer(GrantScope.ONCE)


async def test_no_asks_for_words_and_esc_leads_back_to_the_menu() -> None:
    stage = Stage()
    task = await stage.asked(question())
    stage.clock.now += 0.6
    stage.questions.move_selection(-1)
    stage.questions.choose_selected()
    panel = stage.questions.panel()
    assert panel is not None
    assert panel.rows == ("Say what to do instead, then Enter; Enter alone is a plain no, Esc goes back",)
    assert not stage.questions.decline()
    assert stage.questions.press("n")
    stage.questions.answer("y u do this")
    assert await task == PermissionAnswer(None, "y u do this")


async def test_esc_declines_a_permission() -> None:
    stage = Stage()
    task = await stage.asked(question())
    assert not stage.questions.decline()  # it has only just appeared
    stage.clock.now += 0.6
    assert stage.questions.decline()
    assert await task == PermissionAnswer(None)
