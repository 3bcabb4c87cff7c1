"""Convert ids, names and arguments of tool calls to forms that every provider accepts."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from hummingbird.core.limits import TOOL_NAME_CHARS
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.text import replace_surrogates

MALFORMED = "_malformed"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_ID_CHARS = 64  # OpenAI's limit; no provider creates longer ones


def assign_call_ids(request: ModelRequest, given: Sequence[Any]) -> list[str]:
    """Return an id for each call of a reply.

    Use the provider's own id if it is legal and unique in the conversation, else derive one from the request's call id.
    """
    ids: list[str] = []
    for index, own in enumerate(given):
        usable = isinstance(own, str) and to_legal_id(own) == own and own not in request.call_ids and own not in ids
        ids.append(own if usable else derive_call_id(request.call_id, index))
    return ids


def derive_call_id(call_id: str, index: int) -> str:
    """Derive the id of a tool call from the model call's id and the index; the result is always the same.

    Nine letters and digits is the only form that every known server accepts, including Mistral's strict one.
    """
    number = int.from_bytes(hashlib.sha256(f"{call_id}/{index}".encode("utf-8", "replace")).digest(), "big")
    letters = []
    for _ in range(9):
        number, at = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[at])
    return "".join(letters)


def to_legal_name(name: str) -> str:
    """Return the name with illegal characters replaced; a model may have invented it."""
    return _UNSAFE.sub("_", name)[:TOOL_NAME_CHARS] or "_"


def to_legal_id(call_id: str) -> str:
    """Return the id, or one derived from it if it is illegal; different ids stay different."""
    usual = 0 < len(call_id) <= _ID_CHARS and not _UNSAFE.search(call_id)
    return call_id if usual else derive_call_id(call_id, 0)


def arguments_to_object(arguments: str) -> msgspec.Raw | dict[str, str]:
    """Return the arguments for APIs that expect an object.

    A JSON object stays exactly as the model wrote it. Other text becomes the value of the key MALFORMED.
    """
    try:
        text = arguments.encode()
        if isinstance(msgspec.json.decode(text), dict):
            return msgspec.Raw(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    return {MALFORMED: replace_surrogates(arguments)}


def arguments_to_text(arguments: Any) -> str:
    """Return an object as JSON text; reverse what `arguments_to_object` does to malformed text."""
    if isinstance(arguments, dict) and list(arguments) == [MALFORMED] and isinstance(arguments[MALFORMED], str):
        return str(arguments[MALFORMED])
    return msgspec.json.encode(arguments).decode()
