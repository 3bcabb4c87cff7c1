"""Questions to the person at the terminal: may this tool run (T9), what did you mean (C5), shall I go on.

One at a time, in the order they came, while everything else goes on. A question takes no answer before the keyboard
has been quiet for a moment: what was typed ahead was not meant for it. Knows no keys and no windows; a cancelled
question is gone.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hummingbird.chat.limits import PANEL_CHARS, QUIET_S
from hummingbird.chat.screen import Screen
from hummingbird.chat.shown import Tone
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.permissions import Answer, Question, Scope
from hummingbird.domain.text import shortened

_SCOPES = {
    "y": Scope.ONCE, "yes": Scope.ONCE, "once": Scope.ONCE,
    "s": Scope.SESSION, "session": Scope.SESSION,
    "a": Scope.ALWAYS, "always": Scope.ALWAYS,
}  # fmt: skip
_NO = {"n", "no"}
_AGAIN = {"v", "view"}
_USUAL = "the default"  # nobody wrote a rule that speaks of the call, which is no reason to tell
_NEARLY_YES = ("yes", "yep", "yeah", "ok", "okay", "sure")
_KEYS = {Scope.ONCE: "y once", Scope.SESSION: "s for this session", Scope.ALWAYS: "a always"}


class _Wanted(Protocol):
    """`taken` gives the answer that a text is, or raises UsageFault for one that is none."""

    @property
    def page(self) -> str: ...

    @property
    def title(self) -> str:
        """The page in a line or few, while the page itself stands above."""
        ...

    @property
    def keys(self) -> str: ...

    def taken(self, text: str) -> Answer | str | bool: ...

    def declined(self) -> Answer | str | bool | None: ...


@dataclass(frozen=True, slots=True)
class _Permission:
    question: Question

    @property
    def page(self) -> str:
        reason = self.question.reason
        why = f"\nAsked because of {reason}." if reason and not reason.startswith(_USUAL) else ""
        effects = "/".join(sorted(self.question.effects)) or "nothing"
        return f"? May {self.question.tool} run? It can {effects}.{why}\n{self.question.text}"

    @property
    def title(self) -> str:
        return f"? May this run? {self.question.text}"

    @property
    def keys(self) -> str:
        kept = [_KEYS[scope] for scope in self.question.scopes if scope in _KEYS]
        return " · ".join([*kept, "n no", "v shows it again", "or say what to do instead"]) + ", then Enter"

    def taken(self, text: str) -> Answer:
        word = text.strip().lower()
        if word in _NO:
            return Answer(None)
        if (scope := _SCOPES.get(word)) is not None:
            if scope not in self.question.scopes:
                raise UsageFault(f"A yes for {scope.value} cannot be kept here: answer {self.keys}.")
            return Answer(scope)
        if not word:
            raise UsageFault(f"Nothing was answered: {self.keys}.")
        if word.startswith(_NEARLY_YES) and len(word.split()) < 4:
            raise UsageFault("To allow it, type y alone; to refuse it, type n, or say what to do instead.")
        return Answer(None, text.strip())

    def declined(self) -> None:
        """To look away is no answer."""


@dataclass(frozen=True, slots=True)
class _Clarification:
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

    def taken(self, text: str) -> str:
        words = text.strip()
        if self.choices and words.isascii() and words.isdigit():
            if not 1 <= int(words[:9]) <= len(self.choices):
                raise UsageFault(f"There is no choice {words[:9]}: say 1 to {len(self.choices)}, or your own words.")
            return self.choices[int(words) - 1]
        return words

    def declined(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class _Confirmation:
    question: str
    keys: str = "y yes · n no, then Enter"

    @property
    def page(self) -> str:
        return f"? {self.question}"

    @property
    def title(self) -> str:
        return self.page

    def taken(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in {"y", "yes", "n", "no", ""}:
            raise UsageFault("Answer y or n.")
        return word.startswith("y")

    def declined(self) -> bool:
        return False


@dataclass(eq=False, slots=True)
class _Open:
    wanted: _Wanted
    answer: asyncio.Future[Answer | str | bool]
    appeared: float = 0.0
    armed: bool = field(default=False)


class Questions:
    """Asker (`ports.permissions`) and Clarifier (`ports.person`)."""

    def __init__(
        self, screen: Screen, name: str = "the person at the terminal", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = screen
        self._name = name
        self._clock = clock
        self._waiting: list[_Open] = []
        self._last_key = clock() - QUIET_S

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, question: Question) -> Answer:
        answer = await self._answered(_Permission(question))
        assert isinstance(answer, Answer)
        return answer

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        return str(await self._answered(_Clarification(question, tuple(choices))))

    async def confirm(self, question: str) -> bool:
        return bool(await self._answered(_Confirmation(question)))

    @property
    def open(self) -> bool:
        return bool(self._waiting)

    @property
    def permission(self) -> bool:
        """Whether the open question is for permission."""
        return self.open and isinstance(self._waiting[0].wanted, _Permission)

    @property
    def armed(self) -> bool:
        """Whether what is typed from now on is an answer."""
        if not self._waiting:
            return False
        first = self._waiting[0]
        if not first.armed and self._clock() - max(first.appeared, self._last_key) >= QUIET_S:
            first.armed = True
        return first.armed

    def key_pressed(self) -> None:
        if not self.armed:
            self._last_key = self._clock()

    def answer(self, text: str) -> None:
        """To the open question. Raises UsageFault for what is no answer to it: the question stays."""
        if not self._waiting:
            raise UsageFault("No question is open: there is nothing to answer.")
        if not self.armed:
            raise UsageFault("The question has only just appeared: read it, then answer.")
        if self.permission and text.strip().lower() in _AGAIN:
            self._announce(self._waiting[0])
            return
        self._settle(self._waiting[0].wanted.taken(text))

    def decline(self) -> None:
        """Esc: they would rather not say."""
        if self.armed and (answer := self._waiting[0].wanted.declined()) is not None:
            self._settle(answer)

    def panel(self) -> list[str]:
        """Lines to stand above the input while a question is open."""
        if not self._waiting:
            return []
        first, more = self._waiting[0], len(self._waiting) - 1
        keys = first.wanted.keys if self.armed else "…"
        title = shortened(first.wanted.title, PANEL_CHARS)
        cut = " (all of it is above; v shows it again)" if title.endswith("…") else ""
        return [title + cut, keys + (f" ({more} more to come)" if more else "")]

    async def _answered(self, wanted: _Wanted) -> Answer | str | bool:
        asked = _Open(wanted, asyncio.get_running_loop().create_future())
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

    def _settle(self, answer: Answer | str | bool) -> None:
        asked = self._waiting[0]
        self._screen.say(f"  {_told(answer)}", Tone.DIM)
        if not asked.answer.done():
            asked.answer.set_result(answer)
        self._remove(asked)

    def _remove(self, asked: _Open) -> None:
        if asked not in self._waiting:
            return
        was_first = self._waiting[0] is asked
        self._waiting.remove(asked)
        if was_first and self._waiting:
            self._appear(self._waiting[0])
        self._screen.touch()

    def _appear(self, asked: _Open) -> None:
        asked.appeared = self._clock()
        self._announce(asked)

    def _announce(self, asked: _Open) -> None:
        self._screen.say(asked.wanted.page, Tone.ASKED)
        self._screen.touch()


def _told(answer: Answer | str | bool) -> str:
    match answer:
        case Answer(scope=None, words=words):
            return f"not allowed; the model is told: {words}" if words else "not allowed"
        case Answer(scope=scope):
            return f"allowed: {scope}"
        case bool():
            return "yes" if answer else "no"
        case _:
            return answer or "not said"
