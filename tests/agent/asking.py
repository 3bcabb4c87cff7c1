"""Somebody who can be asked, and a place for what they grant, for tests of the gate."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from hummingbird.core.errors import JournalUnwritable
from hummingbird.core.journal import ToolDecided
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionGrant, PermissionQuestion
from tests.agent.stage import Stage

ONCE, SESSION, ALWAYS, NO = (
    PermissionAnswer(GrantScope.ONCE),
    PermissionAnswer(GrantScope.SESSION),
    PermissionAnswer(GrantScope.ALWAYS),
    PermissionAnswer(None),
)


class Person:
    """Answers as told, in order: a value is given, an exception raised, a function awaited. Fails if asked more often,
    or while another question is open."""

    name = "Ada"

    def __init__(self, *answers: Any) -> None:
        self.questions: list[PermissionQuestion] = []
        self._answers = list(answers)
        self._open = False

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        assert not self._open, "two questions at a time"
        self.questions.append(question)
        self._open = True
        try:
            await asyncio.sleep(0)  # whoever could ask beside us gets the chance to
            answer = self._answers.pop(0)
            if isinstance(answer, BaseException):
                raise answer
            given: PermissionAnswer = await answer() if callable(answer) else answer
            return given
        finally:
            self._open = False


class Drawer:
    """Saved grants in memory. `broken` makes it fail to read, to write, or both."""

    def __init__(self, *broken: str) -> None:
        self.saved: dict[str, list[PermissionGrant]] = {}
        self._broken = broken

    async def list_keys(self, project: str) -> frozenset[str]:
        if "read" in self._broken:
            raise JournalUnwritable("The drawer is stuck.")
        return frozenset(grant.key for grant in self.saved.get(project, ()))

    async def save(self, project: str, grant: PermissionGrant) -> None:
        if "write" in self._broken:
            raise JournalUnwritable("The drawer is full.")
        self.saved.setdefault(project, []).append(grant)


def decided(on: Stage) -> list[tuple[str, str, str, str]]:
    return [(entry.name, entry.decision, entry.by, entry.scope) for entry in on.written(ToolDecided)]


def taking(seconds: float, answer: PermissionAnswer = ONCE) -> Callable[[], Any]:
    async def think() -> PermissionAnswer:
        await asyncio.sleep(seconds)
        return answer

    return think


def texts(questions: Sequence[PermissionQuestion]) -> list[str]:
    return [question.text for question in questions]
