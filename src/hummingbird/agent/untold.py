"""A model's answer without the credentials that we know (I1, I2): what it says is run, kept and shown, however it came
to know one.

An answer that holds none, as all should, stays as it is, down to what its provider wants back verbatim.
"""

import json
from collections.abc import Callable

import msgspec

from hummingbird.agent.tools.results import as_text
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall

Mask = Callable[[str], str]


def untold(message: AssistantMessage, mask: Mask) -> AssistantMessage:
    """An echo that holds one cannot be replayed and is left out."""
    calls = tuple(ToolCall(call.id, mask(call.name), _arguments(call.arguments, mask)) for call in message.calls)
    told = AssistantMessage(mask(message.text), mask(message.reasoning), calls, paused=message.paused)
    same = (told.text, told.reasoning, told.calls) == (message.text, message.reasoning, message.calls)
    return message if same and not _echoes(message.echo, mask) else told


def _arguments(text: str, mask: Mask) -> str:
    """Value by value where need be: JSON may escape any sign of one."""
    plainly = mask(text)
    if plainly != text or "\\" not in text:
        return plainly
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    masked = as_text(given, mask)
    return text if masked == as_text(given, str) else masked


def _echoes(echo: Echo | None, mask: Mask) -> bool:
    if echo is None:
        return False
    content = json.dumps(echo.content, ensure_ascii=False, default=str)
    return mask(content) != content
