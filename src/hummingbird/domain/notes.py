"""A note before it is posted, and the hidden marker that ties it to its session (N2). What GitLab makes of either, the
forge knows."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

import msgspec

from hummingbird.domain.orders import Overrides, WorkOrder
from hummingbird.domain.text import plain


class Part(StrEnum):
    """What a note is in the course of an order."""

    PLACEHOLDER = "placeholder"
    RESULT = "result"
    FAILED = "failed"  # an end too: counts for the limit, not for the SHA (R7)
    FINDING = "finding"  # on a line of the diff (W2)


class Marker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`id` is the session's. Old notes say no more than that. `finding` names what an inline note is about, `patch`
    the change that a result is about, whatever commit it is put onto."""

    id: str
    wf: str = ""
    sha: str = ""
    order: str = ""
    part: Part = Part.PLACEHOLDER
    overrides: Overrides = Overrides()
    finding: str = ""
    patch: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Shown when somebody opens it, letter for letter."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """`text`, `more` behind it and `folds` may hold anybody's words: the forge makes them safe (N5). `above`
    and `below` are our own Markdown; `below` is the footer. A draft has a marker, or `answers` the note with this
    id and counts for nothing (R3). `suggestion`: what the line of the diff should become that the note is on, with
    `suggested_above` lines above it; empty to take them away (W2)."""

    text: str
    more: str = ""
    above: str = ""
    below: str = ""
    suggestion: str | None = None
    suggested_above: int = 0
    folds: tuple[Fold, ...] = ()
    marker: Marker | None = None
    answers: int = 0


def digest_of(text: str) -> str:
    """The same one for the same words, whoever tells them."""
    return sha256(plain(text).encode()).hexdigest()


def marker_of(order: WorkOrder, part: Part) -> Marker:
    return Marker(
        id=order.session_id, wf=order.workflow, sha=order.sha, order=order.id, part=part, overrides=order.overrides
    )
