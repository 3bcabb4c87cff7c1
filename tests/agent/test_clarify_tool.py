"""A question to the person."""

import asyncio
from collections.abc import Sequence

import pytest

from hummingbird.agent.tools.chat_tools import CLARIFY_SPEC, NO_ANSWER_GIVEN, ClarifyTool
from hummingbird.core.errors import ArgumentsInvalid
from hummingbird.core.limits import INLINE_RESULT_BYTES, PERSON_TIMEOUT_S
from tests.agent.minds import Listener


class Person:
    """Answers as told, and remembers what was asked."""

    def __init__(self, answer: str) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.open: list[str] = []  # questions on the screen
        self._answer = answer

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        self.asked.append((question, list(choices)))
        self.open.append(question)
        try:
            await asyncio.sleep(60 if self._answer == "never" else 0)
        finally:
            self.open.remove(question)
        return self._answer


async def test_the_person_is_asked_and_their_words_are_no_outsiders() -> None:
    person = Person("  the second, please\n")
    told = await Listener().call(ClarifyTool(person), {"question": " Which? ", "choices": ["main", " main", " a\nb "]})
    assert told == "The user answers: the second, please"
    assert person.asked == [("Which?", ["main", "a b"])]


async def test_somebody_who_would_rather_not_say_is_left_in_peace() -> None:
    assert await Listener().call(ClarifyTool(Person("  ")), {"question": "Which?"}) == NO_ANSWER_GIVEN


async def test_without_a_person_there_is_no_such_tool() -> None:
    assert not ClarifyTool(None).is_available()
    assert ClarifyTool(Person("")).is_available()
    with pytest.raises(ArgumentsInvalid, match="nobody to ask"):
        await Listener().call(ClarifyTool(None), {"question": "Which?"})


@pytest.mark.parametrize(
    "arguments",
    [{}, {"question": ""}, {"question": "  "}, {"question": "?", "choices": list("abcde")}, {"question": "x" * 2001}],
)
async def test_a_question_that_is_none_is_not_asked(arguments: dict[str, object]) -> None:
    person = Person("yes")
    with pytest.raises(ArgumentsInvalid):
        await Listener().call(ClarifyTool(person), arguments)
    assert person.asked == []


async def test_a_pasted_book_is_cut_and_lone_surrogates_do_no_harm() -> None:
    """Bad input."""
    told = await Listener().call(ClarifyTool(Person("ü\ud800" * 1_000_000)), {"question": "Which?"})
    assert len(told.encode()) < INLINE_RESULT_BYTES // 2
    assert "the answer was longer" in told
    assert told.startswith("The user answers: ü?ü?")


async def test_an_interrupt_takes_the_question_back() -> None:
    """And it waits for a person as long as permissions do."""
    person = Person("never")
    asking = asyncio.create_task(Listener().call(ClarifyTool(person), {"question": "Which?"}))
    await asyncio.sleep(0.01)
    assert person.open == ["Which?"]
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert person.open == []
    assert CLARIFY_SPEC.timeout_s == PERSON_TIMEOUT_S
    assert CLARIFY_SPEC.runs_alone
