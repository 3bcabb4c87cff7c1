"""Turn a change of the world into webhook events: which event, which subscription, which body.

headers, body = event_from_declaration(world, {"kind": "pipeline", "pipeline": 9001})
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.lab.gitlab import webhook_payloads as of_emoji
from hummingbird.lab.gitlab import webhook_payloads as of_merge_request
from hummingbird.lab.gitlab import webhook_payloads as of_note
from hummingbird.lab.gitlab import webhook_payloads as of_pipeline
from hummingbird.lab.gitlab.records import Discussion, LabMergeRequest, Note, Raw, WorldChange
from hummingbird.lab.gitlab.world import GitLabWorld


@dataclass(frozen=True, slots=True)
class GitLabRelease:
    """The release that the stand-in imitates; `tells_internal`: note events have `internal`, since a later 18.x."""

    version: str = "18.5.0"
    tells_internal: bool = True


OLDER_RELEASE = GitLabRelease("18.0.0", tells_internal=False)
NEWER_RELEASE = GitLabRelease()


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event; `flag` is the subscription that a webhook needs for it, `name` the value of X-Gitlab-Event."""

    flag: str
    name: str
    payload: Raw
    project_id: int

    @property
    def body(self) -> bytes:
        return json.dumps(self.payload, ensure_ascii=False, separators=(",", ":")).encode()


def events_for_change(
    world: GitLabWorld, change: WorldChange, release: GitLabRelease = NEWER_RELEASE
) -> Iterator[HookEvent]:
    """Yield the events of a change: none for system notes, draft notes, deletions and commit statuses."""
    project_id = change.project.id
    if change.kind == "note" and change.action in ("create", "update") and change.merge_request is not None:
        yield from note_events(world, change, release)
    elif change.kind == "merge_request":
        oldrev = change.extra.get("oldrev")
        payload = of_merge_request.merge_request_event(
            world, change.subject, change.actor, action=change.action, changes=change.changes, oldrev=oldrev
        )
        yield HookEvent("merge_requests_events", "Merge Request Hook", payload, project_id)
    elif change.kind == "pipeline" and world.user(change.subject.user_id).state != "blocked":
        yield HookEvent(
            "pipeline_events", "Pipeline Hook", of_pipeline.pipeline_event(world, change.subject), project_id
        )
    elif change.kind == "emoji":
        yield HookEvent("emoji_events", "Emoji Hook", of_emoji.emoji_event(world, change), project_id)
    elif change.kind == "job":
        yield HookEvent("job_events", "Job Hook", of_pipeline.job_event(world, change.subject), project_id)


def note_events(world: GitLabWorld, change: WorldChange, release: GitLabRelease) -> Iterator[HookEvent]:
    found, mr = change.subject, change.merge_request
    if mr is None or found.system:
        return
    payload = of_note.note_event(
        world,
        mr,
        find_thread(mr, found),
        found,
        action=change.action,
        tells_internal=release.tells_internal,
    )
    if found.internal:
        yield HookEvent("confidential_note_events", "Confidential Note Hook", payload, change.project.id)
    else:
        yield HookEvent("note_events", "Note Hook", payload, change.project.id)


def find_thread(mr: LabMergeRequest, found: Note) -> Discussion:
    return next(each for each in mr.discussions if any(note.id == found.id for note in each.notes))


def event_from_declaration(
    world: GitLabWorld, declared: Mapping[str, Any], release: GitLabRelease = NEWER_RELEASE, *, token: str | None = None
) -> tuple[dict[str, str], bytes]:
    """Return headers and body of the event that a case declares, as GitLab would post it.

    Raises ValueError for a declaration that names nothing in the world.
    """
    event = next(events_for_change(world, change_from_declaration(world, declared), release), None)
    if event is None:
        raise ValueError(f"GitLab sends no event for {dict(declared)!r}: declare a note that is not a system note.")
    key = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{world.url} {sorted(declared.items())}"))
    return delivery_headers(world, event.name, key, key, release, token=token), event.body


def change_from_declaration(world: GitLabWorld, declared: Mapping[str, Any]) -> WorldChange:
    """Return the change that a case declares. Raises ValueError if it names nothing in the world."""
    kind = declared["kind"]
    if kind == "pipeline":
        run = world.find_pipeline(declared["pipeline"])
        if run is None:
            raise ValueError(f"There is no pipeline {declared['pipeline']}: name one of pipelines.json.")
        return WorldChange("pipeline", run.status, run, world.user(run.user_id), world.project_by_id(run.project_id))
    mr = world.merge_request
    project = world.project_by_id(mr.project_id)
    if kind == "merge_request":
        actor = world.find_user(declared.get("user", "")) or world.user(mr.author_id)
        return WorldChange(
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
        raise ValueError(
            f"{dict(declared)!r} is not an event: declare a pipeline, a merge_request or a note that exists."
        )
    return WorldChange("note", declared.get("action", "create"), found, world.user(found.author_id), project, mr)


def delivery_headers(
    world: GitLabWorld,
    name: str,
    event_id: str,
    key: str,
    release: GitLabRelease,
    *,
    hook_id: str = "",
    token: str | None = None,
) -> dict[str, str]:
    """Return the headers of a delivery; `key` stays the same when it is sent again."""
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
