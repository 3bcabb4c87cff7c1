"""From a change of the world to the webhook that tells it: which event, which subscription, which body.

    headers, body = event_of(world, {"kind": "pipeline", "pipeline": 9001})

Knows who is told what, not how it is sent.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.lab.gitlab.hooks import emoji as of_emoji
from hummingbird.lab.gitlab.hooks import merge_request as of_merge_request
from hummingbird.lab.gitlab.hooks import note as of_note
from hummingbird.lab.gitlab.hooks import pipeline as of_pipeline
from hummingbird.lab.gitlab.records import Change, Discussion, MergeRequest, Note, Raw
from hummingbird.lab.gitlab.store import World


@dataclass(frozen=True, slots=True)
class Release:
    """What kind of GitLab it pretends to be. `tells_internal`: from a later 18.x on (facts 1.3)."""

    version: str = "18.5.0"
    tells_internal: bool = True


OLDER = Release("18.0.0", tells_internal=False)
NEWER = Release()


@dataclass(frozen=True, slots=True)
class Event:
    """`flag`: the subscription that a hook needs for it. `name`: what X-Gitlab-Event says."""

    flag: str
    name: str
    payload: Raw
    project_id: int

    @property
    def body(self) -> bytes:
        return json.dumps(self.payload, ensure_ascii=False, separators=(",", ":")).encode()


def events(world: World, change: Change, release: Release = NEWER) -> Iterator[Event]:
    """Those that a change makes: none for system notes, draft notes, deletions and statuses themselves."""
    project_id = change.project.id
    if change.kind == "note" and change.action in ("create", "update") and change.merge_request is not None:
        yield from note_events(world, change, release)
    elif change.kind == "merge_request":
        oldrev = change.extra.get("oldrev")
        payload = of_merge_request.merge_request(
            world, change.subject, change.actor, action=change.action, changes=change.changes, oldrev=oldrev
        )
        yield Event("merge_requests_events", "Merge Request Hook", payload, project_id)
    elif change.kind == "pipeline" and world.user(change.subject.user_id).state != "blocked":
        yield Event("pipeline_events", "Pipeline Hook", of_pipeline.pipeline(world, change.subject), project_id)
    elif change.kind == "emoji":
        yield Event("emoji_events", "Emoji Hook", of_emoji.emoji(world, change), project_id)
    elif change.kind == "job":
        yield Event("job_events", "Job Hook", of_pipeline.job_event(world, change.subject), project_id)


def note_events(world: World, change: Change, release: Release) -> Iterator[Event]:
    found, mr = change.subject, change.merge_request
    if mr is None or found.system:
        return
    payload = of_note.note(
        world,
        mr,
        thread_of(mr, found),
        found,
        action=change.action,
        tells_internal=release.tells_internal,
    )
    if found.internal:
        yield Event("confidential_note_events", "Confidential Note Hook", payload, change.project.id)
    else:
        yield Event("note_events", "Note Hook", payload, change.project.id)


def thread_of(mr: MergeRequest, found: Note) -> Discussion:
    return next(each for each in mr.discussions if any(note.id == found.id for note in each.notes))


def event_of(
    world: World, declared: Mapping[str, Any], release: Release = NEWER, *, token: str | None = None
) -> tuple[dict[str, str], bytes]:
    """The event that a case declares, as GitLab would post it: headers and body.

    Raises ValueError for a declaration that names nothing in the world."""
    event = next(events(world, declared_change(world, declared), release), None)
    if event is None:
        raise ValueError(f"GitLab sends no event for {dict(declared)!r}: declare a note that is no system note.")
    key = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{world.url} {sorted(declared.items())}"))
    return headers(world, event.name, key, key, release, token=token), event.body


def declared_change(world: World, declared: Mapping[str, Any]) -> Change:
    kind = declared["kind"]
    if kind == "pipeline":
        run = world.pipeline(declared["pipeline"])
        if run is None:
            raise ValueError(f"There is no pipeline {declared['pipeline']}: name one of pipelines.json.")
        return Change("pipeline", run.status, run, world.user(run.user_id), world.project_with(run.project_id))
    mr = world.merge_request
    project = world.project_with(mr.project_id)
    if kind == "merge_request":
        actor = world.user_named(declared.get("user", "")) or world.user(mr.author_id)
        return Change(
            "merge_request",
            declared.get("action", "open"),
            mr,
            actor,
            project,
            mr,
            dict(declared.get("changes", {})),
            {"oldrev": declared["oldrev"]} if "oldrev" in declared else {},
        )
    found = next((note for note in mr.notes if note.id == declared.get("note")), None)
    if kind != "note" or found is None:
        raise ValueError(f"{dict(declared)!r} is no event: declare a pipeline, a merge_request or a note that exists.")
    return Change("note", declared.get("action", "create"), found, world.user(found.author_id), project, mr)


def headers(
    world: World, name: str, event_id: str, key: str, release: Release, *, hook_id: str = "", token: str | None = None
) -> dict[str, str]:
    """Of a delivery. `key` stays the same when it is sent again."""
    said = {
        "Content-Type": "application/json",
        "User-Agent": f"GitLab/{release.version}",
        "X-Gitlab-Event": name,
        "X-Gitlab-Event-UUID": event_id,
        "X-Gitlab-Webhook-UUID": hook_id or str(uuid.uuid5(uuid.NAMESPACE_URL, world.url)),
        "X-Gitlab-Instance": world.url,
        "Idempotency-Key": key,
    }
    return {**said, "X-Gitlab-Token": token} if token else said
