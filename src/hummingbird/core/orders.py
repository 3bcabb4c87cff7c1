"""Define what travels on the queue: events as they arrived, and the work orders made from them.

Both are plain JSON that any version and any process can read back.
"""

import json
from enum import StrEnum
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from hummingbird.core.text import replace_surrogates


class OrderCause(StrEnum):
    """What caused an order; the first two are automatic."""

    PIPELINE = "pipeline"
    MERGE_REQUEST = "merge_request"
    COMMAND = "command"
    REPLY = "reply"
    PAGE = "page"  # a person continues a session on the dashboard; nothing is posted

    @property
    def is_automatic(self) -> bool:
        """Tell whether no person asked for the order."""
        return self in (OrderCause.PIPELINE, OrderCause.MERGE_REQUEST)

    @property
    def continues_session(self) -> bool:
        """Tell whether a person's words continue an existing session."""
        return self in (OrderCause.REPLY, OrderCause.PAGE)


class RunOverrides(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings that a person overrides for one session; empty and 0 keep the configured value."""

    model: str = ""
    max_iterations: int = 0

    def merge_over(self, earlier: "RunOverrides") -> "RunOverrides":
        """Return these overrides, with the earlier ones where these are empty."""
        return RunOverrides(
            model=self.model or earlier.model, max_iterations=self.max_iterations or earlier.max_iterations
        )


class EventEnvelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="event", tag_field="kind"):
    """The first stage: a webhook's body, or a reference to where a large body is stored.

    `identity` names the event and is the same for a redelivery. `forced`: a person replays the event, so its status and
    earlier runs do not matter. `put_off` counts how often it waited for an unavailable GitLab, `tries` the failed tries
    that messages before this one have used up.
    """

    identity: str
    body: str = ""
    reference: str = ""
    at: float = 0.0
    forced: bool = False
    put_off: int = 0
    tries: int = 0


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="order", tag_field="kind"):
    """The second stage: the work to do for an event.

    `sha` is the head of the merge request that the order is about. `message` is what a person wrote, behind a command
    or as a reply. `internal`: the note that asked is internal. `made_at`, `watched` and `watched_since` serve to wait
    until the watched statuses stop changing; `waits` counts the successors of the order, `put_off` how often it waited
    for an unavailable GitLab, `tries` the failed tries that messages before this one have used up.
    """

    id: str
    session_id: str
    cause: OrderCause
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
    overrides: RunOverrides = RunOverrides()
    forced: bool = False
    made_at: float = 0.0
    watched: str = ""
    watched_since: float = 0.0
    waits: int = 0
    put_off: int = 0
    tries: int = 0

    @property
    def needs_check(self) -> bool:
        """Tell whether earlier runs, or a head that has moved on, may make this order obsolete."""
        return self.cause.is_automatic and not self.forced


QueueEnvelope: TypeAlias = EventEnvelope | WorkOrder


def encode_envelope(envelope: QueueEnvelope) -> str:
    """Encode an envelope as the queue carries it: ASCII only, which every queue takes.

    A lone surrogate, which nobody could read back, becomes a question mark.
    """
    try:
        text = msgspec.json.encode(envelope)
    except UnicodeEncodeError:
        text = msgspec.json.encode(_replace_all_surrogates(msgspec.to_builtins(envelope)))
    return text.decode() if text.isascii() else json.dumps(json.loads(text), separators=(",", ":"))


def _replace_all_surrogates(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_all_surrogates(below) for name, below in value.items()}
    return replace_surrogates(value) if isinstance(value, str) else value


def session_id_for(project: str, mr_iid: int, workflow: str, about: str) -> str:
    """Return the session id, the same for every event about the same subject.

    `about` is the head commit, or the note that asked.
    """
    return _digest("session", project.casefold(), str(mr_iid), workflow, about)


def order_id_for(session_id: str, identity: str) -> str:
    """Return the order id, the same for every delivery of the same event."""
    return _digest("order", session_id, identity)


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
