"""Asks the person at the terminal: permission for a tool call, a clarification, or a yes or no.

Questions appear one at a time, in order, while everything else continues. A question accepts an answer only after the
keyboard was quiet for QUIET_S ("armed"): text typed ahead was not meant for it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hummingbird.chat.screen import PANEL_CHARS, QUIET_S, Screen, Tone
from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionQuestion
from hummingbird.core.text import shorten_line

_SCOPES = {
    "y": GrantScope.ONCE, "yes": GrantScope.ONCE, "once": GrantScope.ONCE,
    "s": GrantScope.SESSION, "session": GrantScope.SESSION,
    "a": GrantScope.ALWAYS, "always": GrantScope.ALWAYS,
}  # fmt: skip
_NO = {"n", "no"}
_SHOW_AGAIN = {"v", "view"}
_DEFAULT_RULE = "the default"  # no rule applies to the call: not worth showing as a reason
_NEARLY_YES = ("yes", "yep", "yeah", "ok", "okay", "sure")
_KEYS = {GrantScope.ONCE: "y once", GrantScope.SESSION: "s for this session", GrantScope.ALWAYS: "a always"}


class QuestionForm(Protocol):
    """A kind of question; `parse_answer` raises UsageError for a text that is no answer to it."""

    @property
    def page(self) -> str: ...

    @property
    def title(self) -> str:
        """A short form of the page, shown below it while the question is open."""
        ...

    @property
    def keys(self) -> str: ...

    def parse_answer(self, text: str) -> PermissionAnswer | str | bool: ...

    def answer_when_declined(self) -> PermissionAnswer | str | bool | None: ...


@dataclass(frozen=True, slots=True)
class PermissionForm:
    """May this tool call run?"""

    question: PermissionQuestion

    @property
    def page(self) -> str:
        reason = self.question.reason
        why = f"\nAsked because of {reason}." if reason and not reason.startswith(_DEFAULT_RULE) else ""
        effects = "/".join(sorted(self.question.effects)) or "nothing"
        return f"? May {self.question.tool} run? It can {effects}.{why}\n{self.question.text}"

    @property
    def title(self) -> str:
        return f"? May this run? {self.question.text}"

    @property
    def keys(self) -> str:
        kept = [_KEYS[scope] for scope in self.question.scopes if scope in _KEYS]
        return " · ".join([*kept, "n no", "v shows it again", "or say what to do instead"]) + ", then Enter"

    def parse_answer(self, text: str) -> PermissionAnswer:
        word = text.strip().lower()
        if word in _NO:
            return PermissionAnswer(None)
        if (scope := _SCOPES.get(word)) is not None:
            if scope not in self.question.scopes:
                raise UsageError(f"A yes for {scope.value} cannot be kept here: answer {self.keys}.")
            return PermissionAnswer(scope)
        if not word:
            raise UsageError(f"Nothing was answered: {self.keys}.")
        if word.startswith(_NEARLY_YES) and len(word.split()) < 4:
            raise UsageError("To allow it, type y alone; to refuse it, type n, or say what to do instead.")
        return PermissionAnswer(None, text.strip())

    def answer_when_declined(self) -> None:
        """Return None: Esc does not answer a permission question."""


@dataclass(frozen=True, slots=True)
class ClarificationForm:
    """A question of the model, with choices or free text; an empty answer is allowed."""

    question: str
    choices: tuple[str, ...]

    @property
    def page(self) -> str:
        listed = [f"  {number}. {choice}" for number, choice in enumerate(self.choices, 1)]
        return "\n".join([f"? {self.question}", *listed])

    @property
    def title(self) -> str:
        return self.page

    @property
    def keys(self) -> str:
        number = "a number, " if self.choices else ""
        return f"{number}your own words, or nothing if you would rather not say, then Enter"

    def parse_answer(self, text: str) -> str:
        words = text.strip()
        if self.choices and words.isascii() and words.isdigit():
            if not 1 <= int(words[:9]) <= len(self.choices):
                raise UsageError(f"There is no choice {words[:9]}: say 1 to {len(self.choices)}, or your own words.")
            return self.choices[int(words) - 1]
        return words

    def answer_when_declined(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ConfirmationForm:
    """A yes-or-no question; an empty answer means no."""

    question: str
    keys: str = "y yes · n no, then Enter"

    @property
    def page(self) -> str:
        return f"? {self.question}"

    @property
    def title(self) -> str:
        return self.page

    def parse_answer(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in {"y", "yes", "n", "no", ""}:
            raise UsageError("Answer y or n.")
        return word.startswith("y")

    def answer_when_declined(self) -> bool:
        return False


@dataclass(eq=False, slots=True)
class OpenQuestion:
    """A question in the queue; only the first one has appeared on the screen."""

    form: QuestionForm
    answer: asyncio.Future[PermissionAnswer | str | bool]
    appeared_at: float = 0.0
    armed: bool = field(default=False)


class QuestionQueue:
    """Asks questions one after the other; a PermissionAsker and a Clarifier."""

    def __init__(
        self, screen: Screen, name: str = "the person at the terminal", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = screen
        self._name = name
        self._clock = clock
        self._waiting: list[OpenQuestion] = []
        self._last_key = clock() - QUIET_S

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        answer = await self._wait_for_answer(PermissionForm(question))
        assert isinstance(answer, PermissionAnswer)
        return answer

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        return str(await self._wait_for_answer(ClarificationForm(question, tuple(choices))))

    async def confirm(self, question: str) -> bool:
        return bool(await self._wait_for_answer(ConfirmationForm(question)))

    @property
    def is_open(self) -> bool:
        return bool(self._waiting)

    @property
    def is_permission(self) -> bool:
        return self.is_open and isinstance(self._waiting[0].form, PermissionForm)

    @property
    def is_armed(self) -> bool:
        """True when the open question accepts an answer."""
        if not self._waiting:
            return False
        first = self._waiting[0]
        if not first.armed and self._clock() - max(first.appeared_at, self._last_key) >= QUIET_S:
            first.armed = True
        return first.armed

    def note_key_press(self) -> None:
        if not self.is_armed:
            self._last_key = self._clock()

    def answer(self, text: str) -> None:
        """Answer the open question. Raises UsageError for what is no answer to it; the question then stays open."""
        if not self._waiting:
            raise UsageError("No question is open: there is nothing to answer.")
        if not self.is_armed:
            raise UsageError("The question has only just appeared: read it, then answer.")
        if self.is_permission and text.strip().lower() in _SHOW_AGAIN:
            self._announce(self._waiting[0])
            return
        self._resolve(self._waiting[0].form.parse_answer(text))

    def decline(self) -> None:
        """Decline to answer the open question (Esc)."""
        if self.is_armed and (answer := self._waiting[0].form.answer_when_declined()) is not None:
            self._resolve(answer)

    def panel_lines(self) -> list[str]:
        """Return the lines shown above the input while a question is open."""
        if not self._waiting:
            return []
        first, more = self._waiting[0], len(self._waiting) - 1
        keys = first.form.keys if self.is_armed else "…"
        title = shorten_line(first.form.title, PANEL_CHARS)
        cut = " (all of it is above; v shows it again)" if title.endswith("…") else ""
        return [title + cut, keys + (f" ({more} more to come)" if more else "")]

    async def _wait_for_answer(self, wanted: QuestionForm) -> PermissionAnswer | str | bool:
        asked = OpenQuestion(wanted, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._waiting[0] is asked:
            self._appear(asked)
        try:
            return await asked.answer
        except asyncio.CancelledError:
            self._screen.say("· the question is withdrawn", Tone.DIM)
            raise
        finally:
            self._remove(asked)

    def _resolve(self, answer: PermissionAnswer | str | bool) -> None:
        asked = self._waiting[0]
        self._screen.say(f"  {_answer_text(answer)}", Tone.DIM)
        if not asked.answer.done():
            asked.answer.set_result(answer)
        self._remove(asked)

    def _remove(self, asked: OpenQuestion) -> None:
        if asked not in self._waiting:
            return
        was_first = self._waiting[0] is asked
        self._waiting.remove(asked)
        if was_first and self._waiting:
            self._appear(self._waiting[0])
        self._screen.request_redraw()

    def _appear(self, asked: OpenQuestion) -> None:
        asked.appeared_at = self._clock()
        self._announce(asked)

    def _announce(self, asked: OpenQuestion) -> None:
        self._screen.say(asked.form.page, Tone.ASKED)
        self._screen.request_redraw()


def _answer_text(answer: PermissionAnswer | str | bool) -> str:
    match answer:
        case PermissionAnswer(scope=None, words=words):
            return f"not allowed; the model is told: {words}" if words else "not allowed"
        case PermissionAnswer(scope=scope):
            return f"allowed: {scope}"
        case bool():
            return "yes" if answer else "no"
        case _:
            return answer or "not said"
