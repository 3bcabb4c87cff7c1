"""What routing can decide, each with its reason (R1–R6). What has to be asked of GitLab first is asked afterwards."""

from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.domain.orders import Cause, Overrides


@dataclass(frozen=True, slots=True)
class Ignore:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Automatic:
    """Workflows that begin by themselves, in the order of the file, and those whose threads are looked at first (N4):
    `resolve_stale` the ones about other commits, `resolve_all` every one if the head is green. May be empty lists."""

    reason: str
    cause: Cause
    start: tuple[str, ...] = ()
    resolve_stale: tuple[str, ...] = ()
    resolve_all: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One workflow that a person asked for. `message`: what else the person wrote."""

    reason: str
    workflow: str
    overrides: Overrides
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """An answer in the thread, to whoever has access: help, or what is wrong with a command. Ours, as Markdown."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """A reply, if its thread is ours. `fault` says what is wrong with its overrides, if anything is; `message` is what
    is left without them."""

    reason: str
    message: str
    overrides: Overrides
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """Look at the votes on the note that an event is about, if it is a result of ours."""

    reason: str


Decision: TypeAlias = Ignore | Automatic | Command | Say | Continue | Recount
