"""The gate every call passes before it runs (T9): it judges, asks whoever can be asked, and keeps what they grant.

Grants for the session are read from its journal alone, so a resumed session has them too. Knows nothing of hooks, nor
of how a question looks.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hummingbird.agent.described import described
from hummingbird.agent.interruptible import being_cancelled, within
from hummingbird.agent.tools.foreign import not_its_own
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.journal import Entry
from hummingbird.domain.limits import ERROR_TEXT_CHARS, GRANT_SHOWN_CHARS, PERSON_TIMEOUT_S
from hummingbird.domain.permissions import (
    CAREFUL,
    Action,
    Answer,
    Command,
    Decision,
    Grant,
    Question,
    Rule,
    Scope,
    judge,
    session_grants,
)
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.tools import Effect, ToolSpec
from hummingbird.ports.permissions import Asker, Grants

INSTEAD = (
    "Do not send this call again, it would be denied again. Reach your goal another way, or say in your answer what "
    "you could not do and why."
)


@dataclass(frozen=True, slots=True)
class Permissions:
    """What holds in a session. Without an asker, a call that needs a person's yes is denied; without `saved`, no grant
    outlives the session."""

    rules: Sequence[Rule] = ()
    default: Mapping[Effect, Action] = field(default_factory=lambda: CAREFUL)
    asker: Asker | None = None
    saved: Grants | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of a call at the gate, for the journal and for the model."""

    allowed: bool
    by: str
    reason: str
    key: str = ""
    scope: str = ""
    where: str = ""

    @property
    def told(self) -> str:
        """What the model reads of a denial."""
        why = f": {self.reason.rstrip('.')}" if self.reason else ""
        return f"Denied by {self.by}{why}. {INSTEAD}"


class Gate:
    """One session's. Questions are asked one at a time, in the order in which the calls come."""

    def __init__(
        self,
        permissions: Permissions,
        project: str,
        entries: Callable[[], Sequence[Entry]],
        mask: Callable[[str], str],
    ) -> None:
        self._permissions = permissions
        self._project = project
        self._entries = entries
        self._mask = mask
        self._granted: dict[str, Scope] = {}
        self._folded = 0  # entries of the journal that `_granted` is made of
        self._one_at_a_time = asyncio.Lock()

    async def rule(self, spec: ToolSpec, arguments: Mapping[str, Any], write: Callable[[Ruling], None]) -> Ruling:
        """What becomes of exactly this call. Written down before the next question is asked, which it may answer."""
        decision = self._judge(spec, arguments, {})
        if decision.action is Action.ALLOW or decision.absolute:
            ruling = _ruled(decision)
            write(ruling)
            return ruling
        async with self._one_at_a_time:
            ruling = await self._with_grants(spec, arguments)
            write(ruling)
            return ruling

    def _judge(self, spec: ToolSpec, arguments: Mapping[str, Any], saved: Mapping[str, Scope]) -> Decision:
        entries = self._entries()
        self._granted |= session_grants(entries[self._folded :], self._project)
        self._folded = len(entries)
        return judge(self._permissions.rules, {**saved, **self._granted}, spec, arguments, self._permissions.default)

    async def _with_grants(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Ruling:
        saved, trouble = await self._saved()
        decision = self._judge(spec, arguments, saved)
        if decision.action is not Action.ASK or decision.command is None:
            return _ruled(decision)
        why = " and ".join(part for part in (decision.reason, trouble) if part)
        if self._permissions.asker is None:
            nobody = "it needs a person's yes, and there is nobody to ask"
            return Ruling(False, decision.by, f"{nobody} ({why})" if why else nobody, decision.command.key)
        question = self._question(spec, decision.command, f"{decision.by}{': ' + why if why else ''}")
        return await self._asked(self._permissions.asker, question)

    async def _saved(self) -> tuple[dict[str, Scope], str]:
        """The project's grants, and what is wrong with them: one that cannot be read has not been given."""
        if self._permissions.saved is None:
            return {}, ""
        try:
            return dict.fromkeys(await self._permissions.saved.keys(self._project), Scope.ALWAYS), ""
        except HummingbirdError as error:
            return {}, shortened(str(error), ERROR_TEXT_CHARS)

    def _question(self, spec: ToolSpec, command: Command, reason: str) -> Question:
        scopes = (Scope.ONCE, Scope.SESSION, *((Scope.ALWAYS,) if self._permissions.saved is not None else ()))
        return Question(spec.name, command.shown(self._mask), self._mask(reason), command.key, spec.effects, scopes)

    async def _asked(self, asker: Asker, question: Question) -> Ruling:
        try:
            answer = await within(PERSON_TIMEOUT_S, _answer(asker, question))
        except TimeoutError:
            answer = Answer(None, f"no answer within {PERSON_TIMEOUT_S:g} s")
        if being_cancelled():  # whoever was asked may have swallowed it; nothing follows an interrupt (L19)
            raise asyncio.CancelledError
        words = shortened(answer.words, ERROR_TEXT_CHARS)
        if answer.scope is None:
            return Ruling(False, asker.name, words or "the answer was no", question.key)
        scope, trouble = await self._kept(asker, question, answer.scope)
        asked = f"asked because of {question.reason}; the answer was {answer.scope}"
        reason = ". ".join(part for part in (asked, words, trouble) if part)
        return Ruling(True, asker.name, reason, question.key, scope, self._project)

    async def _kept(self, asker: Asker, question: Question, scope: Scope) -> tuple[Scope, str]:
        """How long the yes really holds, and why not longer."""
        if scope is not Scope.ALWAYS:
            return scope, ""
        if self._permissions.saved is None:
            return Scope.SESSION, "There is no place to save it, so it holds for this session"
        shown = question.text[:GRANT_SHOWN_CHARS] + "…" * (len(question.text) > GRANT_SHOWN_CHARS)
        try:
            await self._permissions.saved.save(self._project, Grant(question.key, shown, plain(asker.name)))
        except HummingbirdError as error:
            return Scope.SESSION, f"It could not be saved and holds for this session: {error}"
        return scope, ""


def _ruled(decision: Decision) -> Ruling:
    key = decision.command.key if decision.command else ""
    return Ruling(decision.action is Action.ALLOW, decision.by, decision.reason, key)


async def _answer(asker: Asker, question: Question) -> Answer:
    try:
        answer: object = await asker.ask(question)
        if isinstance(answer, Answer):
            return Answer(None if answer.scope is None else Scope(answer.scope), str(answer.words))
        return Answer(None, f"what came was no answer but {type(answer).__name__}")
    except BaseException as error:  # border: an asker is somebody's code; one that fails has not said yes
        if not_its_own(error):
            raise
        return Answer(None, f"asking failed ({shortened(described(error), 200)})")
