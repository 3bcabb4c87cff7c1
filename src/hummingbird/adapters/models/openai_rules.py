"""What both of OpenAI's APIs refuse, checked before anything is sent (L4)."""

import re

from hummingbird.domain.errors import InvalidRequest
from hummingbird.domain.messages import AssistantMessage
from hummingbird.ports.model import ModelRequest

CACHE_KEY_CHARS = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_end(request: ModelRequest) -> None:
    """Raises InvalidRequest for what only these APIs refuse."""
    if isinstance(request.messages[-1], AssistantMessage):
        raise InvalidRequest("The conversation ends with a paused answer, which OpenAI's APIs cannot continue.")


def proper(name: str) -> str:
    """The name of a tool we define. Raises InvalidRequest."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"The tool name {name!r} is not one OpenAI's APIs take: 1 to 64 letters, digits, _ or -.")
    return name
