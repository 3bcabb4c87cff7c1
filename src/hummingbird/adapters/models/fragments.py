"""A conversation as fragments of JSON, joined to turns in one go.

For wires whose turns are a role and a list (Anthropic's blocks, Gemini's parts). What is in a fragment is the
wire's business.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Fragment(NamedTuple):
    """`body` is one item of a turn's list, or all items of an answer; `message` is the index of the canonical
    message it stands for."""

    role: str
    body: bytes
    message: int


def turns(fragments: Iterable[Fragment], items: str) -> bytes:
    """The items of a JSON list of turns, neighbours of one role in one turn. `items` is the key of a turn's list."""
    pieces: list[bytes] = []
    role, close = "", b""
    for fragment in fragments:
        if fragment.role == role:
            pieces.append(b",")
        else:
            role = fragment.role
            pieces.append(close + f'{{"role":"{role}","{items}":['.encode())
            close = b"]},"
        pieces.append(fragment.body)
    if pieces:
        pieces.append(b"]}")
    return b"".join(pieces)
