"""Tool calls on their way between wires: ids, names and arguments that every provider takes.

Knows what may be wrong with a call, not which provider is asked.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from hummingbird.domain.limits import TOOL_NAME_CHARS
from hummingbird.domain.text import plain
from hummingbird.ports.model import ModelRequest

MALFORMED = "_malformed"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_ID_CHARS = 64  # what OpenAI takes; nobody makes longer ones


def call_ids(request: ModelRequest, given: Sequence[Any]) -> list[str]:
    """An id for each call of a reply: the provider's own if it is legal and nothing else in the conversation has it,
    else one derived from the request's call id."""
    ids: list[str] = []
    for index, own in enumerate(given):
        usable = isinstance(own, str) and legal_id(own) == own and own not in request.call_ids and own not in ids
        ids.append(own if usable else derived_id(request.call_id, index))
    return ids


def derived_id(call_id: str, index: int) -> str:
    """The same nine letters and digits for the same tool call of the same model call: the one shape that every
    known server takes, Mistral's strict one included."""
    number = int.from_bytes(hashlib.sha256(f"{call_id}/{index}".encode("utf-8", "replace")).digest(), "big")
    letters = []
    for _ in range(9):
        number, at = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[at])
    return "".join(letters)


def legal_name(name: str) -> str:
    """The name itself, or what is left of an illegal one that a model made up."""
    return _UNSAFE.sub("_", name)[:TOOL_NAME_CHARS] or "_"


def legal_id(call_id: str) -> str:
    """The id itself, or one that keeps illegal ids apart from each other."""
    usual = 0 < len(call_id) <= _ID_CHARS and not _UNSAFE.search(call_id)
    return call_id if usual else derived_id(call_id, 0)


def argument_object(arguments: str) -> msgspec.Raw | dict[str, str]:
    """The arguments for wires that want an object: the model's own JSON untouched, or the text that is none."""
    try:
        text = arguments.encode()
        if isinstance(msgspec.json.decode(text), dict):
            return msgspec.Raw(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    return {MALFORMED: plain(arguments)}


def argument_text(arguments: Any) -> str:
    """The opposite: an object as JSON text; the text again if it was none."""
    if isinstance(arguments, dict) and list(arguments) == [MALFORMED] and isinstance(arguments[MALFORMED], str):
        return str(arguments[MALFORMED])
    return msgspec.json.encode(arguments).decode()
