"""Questions to the person at the editor: may this call run (T9), what did you mean (C5), shall I go on.

An editor that cannot ask, or answers with what is no answer, has not said yes.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Protocol

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    ToolCallUpdate,
)

from hummingbird.chat.acp.calls import Content, kind_of, whole
from hummingbird.chat.acp.limits import QUOTED_CHARS
from hummingbird.domain.permissions import Answer, Question, Scope
from hummingbird.domain.text import shortened

PLANNING = "the editor is in plan mode by now: nothing is changed or sent"
_NO = PermissionOption(option_id="reject", name="Reject", kind="reject_once")
_YES = {
    Scope.ONCE: PermissionOption(option_id=Scope.ONCE.value, name="Allow once", kind="allow_once"),
    Scope.SESSION: PermissionOption(
        option_id=Scope.SESSION.value, name="Allow exactly this for this session", kind="allow_always"
    ),
    Scope.ALWAYS: PermissionOption(option_id=Scope.ALWAYS.value, name="Always allow exactly this", kind="allow_always"),
}
_CHOICE, _WORDS = "choice", "words"


class Whose(Protocol):
    """The conversation that a question is asked in."""

    @property
    def session_id(self) -> str: ...
    @property
    def plan(self) -> bool: ...

    def asked_about(self, question: Question) -> tuple[str, list[Content]]: ...
    async def told(self) -> None:
        """Returns when the editor knows of everything that came before."""
        ...


class Asking:
    """Asker (`ports.permissions`)."""

    def __init__(self, client: Callable[[], Client], whose: Whose) -> None:
        self._client, self._whose = client, whose
        self._numbers = count(1)

    @property
    def name(self) -> str:
        return "the person at the editor"

    async def ask(self, question: Question) -> Answer:
        if self._whose.plan:
            return Answer(None, PLANNING)
        effects = "/".join(sorted(question.effects)) or "nothing"
        call_id, shown = self._whose.asked_about(question)
        call = ToolCallUpdate(
            tool_call_id=call_id or f"question-{next(self._numbers)}",
            title=question.text,
            kind=kind_of(question.tool),
            status="pending",
            content=[whole(f"It can {effects}. Asked because of {question.reason}.\n\n{question.text}"), *shown],
        )
        offered = [_YES[scope] for scope in question.scopes]
        chosen, trouble = await self._chosen(call, [*offered, _NO])
        scope = next((scope for scope in question.scopes if scope.value == chosen), None)
        return Answer(scope, trouble)

    async def confirm(self, question: str) -> bool:
        call = ToolCallUpdate(
            tool_call_id=f"confirmation-{next(self._numbers)}", title=question, kind="other", status="pending"
        )
        yes = PermissionOption(option_id="yes", name="Yes", kind="allow_once")
        chosen, _ = await self._chosen(call, [yes, PermissionOption(option_id="no", name="No", kind="reject_once")])
        return chosen == "yes"

    async def _chosen(self, call: ToolCallUpdate, options: list[PermissionOption]) -> tuple[str, str]:
        """What was chosen, or why nothing was."""
        await self._whose.told()
        try:
            answer = await self._client().request_permission(
                session_id=self._whose.session_id, tool_call=call, options=options
            )
        except RequestError as error:
            return "", f"the editor could not ask: {shortened(str(error), QUOTED_CHARS)}"
        if isinstance(answer.outcome, AllowedOutcome):
            return answer.outcome.option_id, ""
        return "", "the question was dismissed"


class Clarifying:
    """Clarifier (`ports.person`), for editors that can show a form."""

    def __init__(self, client: Callable[[], Client], whose: Whose) -> None:
        self._client, self._whose = client, whose

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        await self._whose.told()
        fields = {_WORDS: ElicitationStringPropertySchema(type="string", title="In your own words")}
        if choices:
            chosen = ElicitationStringPropertySchema(type="string", title="One of these", enum=list(choices))
            fields = {_CHOICE: chosen, **fields}
        form = ElicitationFormSessionMode(
            session_id=self._whose.session_id, requested_schema=ElicitationSchema(properties=dict(fields))
        )
        try:
            answer = await self._client().create_elicitation(message=question, mode=form)
        except RequestError:
            return ""
        content = answer.content if isinstance(answer, AcceptElicitationResponse) else None
        said = [str((content or {}).get(name) or "").strip() for name in (_CHOICE, _WORDS)]
        return ". ".join(filter(None, said))
