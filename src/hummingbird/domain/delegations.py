"""What a session's journal keeps of its sub-agents' own (C8): what was decided about their calls and what came of them.

Masked first and cut afterwards; a secret that was cut in two is none that could be recognised. Knows nothing of loops.
"""

from collections.abc import Callable

from msgspec.structs import replace

from hummingbird.domain.chat_limits import DELEGATED_BYTES
from hummingbird.domain.journal import Delegated, Entry, ToolDecided, ToolFinished, ToolStarted
from hummingbird.domain.text import plain

Mask = Callable[[str], str]


def delegated(call_id: str, task: int, entry: Entry, wanted: str, mask: Mask) -> Delegated | None:
    """None for what stays a sub-agent's own: what it was told, thought and answered. `wanted`: arguments of a call that
    never began."""
    kept: ToolDecided | ToolStarted | ToolFinished
    match entry:
        case ToolDecided(reason=reason):
            kept = replace(entry, reason=begun(mask(reason)))
        case ToolStarted(arguments=arguments):
            kept = replace(entry, arguments=begun(mask(arguments)))
        case ToolFinished(text=text):
            kept = replace(entry, text=begun(mask(text)), charges=())
        case _:
            return None
    return Delegated(call_id=call_id, task=task, entry=kept, arguments=begun(mask(wanted)))


def begun(text: str) -> str:
    """The beginning of a long one, and how long it was."""
    raw = plain(text).encode()
    if len(raw) <= DELEGATED_BYTES:
        return text
    return f"{raw[:DELEGATED_BYTES].decode('utf-8', 'ignore')}… [the first {DELEGATED_BYTES:,} of {len(raw):,} bytes]"
