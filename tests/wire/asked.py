"""Requests and conversations for tests that need no model: made by hand, or read back as a resume reads them."""

from collections.abc import Sequence
from typing import Any

from hummingbird.core.journal import ModelAnswered, dump_entry, load_entry
from hummingbird.core.messages import AssistantMessage, Message
from hummingbird.core.protocols.model import ModelRequest
from tests.wire.dialogue import TOOLS


def asked(messages: Sequence[Message], **changes: Any) -> ModelRequest:
    """A request with these messages and the usual rest."""
    usual: dict[str, Any] = {"system": "Be brief.", "tools": TOOLS, "session_id": "s-1", "call_id": "call-1"}
    return ModelRequest(messages=messages, **{**usual, **changes})


def reread(messages: Sequence[Message]) -> list[Message]:
    """The same conversation in another process: what the journal gives back."""
    return [_reread(message) if isinstance(message, AssistantMessage) else message for message in messages]


def _reread(message: AssistantMessage) -> AssistantMessage:
    entry = load_entry(dump_entry(ModelAnswered(call_id="c", model="m", message=message)), 1)
    assert isinstance(entry, ModelAnswered)
    return entry.message
