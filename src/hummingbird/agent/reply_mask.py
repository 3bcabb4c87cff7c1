"""Mask known credentials in a model's answer, complete or while it streams.

An answer is run, stored and shown, so it must not hold a credential, however the model came to know it. An answer
without one stays exactly as it is, including what its provider wants back verbatim. In a stream, text that could be the
beginning of a credential is held back until it is clear that it is none.
"""

import codecs
import json
from collections.abc import Callable
from dataclasses import replace

import msgspec

from hummingbird.agent.tools.results import output_to_text
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall

MaskText = Callable[[str], str]


def mask_reply(message: AssistantMessage, mask: MaskText) -> AssistantMessage:
    """Return the answer without known credentials; an echo that holds one is dropped, because it cannot be replayed."""
    calls = tuple(ToolCall(call.id, mask(call.name), _mask_arguments(call.arguments, mask)) for call in message.calls)
    masked = AssistantMessage(mask(message.text), mask(message.reasoning), calls, paused=message.paused)
    same = (masked.text, masked.reasoning, masked.calls) == (message.text, message.reasoning, message.calls)
    return message if same and not _echo_has_secret(message.echo, mask) else masked


def _mask_arguments(text: str, mask: MaskText) -> str:
    """Mask the arguments, value by value if needed, because JSON may escape any character of a credential."""
    plainly = mask(text)
    if plainly != text or "\\" not in text:
        return plainly
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    masked = output_to_text(given, mask)
    return text if masked == output_to_text(given, str) else masked


def _echo_has_secret(echo: ProviderEcho | None, mask: MaskText) -> bool:
    if echo is None:
        return False
    content = json.dumps(echo.content, ensure_ascii=False, default=str)
    return mask(content) != content


class _DeltaMasker:
    def __init__(self, secrets: Secrets) -> None:
        self._masked = secrets.open_known_stream()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, text: str) -> str:
        return self._decoder.decode(self._masked.feed(text.encode("utf-8", "replace")))

    def end(self) -> str:
        return self._decoder.decode(self._masked.end(), final=True)


class MaskedDeltas:
    """The masked stream of one answer.

    `end` emits what was held back; an answer that broke off is not ended.
    """

    def __init__(self, tell: Callable[[Delta], None], secrets: Secrets) -> None:
        self._emit, self._secrets = tell, secrets
        self._pieces: dict[object, tuple[_DeltaMasker, Delta]] = {}

    def __call__(self, delta: Delta) -> None:
        """Emit a masked delta; the names of calls are our own tools' and need no masking."""
        key = delta.index if isinstance(delta, CallDelta) else type(delta)
        pieces, _ = self._pieces.get(key) or (_DeltaMasker(self._secrets), delta)
        self._pieces[key] = pieces, delta
        self._emit_text(delta, pieces.feed(delta.part if isinstance(delta, CallDelta) else delta.text))

    def end(self) -> None:
        for pieces, delta in self._pieces.values():
            last = replace(delta, name="") if isinstance(delta, CallDelta) else delta
            self._emit_text(last, pieces.end())
        self._pieces.clear()

    def _emit_text(self, delta: Delta, text: str) -> None:
        match delta:
            case CallDelta(name=name) if name or text:
                self._emit(replace(delta, part=text))
            case TextDelta() | ReasoningDelta() if text:
                self._emit(replace(delta, text=text))
            case _:
                pass
