"""Gets an answer of a given type from any model: it is asked for JSON, which pydantic validates."""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

from hummingbird.agent.tools.typed_function import remove_titles
from hummingbird.app.run_result import RunResult
from hummingbird.core.errors import UsageError
from hummingbird.core.text import shorten_line

OutputT = TypeVar("OutputT")
ATTEMPTS = 3
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


async def run_for_output(
    output: type[OutputT], message: str, run: Callable[[str], Awaitable[RunResult[str]]]
) -> RunResult[OutputT]:
    """Run until the answer fits the type, at most three times; `error` says so if it never did.

    Usage, cost and tool calls are those of all attempts. Raises UsageError for a type that JSON cannot express.
    """
    from pydantic import PydanticUserError, TypeAdapter, ValidationError  # noqa: PLC0415 - slow to import
    from pydantic.errors import PydanticInvalidForJsonSchema  # noqa: PLC0415

    try:
        adapter: TypeAdapter[OutputT] = TypeAdapter(output)
        schema = json.dumps(remove_titles(adapter.json_schema()))
    except (PydanticUserError, PydanticInvalidForJsonSchema) as error:
        raise UsageError(f"output is {output!r}, which JSON cannot express: {shorten_line(str(error), 200)}") from error
    asked = (
        f"{message}\n\nWhen you have the answer, write it as one JSON value and nothing else. It must fit this JSON "
        f"Schema:\n{schema}"
    )
    past: RunResult[Any] | None = None
    faults = ""
    for _ in range(ATTEMPTS):
        result = await run(asked)
        total: RunResult[Any] = result if past is None else _add_results(past, result)
        past = total
        if not result.ok:
            return replace(total, structured=None)
        try:
            return replace(total, structured=adapter.validate_json(find_json(result.text)))
        except ValidationError as error:
            faults = "; ".join(
                f"{'/'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}"
                for one in error.errors(include_url=False)
            )
            asked = (
                f"That does not fit the schema: {shorten_line(faults, 1000)}. Write the whole answer again, as one "
                "JSON value and nothing else."
            )
    assert past is not None
    sentence = f"The model's answer did not fit {getattr(output, '__name__', output)} in {ATTEMPTS} attempts."
    return replace(past, ok=False, error=f"{sentence} {shorten_line(faults, 300)}", structured=None)


def find_json(text: str) -> str:
    """Return the JSON of an answer, which may stand in a code block or between words."""
    bare = text.strip()
    if found := _FENCE.search(bare):
        return found[1].strip()
    if bare[:1] in "{[":
        return bare
    starts = [at for sign in "{[" if (at := bare.find(sign)) >= 0]
    end = max(bare.rfind("}"), bare.rfind("]"))
    return bare[min(starts) : end + 1] if starts and end > min(starts) else bare


def _add_results(past: RunResult[Any], last: RunResult[Any]) -> RunResult[Any]:
    costs = (past.cost_usd, last.cost_usd)
    return replace(
        last,
        usage=past.usage + last.usage,
        cost_usd=None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        tool_calls=[*past.tool_calls, *last.tool_calls],
        warnings=[*past.warnings, *last.warnings],
    )
