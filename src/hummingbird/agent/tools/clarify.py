"""`clarify` (C5): asks the person something that only they know. Nobody there to ask: no such tool."""

from collections.abc import Mapping
from typing import Any

from hummingbird.domain.errors import ArgumentsInvalid
from hummingbird.domain.limits import INLINE_RESULT_BYTES, PERSON_TIMEOUT_S
from hummingbird.domain.mind_limits import CHOICE_CHARS, CHOICES, QUESTION_CHARS
from hummingbird.domain.text import plain
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.person import Clarifier
from hummingbird.ports.tool import Output, ToolContext

NAME = "clarify"
SILENT = "[The user would rather not say. Decide for yourself, and say in your answer what you assumed.]"
SPEC = ToolSpec(
    name=NAME,
    description=(
        "Asks the user one question and waits for the answer. For what only they can know or decide and what the work "
        "depends on; find out by yourself what can be found out. They may answer in their own words."
    ),
    schema={
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "maxLength": QUESTION_CHARS},
            "choices": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": CHOICE_CHARS},
                "maxItems": CHOICES,
                "description": "likely answers, the best one first",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    toolset=NAME,
    interactive=True,
    timeout_s=PERSON_TIMEOUT_S,
    trusted=True,  # the person's own words
)


class Clarify:
    def __init__(self, clarifier: Clarifier | None) -> None:
        self._clarifier = clarifier

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def available(self) -> bool:
        return self._clarifier is not None

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        question = plain(arguments["question"]).strip()
        if not question or self._clarifier is None:
            raise ArgumentsInvalid("There is no question, or nobody to ask: go on with what you know.")
        choices = [" ".join(plain(choice).split()) for choice in arguments.get("choices", ())]
        answer = await self._clarifier.clarify(question, list(dict.fromkeys(filter(None, choices))))
        said = plain(answer).strip()
        if len(said.encode()) > INLINE_RESULT_BYTES // 2:
            said = said[: INLINE_RESULT_BYTES // 8] + "\n[… the answer was longer; ask for what is missing]"
        return f"The user answers: {said}" if said else SILENT
