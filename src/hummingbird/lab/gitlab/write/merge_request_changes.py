"""Change a merge request: edit it, push to it, approve it.

Each function changes the records, adds the system note that GitLab would add, and announces the change. The caller has
checked that the actor may do it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hummingbird.lab.gitlab import webhook_payloads
from hummingbird.lab.gitlab.records import Commit, LabMergeRequest, Raw, User, WorldChange
from hummingbird.lab.gitlab.repository import parse_diff
from hummingbird.lab.gitlab.webhook_payloads import STATE_IDS
from hummingbird.lab.gitlab.world import GitLabWorld

DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:|draft -)\s*", re.IGNORECASE)
STATES = {"close": "closed", "reopen": "opened", "merge": "merged"}


@dataclass(slots=True, kw_only=True)
class MergeRequestEdit:
    """An edit; None leaves a field as it is. `state_event` is close, reopen or merge."""

    title: str | None = None
    draft: bool | None = None
    description: str | None = None
    state_event: str | None = None
    target_branch: str | None = None
    labels: list[str] | None = None
    assignee_ids: list[int] | None = None
    reviewer_ids: list[int] | None = None


def apply_edit(world: GitLabWorld, mr: LabMergeRequest, actor: User, edit: MergeRequestEdit) -> Raw:
    """Apply an edit, announce it as one change, and return the changes as the webhook lists them."""
    changes: Raw = {}
    for step in (
        _edit_title,
        _edit_description,
        _edit_target_branch,
        _edit_labels,
        _edit_assignees,
        _edit_reviewers,
        _edit_state,
    ):
        changes.update(step(world, mr, actor, edit))
    if changes:
        before, mr.updated_at = mr.updated_at, world.next_timestamp()
        changes["updated_at"] = {
            "previous": webhook_payloads.hook_time(before),
            "current": webhook_payloads.hook_time(mr.updated_at),
        }
        event = edit.state_event if "state_id" in changes else None
        announce_change(world, mr, actor, event or "update", changes)
    return changes


def announce_change(
    world: GitLabWorld, mr: LabMergeRequest, actor: User, action: str, changes: Raw, **extra: object
) -> None:
    project = world.project_by_id(mr.project_id)
    world.announce(WorldChange("merge_request", action, mr, actor, project, mr, changes, dict(extra)))


def change_title(world: GitLabWorld, mr: LabMergeRequest, actor: User, title: str) -> None:
    apply_edit(world, mr, actor, MergeRequestEdit(title=title))


def push(
    world: GitLabWorld,
    mr: LabMergeRequest,
    actor: User,
    commits: Sequence[Commit],
    *,
    diff: str | None = None,
    since: Mapping[str, str] | None = None,
) -> None:
    """Add commits, oldest first: a new head, the note about them, and an update with `oldrev`.

    `diff` is what the merge request changes now. `since` has the differences from other commits by their ids, for
    comparisons.
    """
    old = mr.sha
    for commit in commits:
        commit.parent_ids = commit.parent_ids or ([mr.sha] if mr.sha else [])
        world.commits[commit.id] = commit
        mr.commits.insert(0, commit)
        mr.sha = commit.id
    if diff is not None:
        mr.diff_text, mr.files = diff, parse_diff(diff)
    for earlier, text in (since or {}).items():
        world.compared[earlier, mr.sha or ""] = parse_diff(text)
    listed = "".join(f"<li>{commit.id[:8]} - {commit.title}</li>" for commit in commits)
    number = f"{len(commits)} commit{'' if len(commits) == 1 else 's'}"
    world.add_system_note(mr, actor, f"added {number}\n\n<ul>{listed}</ul>\n\n[Compare with previous version]({old})")
    before, mr.updated_at = mr.updated_at, world.next_timestamp()
    changes = {
        "updated_at": {
            "previous": webhook_payloads.hook_time(before),
            "current": webhook_payloads.hook_time(mr.updated_at),
        }
    }
    announce_change(world, mr, actor, "update", changes, oldrev=old)


def approve(world: GitLabWorld, mr: LabMergeRequest, actor: User) -> bool:
    """Return False if the actor had approved already."""
    if actor.id in mr.approved_by_ids:
        return False
    mr.approved_by_ids.append(actor.id)
    world.add_system_note(mr, actor, "approved this merge request")
    announce_change(world, mr, actor, "approved", {})
    return True


def unapprove(world: GitLabWorld, mr: LabMergeRequest, actor: User) -> bool:
    """Return False if the actor had not approved."""
    if actor.id not in mr.approved_by_ids:
        return False
    mr.approved_by_ids.remove(actor.id)
    world.add_system_note(mr, actor, "unapproved this merge request")
    announce_change(world, mr, actor, "unapproved", {})
    return True


def _edit_title(world: GitLabWorld, mr: LabMergeRequest, actor: User, edit: MergeRequestEdit) -> Raw:
    """Change the title; it decides about draft, unless the edit does."""
    if edit.title is None and edit.draft is None:
        return {}
    before, drafted = mr.title, mr.draft
    mr.title = before if edit.title is None else edit.title
    mr.draft = (DRAFT.match(mr.title) is not None) if edit.draft is None else edit.draft
    changes: Raw = {}
    if mr.title != before:
        changes["title"] = {"previous": before, "current": mr.title}
    if drafted != mr.draft:
        changes["draft"] = {"previous": drafted, "current": mr.draft}
        world.add_system_note(mr, actor, f"marked this merge request as **{'draft' if mr.draft else 'ready'}**")
    elif changes:
        world.add_system_note(mr, actor, f"changed title from **{{-{before}-}}** to **{{+{mr.title}+}}**")
    return changes


def _edit_description(world: GitLabWorld, mr: LabMergeRequest, actor: User, edit: MergeRequestEdit) -> Raw:
    if edit.description is None or edit.description == mr.description:
        return {}
    before, mr.description = mr.description, edit.description
    world.add_system_note(mr, actor, "changed the description")
    return {"description": {"previous": before, "current": mr.description}}


def _edit_target_branch(world: GitLabWorld, mr: LabMergeRequest, actor: User, edit: MergeRequestEdit) -> Raw:
    if edit.target_branch is None or edit.target_branch == mr.target_branch:
        return {}
    before, mr.target_branch = mr.target_branch, edit.target_branch
    world.add_system_note(mr, actor, f"changed target branch from `{before}` to `{mr.target_branch}`")
    return {"target_branch": {"previous": before, "current": mr.target_branch}}


def _edit_labels(world: GitLabWorld, mr: LabMergeRequest, _actor: User, edit: MergeRequestEdit) -> Raw:
    # Label changes leave no note in the list of discussions.
    if edit.labels is None or edit.labels == mr.labels:
        return {}
    project = world.project_by_id(mr.project_id)
    before, mr.labels = mr.labels, list(edit.labels)
    return {
        "labels": {
            "previous": [webhook_payloads.label(project, title) for title in before],
            "current": [webhook_payloads.label(project, title) for title in mr.labels],
        }
    }


def _edit_assignees(world: GitLabWorld, mr: LabMergeRequest, actor: User, edit: MergeRequestEdit) -> Raw:
    if edit.assignee_ids is None or edit.assignee_ids == mr.assignee_ids:
        return {}
    before, mr.assignee_ids = mr.assignee_ids, list(edit.assignee_ids)
    world.add_system_note(mr, actor, _people_note(world, before, mr.assignee_ids, "assigned to", "unassigned"))
    return {"assignees": _people_change(world, before, mr.assignee_ids)}


def _edit_reviewers(world: GitLabWorld, mr: LabMergeRequest, actor: User, edit: MergeRequestEdit) -> Raw:
    if edit.reviewer_ids is None or edit.reviewer_ids == mr.reviewer_ids:
        return {}
    before, mr.reviewer_ids = mr.reviewer_ids, list(edit.reviewer_ids)
    words = "requested review from", "removed review request for"
    world.add_system_note(mr, actor, _people_note(world, before, mr.reviewer_ids, *words))
    return {"reviewers": _people_change(world, before, mr.reviewer_ids)}


def _people_note(world: GitLabWorld, before: list[int], after: list[int], added: str, removed: str) -> str:
    new, gone = [each for each in after if each not in before], [each for each in before if each not in after]
    return " and ".join([f"{word} {_mentions(world, ids)}" for word, ids in ((added, new), (removed, gone)) if ids])


def _mentions(world: GitLabWorld, ids: list[int]) -> str:
    return " and ".join(f"@{world.user(each).username}" for each in ids)


def _people_change(world: GitLabWorld, before: list[int], after: list[int]) -> Raw:
    return {
        "previous": [webhook_payloads.person(world, world.user(each)) for each in before],
        "current": [webhook_payloads.person(world, world.user(each)) for each in after],
    }


def _edit_state(world: GitLabWorld, mr: LabMergeRequest, actor: User, edit: MergeRequestEdit) -> Raw:
    wanted = STATES.get(edit.state_event or "")
    possible = {"closed": ("opened",), "opened": ("closed",), "merged": ("opened",)}
    if wanted is None or mr.state not in possible[wanted]:
        return {}
    before, mr.state = mr.state, wanted
    now = world.next_timestamp()
    mr.closed_by_id, mr.closed_at = (actor.id, now) if wanted == "closed" else (None, None)
    if wanted == "merged":
        mr.merged_by_id, mr.merged_at = actor.id, now
    return {"state_id": {"previous": STATE_IDS[before], "current": STATE_IDS[wanted]}}
