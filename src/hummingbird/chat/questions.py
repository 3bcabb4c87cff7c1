"""Asks the person at the terminal: permission for a tool call, a clarification, a yes or no, or a row of a list.

Questions appear one at a time, in order, while everything else continues. A question accepts an answer only after the
keyboard was quiet for QUIET_S ("armed"): text typed ahead was not meant for it. Then one key answers it from a menu.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prompt_toolkit.formatted_text import StyleAndTextTuples

from hummingbird.chat.call_text import (
    EDIT_TOOL,
    TERMINAL_TOOL,
    describe_call,
    diff_size_text,
    full_call_text,
    show_diff,
)
from hummingbird.chat.screen import PANEL_CHARS, PREVIEW_LINES, QUIET_S, Screen, Tone, fit_line, printable_text
from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionQuestion
from hummingbird.core.text import shorten_line


class Picker:
    """An open list, of which arrows select a row, typing filters, Enter chooses and Esc cancels.

    `result` becomes the number of the chosen row, or None.
    """

    def __init__(self, title: str, rows: Sequence[str]) -> None:
        self.title = title
        self._rows = [" ".join(printable_text(row).split("\n")) for row in rows]
        self._searched = [row.casefold() for row in self._rows]
        self._selected = 0
        self.result: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    def find_matches(self, typed: str) -> list[int]:
        """Return the numbers of the rows that contain all the words."""
        words = typed.casefold().split()
        return [at for at, row in enumerate(self._searched) if all(word in row for word in words)]

    def move(self, step: int, typed: str) -> None:
        found = self.find_matches(typed)
        self._selected = max(0, min(len(found) - 1, min(self._selected, len(found) - 1) + step))

    def choose(self, typed: str) -> None:
        found = self.find_matches(typed)
        if found and not self.result.done():
            self.result.set_result(found[min(self._selected, len(found) - 1)])

    def cancel(self) -> None:
        if not self.result.done():
            self.result.set_result(None)

    def lines(self, typed: str, columns: int, height: int) -> StyleAndTextTuples:
        """Return what is shown: the title, as many rows as fit around the selected one, and the keys."""
        found = self.find_matches(typed)
        selected = max(0, min(self._selected, len(found) - 1))
        room = max(1, height - 2)
        first = max(0, min(selected - room // 2, len(found) - room))
        lines: StyleAndTextTuples = [("class:question", fit_line(self.title, columns))]
        for at in range(first, min(first + room, len(found))):
            mark, style = ("❯ ", "class:chosen") if at == selected else ("  ", "class:choice")
            lines.append((style, fit_line(mark + self._rows[found[at]], columns)))
        count = f"{len(found)} of {len(self._rows)}" if found else "nothing matches"
        lines.append(("class:live", fit_line(f"  {count} · type to filter · Enter chooses · Esc cancels", columns)))
        return lines


_SCOPES = {
    "y": GrantScope.ONCE, "yes": GrantScope.ONCE, "once": GrantScope.ONCE,
    "s": GrantScope.SESSION, "session": GrantScope.SESSION,
    "a": GrantScope.ALWAYS, "always": GrantScope.ALWAYS,
}  # fmt: skip
_NO = {"n", "no"}
_DEFAULT_RULE = "the default"  # no rule applies to the call: not worth showing as a reason
_NEARLY_YES = ("yes", "yep", "yeah", "ok", "okay", "sure")
Answer = PermissionAnswer | str | bool


@dataclass(frozen=True, slots=True)
class MenuChoice:
    """A line of the menu below a question: its number or `key` chooses it. Without an `answer`, words are asked for."""

    label: str
    answer: Answer | None = None
    key: str = ""


class QuestionForm(Protocol):
    """A kind of question; `parse_answer` raises UsageError for a text that is not an answer to it."""

    @property
    def title(self) -> str:
        """The question in one line, shown above its menu while it is open."""
        ...

    @property
    def choices(self) -> tuple[MenuChoice, ...]: ...

    @property
    def words_hint(self) -> str:
        """What can be typed when no choice of the menu fits; empty if nothing can."""
        ...

    def show(self, screen: Screen) -> None:
        """Print all of the question."""
        ...

    def parse_answer(self, text: str) -> Answer: ...

    def parse_words(self, text: str) -> Answer:
        """Return the answer when words were asked for."""
        ...

    def answer_when_declined(self) -> Answer: ...


@dataclass(frozen=True, slots=True)
class PermissionForm:
    """May this tool call run?"""

    question: PermissionQuestion
    words_hint = "Say what to do instead, then Enter; Enter alone is a plain no, Esc goes back"

    @property
    def title(self) -> str:
        call = describe_call(self.question.tool, self.question.arguments)
        whose = f"{self.question.asked_by}: " if self.question.asked_by else ""
        return f"? {whose}{call}{f' ({diff_size_text(self.question.preview)})' if self.question.preview else ''}"

    @property
    def choices(self) -> tuple[MenuChoice, ...]:
        offer = self.question.offer
        kept = [MenuChoice("yes", PermissionAnswer(GrantScope.ONCE), "y")]
        if offer.accept_edits:
            accepted = PermissionAnswer(GrantScope.SESSION, takes_offer=True)
            kept.append(MenuChoice("yes, and accept all edits from now on; Shift-Tab changes that", accepted, "s"))
        else:
            covered = _rule_label(offer.rule) or "exactly this call again"
            for scope, label, key in (
                (GrantScope.SESSION, f"yes, and {covered} in this session", "s"),
                (GrantScope.ALWAYS, f"yes, and {covered} always in this folder", "a"),
            ):
                if scope in self.question.scopes:
                    kept.append(MenuChoice(label, PermissionAnswer(scope, takes_offer=bool(offer.rule)), key))
        return (*kept, MenuChoice("no, and say what to do instead", key="n"))

    def show(self, screen: Screen) -> None:
        question = self.question
        if question.tool == EDIT_TOOL and question.preview:
            screen.say(self.title, Tone.ASKED)
            show_diff(screen, question.preview, PREVIEW_LINES)
        else:
            asked = "Run on this machine" if question.tool == TERMINAL_TOOL else f"Call {question.tool}"
            screen.say(f"? {asked}", Tone.ASKED)
            shown = full_call_text(question.tool, question.arguments) if question.arguments else question.text
            screen.say(shown, verbatim=True)
        if question.asked_by:
            screen.say(f"  Asked by {question.asked_by}.", Tone.DIM)
        if question.reason and not question.reason.startswith(_DEFAULT_RULE):
            screen.say(f"  Asked because of {question.reason}.", Tone.DIM)

    def parse_answer(self, text: str) -> PermissionAnswer:
        word = text.strip().lower()
        if word in _NO:
            return PermissionAnswer(None)
        if (scope := _SCOPES.get(word)) is not None:
            if scope not in self.question.scopes:
                raise UsageError(f"This cannot be allowed for {scope.value} here: choose from the menu.")
            return PermissionAnswer(scope)
        if not word:
            raise UsageError("Nothing was answered: choose from the menu.")
        if word.startswith(_NEARLY_YES) and len(word.split()) < 4:
            raise UsageError("To allow it, press y; to refuse it, press n and say what to do instead.")
        return PermissionAnswer(None, text.strip())

    def parse_words(self, text: str) -> PermissionAnswer:
        return PermissionAnswer(None, text.strip())

    def answer_when_declined(self) -> PermissionAnswer:
        return PermissionAnswer(None)


@dataclass(frozen=True, slots=True)
class ClarificationForm:
    """A question of the model, with choices or free text; an empty answer is allowed."""

    question: str
    offered: tuple[str, ...]
    words_hint = "Your own words, or nothing if you would rather not say, then Enter"

    @property
    def title(self) -> str:
        return f"? {self.question}"

    @property
    def choices(self) -> tuple[MenuChoice, ...]:
        if not self.offered:
            return ()
        return (*(MenuChoice(choice, choice) for choice in self.offered), MenuChoice("in your own words"))

    def show(self, screen: Screen) -> None:
        listed = [f"  {number}. {choice}" for number, choice in enumerate(self.offered, 1)]
        screen.say("\n".join([self.title, *listed]), Tone.ASKED)

    def parse_answer(self, text: str) -> str:
        words = text.strip()
        if self.offered and words.isascii() and words.isdigit():
            if not 1 <= int(words[:9]) <= len(self.offered):
                raise UsageError(f"There is no choice {words[:9]}: say 1 to {len(self.offered)}, or your own words.")
            return self.offered[int(words) - 1]
        return words

    def parse_words(self, text: str) -> str:
        return text.strip()

    def answer_when_declined(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ConfirmationForm:
    """A yes-or-no question; an empty answer means no."""

    question: str
    words_hint = ""
    choices = (MenuChoice("yes", True, "y"), MenuChoice("no", False, "n"))

    @property
    def title(self) -> str:
        return f"? {self.question}"

    def show(self, screen: Screen) -> None:
        screen.say(self.title, Tone.ASKED)

    def parse_answer(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in {"y", "yes", "n", "no", ""}:
            raise UsageError("Answer y or n.")
        return word.startswith("y")

    def parse_words(self, text: str) -> bool:
        return self.parse_answer(text)

    def answer_when_declined(self) -> bool:
        return False


@dataclass(eq=False, slots=True)
class OpenQuestion:
    """A question in the queue; only the first one has appeared on the screen."""

    form: QuestionForm
    answer: asyncio.Future[Answer]
    appeared_at: float = 0.0
    armed: bool = field(default=False)
    selected: int = 0
    wants_words: bool = False


@dataclass(frozen=True, slots=True)
class QuestionPanel:
    """The panel above the input while a question is open; without `rows` it does not accept an answer yet."""

    title: str
    rows: tuple[str, ...]
    selected: int | None = None


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
        self.picker: Picker | None = None

    async def pick(self, title: str, rows: Sequence[str]) -> int | None:
        """Let the person choose a row of a list; return its number, or None if they chose none."""
        self.picker = Picker(title, rows)
        self._screen.request_redraw()
        try:
            return await self.picker.result
        finally:
            self.picker = None
            self._screen.request_redraw()

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
        """Answer the open question. Raises UsageError for what is not an answer to it; the question then stays open."""
        first = self._require_armed()
        self._resolve(first.form.parse_words(text) if first.wants_words else first.form.parse_answer(text))

    @property
    def is_menu_open(self) -> bool:
        """True when a key chooses from the menu of the open question."""
        return self.is_armed and bool(self._waiting[0].form.choices) and not self._waiting[0].wants_words

    @property
    def takes_words(self) -> bool:
        """True when the open question can be answered in words instead of from its menu."""
        return self.is_open and bool(self._waiting[0].form.words_hint)

    def is_menu_key(self, key: str) -> bool:
        """Return True for a number or letter that chooses something."""
        return (key == "v" and self.is_permission) or self._find_choice(key) is not None

    def _find_choice(self, key: str) -> int | None:
        choices = self._waiting[0].form.choices if self._waiting else ()
        found = (at for at, one in enumerate(choices) if key == str(at + 1) or (one.key and key.lower() == one.key))
        return next(found, None)

    def press(self, key: str) -> bool:
        """Choose from the menu by number or letter, or show the question again with v; False for any other key."""
        first = self._require_armed()
        if key == "v" and self.is_permission:
            self._announce(first)
            return True
        if (found := self._find_choice(key)) is None:
            return False
        first.selected = found
        self.choose_selected()
        return True

    def move_selection(self, step: int) -> None:
        first = self._require_armed()
        first.selected = (first.selected + step) % max(1, len(first.form.choices))
        self._screen.request_redraw()

    def choose_selected(self) -> None:
        first = self._require_armed()
        answer = first.form.choices[first.selected].answer
        if answer is None:
            first.wants_words = True
            self._screen.request_redraw()
        else:
            self._resolve(answer)

    def accept_edits(self) -> bool:
        """Answer the open question with a yes to all edits, if it offers that; return False if it does not."""
        if self.is_armed:
            form = self._waiting[0].form
            if isinstance(form, PermissionForm) and form.question.offer.accept_edits:
                self._resolve(PermissionAnswer(GrantScope.SESSION, takes_offer=True))
                return True
        return False

    def ask_for_words(self) -> None:
        self._require_armed().wants_words = True
        self._screen.request_redraw()

    def decline(self) -> bool:
        """Handle Esc: go back to the menu, or decline to answer; return True if a permission was declined."""
        if not self.is_armed:
            return False
        first = self._waiting[0]
        if first.wants_words and first.form.choices:
            first.wants_words = False
            self._screen.request_redraw()
            return False
        self._resolve(first.form.answer_when_declined())
        return isinstance(first.form, PermissionForm)

    def panel(self) -> QuestionPanel | None:
        """Return what is shown above the input; None if no question is open."""
        if not self._waiting:
            return None
        first, more = self._waiting[0], len(self._waiting) - 1
        title = shorten_line(first.form.title, PANEL_CHARS)
        if title.endswith("…"):
            title += " (all of it is above; v shows it again)"
        if more:
            title += f" ({more} more to come)"
        if not self.is_armed:
            return QuestionPanel(title, ())
        if self.is_menu_open:
            rows = tuple(_menu_row(number, choice) for number, choice in enumerate(first.form.choices, 1))
            return QuestionPanel(title, rows, first.selected)
        return QuestionPanel(title, (first.form.words_hint,))

    def _require_armed(self) -> OpenQuestion:
        if not self._waiting:
            raise UsageError("No question is open: there is nothing to answer.")
        if not self.is_armed:
            raise UsageError("The question has only just appeared: read it, then answer.")
        return self._waiting[0]

    async def _wait_for_answer(self, wanted: QuestionForm) -> Answer:
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

    def _resolve(self, answer: Answer) -> None:
        asked = self._waiting[0]
        chosen = (one.label for one in asked.form.choices if one.answer is not None and one.answer == answer)
        self._screen.say(f"  {next(chosen, _answer_text(answer))}", Tone.DIM)
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
        asked.form.show(self._screen)
        self._screen.request_redraw()


def _rule_label(rule: str) -> str:
    if not rule:
        return ""
    command = rule.removeprefix("terminal(").removesuffix(")")
    return f"`{command}`" if command != rule else f"every call of {rule}"


def _menu_row(number: int, choice: MenuChoice) -> str:
    return f"{number} {choice.label}{f' ({choice.key})' if choice.key else ''}"


def _answer_text(answer: Answer) -> str:
    match answer:
        case PermissionAnswer(scope=None, words=words):
            return f"no; the model is told: {words}" if words else "no"
        case PermissionAnswer(scope=GrantScope.ONCE):
            return "yes"
        case PermissionAnswer(scope=scope):
            return f"yes, {'always' if scope is GrantScope.ALWAYS else 'for this session'}"
        case bool():
            return "yes" if answer else "no"
        case _:
            return answer or "not said"
