"""What can happen to a merge request, whoever asks for it: edited, pushed to, approved.

Each changes the records, leaves the note that GitLab would leave, and tells it. Whether the actor may is not asked
here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hummingbird.lab.gitlab.diffs import files_of
from hummingbird.lab.gitlab.hooks import parts
from hummingbird.lab.gitlab.hooks.merge_request import STATE_IDS
from hummingbird.lab.gitlab.records import Change, Commit, MergeRequest, Raw, User
from hummingbird.lab.gitlab.store import World

DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:|draft -)\s*", re.IGNORECASE)
STATES = {"close": "closed", "reopen": "opened", "merge": "merged"}


@dataclass(slots=True, kw_only=True)
class Edit:
    """What is to become of it; None leaves a thing as it is. `state_event`: close, reopen or merge."""

    title: str | None = None
    draft: bool | None = None
    description: str | None = None
    state_event: str | None = None
    target_branch: str | None = None
    labels: list[str] | None = None
    assignee_ids: list[int] | None = None
    reviewer_ids: list[int] | None = None


def edited(world: World, mr: MergeRequest, actor: User, edit: Edit) -> Raw:
    """Carry an edit out and tell it as one change. What changed, as the hook lists it; empty if nothing did."""
    changes: Raw = {}
    for step in (_titled, _described, _targeted, _labelled, _assigned, _reviewed, _stated):
        changes.update(step(world, mr, actor, edit))
    if changes:
        before, mr.updated_at = mr.updated_at, world.stamp()
        changes["updated_at"] = {"previous": parts.spoken(before), "current": parts.spoken(mr.updated_at)}
        event = edit.state_event if "state_id" in changes else None
        tell(world, mr, actor, event or "update", changes)
    return changes


def tell(world: World, mr: MergeRequest, actor: User, action: str, changes: Raw, **extra: object) -> None:
    project = world.project_with(mr.project_id)
    world.tell(Change("merge_request", action, mr, actor, project, mr, changes, dict(extra)))


def change_title(world: World, mr: MergeRequest, actor: User, title: str) -> None:
    edited(world, mr, actor, Edit(title=title))


def push(
    world: World,
    mr: MergeRequest,
    actor: User,
    commits: Sequence[Commit],
    *,
    diff: str | None = None,
    since: Mapping[str, str] | None = None,
) -> None:
    """New commits, oldest first: another head, the note about them, an update with `oldrev`. `diff`: what the merge
    request changes now. `since`: what differs from other commits, by their ids, for whoever compares them."""
    old = mr.sha
    for commit in commits:
        commit.parent_ids = commit.parent_ids or ([mr.sha] if mr.sha else [])
        world.commits[commit.id] = commit
        mr.commits.insert(0, commit)
        mr.sha = commit.id
    if diff is not None:
        mr.diff_text, mr.files = diff, files_of(diff)
    for earlier, text in (since or {}).items():
        world.compared[earlier, mr.sha or ""] = files_of(text)
    listed = "".join(f"<li>{commit.id[:8]} - {commit.title}</li>" for commit in commits)
    number = f"{len(commits)} commit{'' if len(commits) == 1 else 's'}"
    world.add_system_note(mr, actor, f"added {number}\n\n<ul>{listed}</ul>\n\n[Compare with previous version]({old})")
    before, mr.updated_at = mr.updated_at, world.stamp()
    changes = {"updated_at": {"previous": parts.spoken(before), "current": parts.spoken(mr.updated_at)}}
    tell(world, mr, actor, "update", changes, oldrev=old)


def approve(world: World, mr: MergeRequest, actor: User) -> bool:
    if actor.id in mr.approved_by_ids:
        return False
    mr.approved_by_ids.append(actor.id)
    world.add_system_note(mr, actor, "approved this merge request")
    tell(world, mr, actor, "approved", {})
    return True


def unapprove(world: World, mr: MergeRequest, actor: User) -> bool:
    if actor.id not in mr.approved_by_ids:
        return False
    mr.approved_by_ids.remove(actor.id)
    world.add_system_note(mr, actor, "unapproved this merge request")
    tell(world, mr, actor, "unapproved", {})
    return True


def _titled(world: World, mr: MergeRequest, actor: User, edit: Edit) -> Raw:
    """Whether it is a draft is read from its title, unless the edit says so itself."""
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


def _described(world: World, mr: MergeRequest, actor: User, edit: Edit) -> Raw:
    if edit.description is None or edit.description == mr.description:
        return {}
    before, mr.description = mr.description, edit.description
    world.add_system_note(mr, actor, "changed the description")
    return {"description": {"previous": before, "current": mr.description}}


def _targeted(world: World, mr: MergeRequest, actor: User, edit: Edit) -> Raw:
    if edit.target_branch is None or edit.target_branch == mr.target_branch:
        return {}
    before, mr.target_branch = mr.target_branch, edit.target_branch
    world.add_system_note(mr, actor, f"changed target branch from `{before}` to `{mr.target_branch}`")
    return {"target_branch": {"previous": before, "current": mr.target_branch}}


def _labelled(world: World, mr: MergeRequest, _actor: User, edit: Edit) -> Raw:
    # labels leave no note in the list of discussions (facts 2.3)
    if edit.labels is None or edit.labels == mr.labels:
        return {}
    project = world.project_with(mr.project_id)
    before, mr.labels = mr.labels, list(edit.labels)
    return {
        "labels": {
            "previous": [parts.label(project, title) for title in before],
            "current": [parts.label(project, title) for title in mr.labels],
        }
    }


def _assigned(world: World, mr: MergeRequest, actor: User, edit: Edit) -> Raw:
    if edit.assignee_ids is None or edit.assignee_ids == mr.assignee_ids:
        return {}
    before, mr.assignee_ids = mr.assignee_ids, list(edit.assignee_ids)
    world.add_system_note(mr, actor, _people(world, before, mr.assignee_ids, "assigned to", "unassigned"))
    return {"assignees": _both(world, before, mr.assignee_ids)}


def _reviewed(world: World, mr: MergeRequest, actor: User, edit: Edit) -> Raw:
    if edit.reviewer_ids is None or edit.reviewer_ids == mr.reviewer_ids:
        return {}
    before, mr.reviewer_ids = mr.reviewer_ids, list(edit.reviewer_ids)
    words = "requested review from", "removed review request for"
    world.add_system_note(mr, actor, _people(world, before, mr.reviewer_ids, *words))
    return {"reviewers": _both(world, before, mr.reviewer_ids)}


def _people(world: World, before: list[int], after: list[int], added: str, removed: str) -> str:
    new, gone = [each for each in after if each not in before], [each for each in before if each not in after]
    return " and ".join([f"{word} {_names(world, ids)}" for word, ids in ((added, new), (removed, gone)) if ids])


def _names(world: World, ids: list[int]) -> str:
    return " and ".join(f"@{world.user(each).username}" for each in ids)


def _both(world: World, before: list[int], after: list[int]) -> Raw:
    return {
        "previous": [parts.person(world, world.user(each)) for each in before],
        "current": [parts.person(world, world.user(each)) for each in after],
    }


def _stated(world: World, mr: MergeRequest, actor: User, edit: Edit) -> Raw:
    wanted = STATES.get(edit.state_event or "")
    possible = {"closed": ("opened",), "opened": ("closed",), "merged": ("opened",)}
    if wanted is None or mr.state not in possible[wanted]:
        return {}
    before, mr.state = mr.state, wanted
    now = world.stamp()
    mr.closed_by_id, mr.closed_at = (actor.id, now) if wanted == "closed" else (None, None)
    if wanted == "merged":
        mr.merged_by_id, mr.merged_at = actor.id, now
    return {"state_id": {"previous": STATE_IDS[before], "current": STATE_IDS[wanted]}}
