"""What quick actions do to a merge request: with the rights of whoever wrote them.

A command that its author may not use, or that does not fit, is cut from the text all the same and changes nothing.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hummingbird.lab.gitlab import access
from hummingbird.lab.gitlab.hooks.parts import label_id
from hummingbird.lab.gitlab.quick_actions.extracting import Command
from hummingbird.lab.gitlab.records import Change, MergeRequest, Raw, User
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing.merge_request_changes import DRAFT, Edit, approve, edited, unapprove

LABEL = re.compile(r'~?"([^"]+)"|~?([^\s~"]+)')


@dataclass(slots=True)
class Outcome:
    """`changes` and `summary`: as the API tells them. `applied`: the names of those that did something."""

    changes: Raw = field(default_factory=dict)
    summary: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Standing:
    """What the commands of one note have come to so far."""

    world: World
    mr: MergeRequest
    user: User
    head_sha: str | None
    edit: Edit = field(default_factory=Edit)
    changes: Raw = field(default_factory=dict)

    def at_least(self, level: int) -> bool:
        return self.world.level(self.user, self.world.project_with(self.mr.project_id)) >= level

    @property
    def edits(self) -> bool:
        """May change the merge request: its author does, and developers."""
        return self.at_least(access.DEVELOPER) or self.user.id == self.mr.author_id

    @property
    def labels(self) -> list[str]:
        return list(self.mr.labels if self.edit.labels is None else self.edit.labels)

    def people(self, argument: str) -> list[int]:
        named = {word.lstrip("@").lower() for word in argument.replace(",", " ").split()}
        known = [each for each in self.world.users if each.username.lower() in named]
        return [each.id for each in known] + ([self.user.id] if "me" in named else [])


Effect = Callable[[Standing, str], str | None]


def carried_out(world: World, mr: MergeRequest, user: User, commands: list[Command], head_sha: str | None) -> Outcome:
    """Execute them in order, as one edit; every one is told to the world's listeners, applied or not."""
    standing, outcome = Standing(world, mr, user, head_sha), Outcome()
    for command in commands:
        effect = EFFECTS.get(command.name)
        words = effect(standing, command.argument) if effect else None
        if words is not None:
            outcome.applied.append(command.name)
        outcome.summary.append(words or f"Could not apply {command.name} command.")
        _told(standing, command, words is not None)
    edited(world, mr, user, standing.edit)
    outcome.changes = standing.changes
    return outcome


def _told(standing: Standing, command: Command, applied: bool) -> None:
    mr, world = standing.mr, standing.world
    extra = {"argument": command.argument, "applied": applied}
    project = world.project_with(mr.project_id)
    world.tell(Change("quick_action", command.name, mr, standing.user, project, mr, extra=extra))


def _close(standing: Standing, _argument: str) -> str | None:
    return _state(standing, "close", "opened", "Closed this merge request.")


def _reopen(standing: Standing, _argument: str) -> str | None:
    return _state(standing, "reopen", "closed", "Reopened this merge request.")


def _state(standing: Standing, event: str, fitting: str, words: str) -> str | None:
    if not standing.edits or standing.mr.state != fitting:
        return None
    standing.edit.state_event = standing.changes["state_event"] = event
    return words


def _merge(standing: Standing, _argument: str) -> str | None:
    # Nothing is merged unless the note names the head that its author has seen (facts 2.3).
    mr = standing.mr
    ready = mr.state == "opened" and not mr.draft and mr.sha is not None
    if not (ready and standing.at_least(access.DEVELOPER) and standing.head_sha == mr.sha):
        return None
    standing.edit.state_event, standing.changes["merge"] = "merge", mr.sha
    return "Merged this merge request."


def _approve(standing: Standing, _argument: str) -> str | None:
    if not standing.at_least(access.DEVELOPER) or not approve(standing.world, standing.mr, standing.user):
        return None
    return "Approved the current merge request."


def _unapprove(standing: Standing, _argument: str) -> str | None:
    done = unapprove(standing.world, standing.mr, standing.user)
    return "Unapproved the current merge request." if done else None


def _title(standing: Standing, argument: str) -> str | None:
    if not standing.edits or not argument:
        return None
    standing.edit.title = standing.changes["title"] = argument
    return f'Changed the title to "{argument}".'


def _draft(standing: Standing, _argument: str) -> str | None:
    return _drafted(standing, not standing.mr.draft)


def _ready(standing: Standing, _argument: str) -> str | None:
    return _drafted(standing, False) if standing.mr.draft else None


def _drafted(standing: Standing, draft: bool) -> str | None:
    if not standing.edits:
        return None
    plain = DRAFT.sub("", standing.edit.title or standing.mr.title, count=1)
    standing.edit.title, standing.edit.draft = f"Draft: {plain}" if draft else plain, draft
    standing.changes["wip_event"] = "draft" if draft else "ready"
    return f"Marked this merge request as {'a draft' if draft else 'ready'}."


def _target_branch(standing: Standing, argument: str) -> str | None:
    if not standing.edits or not argument:
        return None
    branch = argument.split(maxsplit=1)[0]
    standing.edit.target_branch = standing.changes["target_branch"] = branch
    return f"Set target branch to {branch}."


def _label(standing: Standing, argument: str) -> str | None:
    named = [first or second for first, second in LABEL.findall(argument)]
    return _labelled(standing, [*standing.labels, *named], "add_label_ids", named)


def _unlabel(standing: Standing, argument: str) -> str | None:
    named = [first or second for first, second in LABEL.findall(argument)] or standing.labels
    return _labelled(standing, [each for each in standing.labels if each not in named], "remove_label_ids", named)


def _relabel(standing: Standing, argument: str) -> str | None:
    named = [first or second for first, second in LABEL.findall(argument)]
    return _labelled(standing, named, "label_ids", named)


def _labelled(standing: Standing, labels: list[str], key: str, named: list[str]) -> str | None:
    if not named or not (standing.at_least(access.PLANNER) or standing.edits):
        return None
    standing.edit.labels = list(dict.fromkeys(labels))
    standing.changes[key] = [label_id(each) for each in named]
    return f"Changed labels: {' '.join(named)}."


def _people(kind: str, how: str) -> Effect:
    """`kind`: assignee_ids or reviewer_ids. `how`: add, remove or replace."""

    def effect(standing: Standing, argument: str) -> str | None:
        named = standing.people(argument)
        if not standing.edits or not (named or how == "remove"):
            return None
        current = getattr(standing.edit, kind)
        current = list(getattr(standing.mr, kind) if current is None else current)
        gone = named or current
        after = {
            "add": [*current, *named],
            "remove": [each for each in current if each not in gone],
            "replace": named,
        }[how]
        setattr(standing.edit, kind, list(dict.fromkeys(after)))
        standing.changes[kind] = getattr(standing.edit, kind)
        return f"Changed {kind.removesuffix('_ids')}s."

    return effect


def _noted(key: str, value: object, words: str, level: int = 0) -> Effect:
    """Something that this world does not keep, but GitLab would do."""

    def effect(standing: Standing, argument: str) -> str | None:
        if not standing.at_least(level):
            return None
        standing.changes[key] = argument or value
        return words

    return effect


EFFECTS: Mapping[str, Effect] = {
    "close": _close,
    "reopen": _reopen,
    "merge": _merge,
    "ship": _merge,
    "approve": _approve,
    "unapprove": _unapprove,
    "title": _title,
    "draft": _draft,
    "ready": _ready,
    "target_branch": _target_branch,
    "label": _label,
    "unlabel": _unlabel,
    "relabel": _relabel,
    "assign": _people("assignee_ids", "add"),
    "unassign": _people("assignee_ids", "remove"),
    "reassign": _people("assignee_ids", "replace"),
    "request_review": _people("reviewer_ids", "add"),
    "unassign_reviewer": _people("reviewer_ids", "remove"),
    "reassign_reviewer": _people("reviewer_ids", "replace"),
    "lock": _noted("discussion_locked", True, "Locked the discussion.", access.DEVELOPER),
    "unlock": _noted("discussion_locked", False, "Unlocked the discussion.", access.DEVELOPER),
    "todo": _noted("todo_event", "add", "Added a to-do item."),
    "done": _noted("todo_event", "done", "Marked to-do item as done."),
    "subscribe": _noted("subscription_event", "subscribe", "Subscribed to notifications."),
    "unsubscribe": _noted("subscription_event", "unsubscribe", "Unsubscribed from notifications."),
    "award": _noted("emoji_award", "", "Toggled emoji reaction."),
    "milestone": _noted("milestone_id", None, "Set the milestone.", access.PLANNER),
    "remove_milestone": _noted("milestone_id", None, "Removed the milestone.", access.PLANNER),
    "estimate": _noted("time_estimate", 0, "Set time estimate.", access.PLANNER),
    "remove_estimate": _noted("time_estimate", 0, "Removed time estimate.", access.PLANNER),
    "spend": _noted("spend_time", 0, "Added spent time.", access.PLANNER),
    "remove_time_spent": _noted("spend_time", "reset", "Removed spent time.", access.PLANNER),
    "copy_metadata": _noted("copy_metadata", "", "Copied labels and milestone.", access.PLANNER),
    "rebase": _noted("rebase", True, "Scheduled a rebase of this branch.", access.DEVELOPER),
    "submit_review": _noted("submit_review", True, "Submitted the current review."),
    "request_changes": _noted("request_changes", True, "Changes requested to the current merge request."),
    "run_pipeline": _noted("run_pipeline", True, "Started a pipeline.", access.DEVELOPER),
}
