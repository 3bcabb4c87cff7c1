"""What travels on the queue (E2): an event as it came, then the work that somebody decided to do about it.

Plain words that any version and any process can read back. Decides nothing.
"""

import json
from enum import StrEnum
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from hummingbird.domain.text import plain


class Cause(StrEnum):
    """What made us begin. The first two are automatic."""

    PIPELINE = "pipeline"
    MERGE_REQUEST = "merge_request"
    COMMAND = "command"
    REPLY = "reply"
    PAGE = "page"  # somebody goes on with a session on the dashboard; nothing is posted

    @property
    def automatic(self) -> bool:
        return self in (Cause.PIPELINE, Cause.MERGE_REQUEST)

    @property
    def goes_on(self) -> bool:
        """With a session that there is, by a person's words."""
        return self in (Cause.REPLY, Cause.PAGE)


class Overrides(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person wants otherwise in one session (R6); empty and 0 leave it as configured."""

    model: str = ""
    max_iterations: int = 0

    def over(self, earlier: "Overrides") -> "Overrides":
        """These where they say something, the earlier ones elsewhere."""
        return Overrides(
            model=self.model or earlier.model, max_iterations=self.max_iterations or earlier.max_iterations
        )


class Arrived(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="event", tag_field="kind"):
    """The first stage: a webhook's body, or where it was put because it is too large. `identity` names the event: the
    same one for a resend. `forced`: somebody replays it, so that status and earlier runs do not matter (R7).
    `put_off` counts how often it had to wait for a forge that was away."""

    identity: str
    body: str = ""
    reference: str = ""
    at: float = 0.0
    forced: bool = False
    put_off: int = 0


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="order", tag_field="kind"):
    """The second stage. `sha` is the merge request's head that it is about. `message` is what a person wrote: behind a
    command, or as a reply. `internal`: the note that asks is. `made_at`, and what was `watched` since when, are for
    waiting until nothing changes any more (R1); `waits` counts its successors, `put_off` how often it had to wait for
    a forge that was away."""

    id: str
    session_id: str
    cause: Cause
    workflow: str
    project: str
    mr_iid: int
    sha: str = ""
    pipeline_id: int = 0
    actor_id: int = 0
    actor: str = ""
    discussion_id: str = ""
    note_id: int = 0
    internal: bool = False
    message: str = ""
    overrides: Overrides = Overrides()
    forced: bool = False
    made_at: float = 0.0
    watched: str = ""
    watched_since: float = 0.0
    waits: int = 0
    put_off: int = 0

    @property
    def checked(self) -> bool:
        """Whether earlier runs and a head that moved on speak against it (R7)."""
        return self.cause.automatic and not self.forced


Envelope: TypeAlias = Arrived | WorkOrder


def written(envelope: Envelope) -> str:
    """As the queue carries it: ASCII alone, which every queue takes. Half a character, which nobody could read back,
    becomes a question mark."""
    try:
        text = msgspec.json.encode(envelope)
    except UnicodeEncodeError:
        text = msgspec.json.encode(_whole(msgspec.to_builtins(envelope)))
    return text.decode() if text.isascii() else json.dumps(json.loads(text), separators=(",", ":"))


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(below) for name, below in value.items()}
    return plain(value) if isinstance(value, str) else value


def session_of(project: str, mr_iid: int, workflow: str, about: str) -> str:
    """The same one for every event about the same thing (R7); `about` is the head, or the note that asks."""
    return _digest("session", project.casefold(), str(mr_iid), workflow, about)


def order_of(session_id: str, identity: str) -> str:
    """The same one for every delivery of the same event."""
    return _digest("order", session_id, identity)


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
