"""Decide whether each call may run: judge it by the rules, ask a person if needed, and keep what they grant.

Grants for the session are read from its journal alone, so a resumed session has them too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from hummingbird.agent.interrupts import is_being_cancelled, is_outside_interrupt, run_within
from hummingbird.core.errors import CommandFailed, HummingbirdError, describe_error
from hummingbird.core.journal import JournalEntry
from hummingbird.core.limits import ERROR_TEXT_CHARS, GRANT_SHOWN_CHARS, PERSON_TIMEOUT_S
from hummingbird.core.permissions import (
    CAREFUL,
    GrantScope,
    PermissionAction,
    PermissionAnswer,
    PermissionDecision,
    PermissionGrant,
    PermissionOffer,
    PermissionQuestion,
    PermissionRule,
    ProposedCall,
    find_session_grants,
    judge_call,
)
from hummingbird.core.protocols.interaction import GrantStore, PermissionAsker
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

DENIAL_ADVICE = (
    "Do not send this call again, it would be denied again. Reach your goal another way, or say in your answer what "
    "you could not do and why."
)


# On whose behalf a question is asked, such as "sub-agent 2"; empty for the agent that the person talks to.
asked_on_behalf: ContextVar[str] = ContextVar("asked_on_behalf", default="")

# Returns what a call would change, as a unified diff; empty for tools that cannot say. Raises CommandFailed for a call
# that would fail, so that nobody is asked about it.
CallPreview: TypeAlias = Callable[[ToolSpec, Mapping[str, Any]], Awaitable[str]]


class RuleKeeper(Protocol):
    """Suggests a rule that a yes may cover beyond one call, and saves it if the person accepts it.

    `keep` raises HummingbirdError if it cannot be saved for that long.
    """

    def suggest(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> PermissionOffer: ...

    async def keep(self, offer: PermissionOffer, scope: GrantScope, by: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionPermissions:
    """The permissions of a session.

    Without an asker, a call that needs a person's yes is denied. Without `saved`, no grant outlives the session. A
    person who is asked sees what `preview` returns, and can accept what `keeper` suggests. `rules` may change while the
    session goes on.
    """

    rules: Sequence[PermissionRule] = ()
    default: Mapping[ToolEffect, PermissionAction] = field(default_factory=lambda: CAREFUL)
    asker: PermissionAsker | None = None
    saved: GrantStore | None = None
    preview: CallPreview | None = None
    keeper: RuleKeeper | None = None


@dataclass(frozen=True, slots=True)
class PermissionRuling:
    """The decision about a call, for the journal and for the model."""

    allowed: bool
    by: str
    reason: str
    key: str = ""
    scope: str = ""
    where: str = ""
    would_fail: bool = False

    @property
    def denial_text(self) -> str:
        """Return the text that tells the model that a call was denied."""
        if self.would_fail:
            return f"Nobody was asked, because the call would fail. {self.reason}"
        why = f": {self.reason.rstrip('.')}" if self.reason else ""
        return f"Denied by {self.by}{why}. {DENIAL_ADVICE}"


class PermissionGate:
    """The gate of one session; it asks one question at a time, in the order of the calls."""

    def __init__(
        self,
        permissions: SessionPermissions,
        project: str,
        entries: Callable[[], Sequence[JournalEntry]],
        mask: Callable[[str], str],
    ) -> None:
        self._permissions = permissions
        self._project = project
        self._entries = entries
        self._mask = mask
        self._granted: dict[str, GrantScope] = {}
        self._folded = 0  # number of journal entries that `_granted` includes
        self._one_at_a_time = asyncio.Lock()

    async def decide(
        self, spec: ToolSpec, arguments: Mapping[str, Any], write: Callable[[PermissionRuling], None]
    ) -> PermissionRuling:
        """Decide on exactly this call, and write the ruling before the next question is asked, which it may answer."""
        decision = self._judge(spec, arguments, {})
        if decision.action is PermissionAction.ALLOW or decision.absolute:
            ruling = _ruling_from_decision(decision)
            write(ruling)
            return ruling
        async with self._one_at_a_time:
            ruling = await self._decide_with_grants(spec, arguments)
            write(ruling)
            return ruling

    def _judge(
        self, spec: ToolSpec, arguments: Mapping[str, Any], saved: Mapping[str, GrantScope]
    ) -> PermissionDecision:
        entries = self._entries()
        self._granted |= find_session_grants(entries[self._folded :], self._project)
        self._folded = len(entries)
        return judge_call(
            tuple(self._permissions.rules), {**saved, **self._granted}, spec, arguments, self._permissions.default
        )

    async def _decide_with_grants(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> PermissionRuling:
        saved, trouble = await self._load_grants()
        decision = self._judge(spec, arguments, saved)
        if decision.action is not PermissionAction.ASK or decision.command is None:
            return _ruling_from_decision(decision)
        why = " and ".join(part for part in (decision.reason, trouble) if part)
        if self._permissions.asker is None:
            nobody = "it needs a person's yes, and there is nobody to ask"
            return PermissionRuling(False, decision.by, f"{nobody} ({why})" if why else nobody, decision.command.key)
        reason = f"{decision.by}{': ' + why if why else ''}"
        try:
            question = await self._build_question(spec, decision.command, reason)
        except CommandFailed as error:
            return PermissionRuling(False, "the tool", str(error), decision.command.key, would_fail=True)
        ruling = await self._ask_person(self._permissions.asker, question)
        again = self._judge(spec, arguments, saved)  # the person may have changed the rules meanwhile
        return _ruling_from_decision(again) if again.action is PermissionAction.DENY else ruling

    async def _load_grants(self) -> tuple[dict[str, GrantScope], str]:
        """Return the project's grants and what is wrong with them; a grant that cannot be read does not count."""
        if self._permissions.saved is None:
            return {}, ""
        try:
            return dict.fromkeys(await self._permissions.saved.list_keys(self._project), GrantScope.ALWAYS), ""
        except HummingbirdError as error:
            return {}, shorten_line(str(error), ERROR_TEXT_CHARS)

    async def _build_question(self, spec: ToolSpec, command: ProposedCall, reason: str) -> PermissionQuestion:
        """Return the question for the user, with a preview of the call. Raises CommandFailed if the call would fail."""
        preview = "" if self._permissions.preview is None else await self._permissions.preview(spec, command.arguments)
        scopes = (
            GrantScope.ONCE,
            GrantScope.SESSION,
            *((GrantScope.ALWAYS,) if self._permissions.saved is not None else ()),
        )
        return PermissionQuestion(
            spec.name,
            command.describe(self._mask),
            self._mask(reason),
            command.key,
            spec.effects,
            scopes,
            command.masked_arguments(self._mask),
            self._mask(preview),
            PermissionOffer() if self._permissions.keeper is None else self._suggest(spec, command),
            asked_on_behalf.get(),
        )

    def _suggest(self, spec: ToolSpec, command: ProposedCall) -> PermissionOffer:
        """Return the keeper's suggestion, unless it contains a credential."""
        assert self._permissions.keeper is not None
        offer = self._permissions.keeper.suggest(spec, command.arguments)
        return offer if self._mask(offer.rule) == offer.rule else replace(offer, rule="")

    async def _ask_person(self, asker: PermissionAsker, question: PermissionQuestion) -> PermissionRuling:
        try:
            answer = await run_within(PERSON_TIMEOUT_S, _ask_safely(asker, question))
        except TimeoutError:
            answer = PermissionAnswer(None, f"no answer within {PERSON_TIMEOUT_S:g} s")
        if is_being_cancelled():  # the asker may have swallowed the cancellation; nothing follows an interrupt
            raise asyncio.CancelledError
        words = shorten_line(answer.words, ERROR_TEXT_CHARS)
        if answer.scope is None:
            return PermissionRuling(False, asker.name, words or "the answer was no", question.key)
        asked = f"asked because of {question.reason}; the answer was {answer.scope}"
        if answer.takes_offer and self._permissions.keeper is not None:
            scope, trouble = await self._keep_offer(asker, question.offer, answer.scope)
            asked += f" for {question.offer.rule or 'all edits'}"
        else:
            scope, trouble = await self._save_grant(asker, question, answer.scope)
        reason = ". ".join(part for part in (asked, words, trouble) if part)
        return PermissionRuling(True, asker.name, reason, question.key, scope, self._project)

    async def _keep_offer(
        self, asker: PermissionAsker, offer: PermissionOffer, scope: GrantScope
    ) -> tuple[GrantScope, str]:
        """Save the suggested rule. The journal records a yes for this call alone, because the keeper has the rule."""
        assert self._permissions.keeper is not None
        try:
            await self._permissions.keeper.keep(offer, scope, asker.name)
        except HummingbirdError as error:
            return GrantScope.ONCE, f"It could not be kept and holds for this call alone: {error}"
        return GrantScope.ONCE, ""

    async def _save_grant(
        self, asker: PermissionAsker, question: PermissionQuestion, scope: GrantScope
    ) -> tuple[GrantScope, str]:
        """Return how long the grant really holds, and why not longer."""
        if scope is not GrantScope.ALWAYS:
            return scope, ""
        if self._permissions.saved is None:
            return GrantScope.SESSION, "There is no place to save it, so it holds for this session"
        shown = question.text[:GRANT_SHOWN_CHARS] + "…" * (len(question.text) > GRANT_SHOWN_CHARS)
        try:
            await self._permissions.saved.save(
                self._project, PermissionGrant(question.key, shown, replace_surrogates(asker.name))
            )
        except HummingbirdError as error:
            return GrantScope.SESSION, f"It could not be saved and holds for this session: {error}"
        return scope, ""


def _ruling_from_decision(decision: PermissionDecision) -> PermissionRuling:
    key = decision.command.key if decision.command else ""
    return PermissionRuling(decision.action is PermissionAction.ALLOW, decision.by, decision.reason, key)


async def _ask_safely(asker: PermissionAsker, question: PermissionQuestion) -> PermissionAnswer:
    try:
        answer: object = await asker.ask(question)
        if isinstance(answer, PermissionAnswer):
            scope = None if answer.scope is None else GrantScope(answer.scope)
            return PermissionAnswer(scope, str(answer.words), bool(answer.takes_offer))
        return PermissionAnswer(None, f"the reply was not an answer but {type(answer).__name__}")
    except BaseException as error:  # border: an asker is somebody's code; one that fails has not said yes
        if is_outside_interrupt(error):
            raise
        return PermissionAnswer(None, f"asking failed ({shorten_line(describe_error(error), 200)})")
