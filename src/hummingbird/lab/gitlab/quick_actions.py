"""Find quick actions in a note and apply them to the merge request, with the rights of their author.

A command that its author may not use, or that does not fit, is cut from the text but changes nothing.

Follows GitLab 18: a command is a line that begins with `/name` inside a paragraph, in upper or lower case; carriage
returns are deleted beforehand. Code spans are skipped by searching backticks from left to right, which is not how
Markdown finds them. This module judges whether text may be posted, so of two readings it takes the one that executes.
It shares no code with what protects notes from quick actions.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from hummingbird.lab.gitlab import access
from hummingbird.lab.gitlab.markdown_html import render_markdown
from hummingbird.lab.gitlab.records import LabMergeRequest, Raw, User, WorldChange
from hummingbird.lab.gitlab.webhook_payloads import label_id
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.merge_request_changes import DRAFT, MergeRequestEdit, apply_edit, approve, unapprove

CLOSING_TAG = re.compile(r"\n</")


class SkippedSpans:
    """Spans of a paragraph that GitLab skips in its search: code between backticks, and HTML on lines of its own.

    Both are found from left to right, each up to the first thing that closes it, in linear time.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._brackets = [found.start() for found in re.finditer(">", text)]
        self._closings: list[tuple[int, int]] = []
        for found in CLOSING_TAG.finditer(text):
            if (end := self._find_bracket(found.end())) is not None and text[end + 1 : end + 2] in ("", "\n"):
                self._closings.append((found.start(), end + 1))

    def span_end(self, start: int) -> int | None:
        """Return the end of what begins at a backtick, or at a `<` at the start of a line; None if nothing does."""
        return self._code_end(start) if self._text[start] == "`" else self._markup_end(start)

    def _code_end(self, start: int) -> int | None:
        end = self._text.find("`", start + 2)  # at least one character between them
        return end + 1 if end >= 0 else None

    def _markup_end(self, start: int) -> int | None:
        opened = self._find_bracket(start + 1)
        if opened is None or self._text[opened + 1 : opened + 2] != "\n":
            return None
        at = bisect_left(self._closings, (opened + 3, 0))  # again at least one character
        return self._closings[at][1] if at < len(self._closings) else None

    def _find_bracket(self, start: int) -> int | None:
        """Return the first `>` from there on, or None if it is right there."""
        at = bisect_left(self._brackets, start)
        found = self._brackets[at] if at < len(self._brackets) else None
        return None if found == start else found


CONTAINER_OR_PARAGRAPH = re.compile(
    r'<(?:(?P<end>/)?(?:blockquote|dl|div|ol|section|ul)\b|p data-sourcepos="(?P<first>\d+):\d+-(?P<last>\d+):)'
)


def find_paragraphs(text: str) -> list[range]:
    """Return the line numbers (from 0) of each paragraph that may contain quick actions, without repeats.

    GitLab renders the note, takes the lines of each top-level paragraph from the HTML, and searches these lines of the
    source. Its versions differ in the options of the parser and in whether raw HTML reaches that search; what any
    version takes for a paragraph is one here, so paragraphs may overlap.
    """
    line_count = text.count("\n") + 1
    found: dict[range, None] = {}
    without_raw = render_markdown(text, raw_html=False, line_numbers=True)
    with_raw = render_markdown(text, raw_html=True, line_numbers=True)
    for safe, unsafe in zip(without_raw, with_raw, strict=True):
        if unsafe.lower().count("data-sourcepos") > safe.lower().count("data-sourcepos"):
            # Raw HTML can name lines of its choice, and GitLab believes it.
            found[range(line_count)] = None
            found.update((range(number, number + 1), None) for number in range(line_count))
        # A raw end tag may close the list or the quote around a paragraph.
        nested_too = unsafe.count("</") > safe.count("</")
        for lines in _paragraphs_in(safe, nested_too=nested_too):
            found[range(lines.start, min(lines.stop, line_count))] = None
    return [lines for lines in found if lines]


def _paragraphs_in(html: str, *, nested_too: bool) -> Iterator[range]:
    depth = 0
    for tag in CONTAINER_OR_PARAGRAPH.finditer(html):
        if tag["first"] is None:
            depth += -1 if tag["end"] else 1
        elif depth == 0 or nested_too:
            yield range(int(tag["first"]) - 1, int(tag["last"]))


ALIASES = {
    "open": "reopen",
    "labels": "label",
    "remove_label": "unlabel",
    "remove_assignee": "unassign",
    "assign_reviewer": "request_review",
    "reviewer": "request_review",
    "remove_reviewer": "unassign_reviewer",
    "wip": "draft",
    "react": "award",
    "estimate_time": "estimate",
    "remove_time_estimate": "remove_estimate",
    "spent": "spend",
    "spend_time": "spend",
}
_COMMAND_NAMES_TEXT = """
add_child add_contacts add_email approve assign award blocked_by blocks board_move checkin_reminder child_of
clear_health_status clear_weight clone close confidential convert_to_ticket copy_metadata create_merge_request done
draft due duplicate epic estimate health_status invite_email iteration label link lock merge milestone move page
parent_epic promote promote_to promote_to_incident publish q ready reassign reassign_reviewer rebase relabel relate
remove_child remove_contacts remove_due_date remove_email remove_epic remove_estimate remove_iteration
remove_milestone remove_parent remove_parent_epic remove_time_spent remove_zoom reopen request_changes
request_review run_pipeline set_parent severity ship spend status submit_review subscribe summarize_diff tag
target_branch timeline title todo type unapprove unassign unassign_reviewer unlabel unlink unlock unsubscribe weight
zoom
"""
COMMAND_NAMES = frozenset(_COMMAND_NAMES_TEXT.split()) | frozenset(ALIASES)
EMOTICONS = {"shrug": "¯\\＿(ツ)＿/¯", "tableflip": "(╯°□°)╯︵ ┻━┻"}  # `/cc` does nothing and stays in the text

# GitLab's own pattern, and a more eager one: blanks before the slash, any white space after the name.
COMMAND_PATTERNS = tuple(
    re.compile(rf"`|^<|{command}(?=\n|\Z)", re.MULTILINE)
    for command in (
        r"^/(?P<name>[^\s/]+)(?: (?P<argument>[^\n]*)|[ \t\f\v]*)",
        r"^ {0,3}/(?P<name>[^\s/]+)(?:[^\S\n](?P<argument>[^\n]*))?",
    )
)


@dataclass(frozen=True, slots=True)
class QuickAction:
    """A command; `name` is GitLab's main name for it, `line` counts from 0."""

    name: str
    argument: str
    line: int


def extract_commands(text: str) -> tuple[str, list[QuickAction]]:
    """Return what is left of a note, and the commands in it, in order."""
    text = text.replace("\r", "")
    found: dict[int, QuickAction] = {}
    lines = text.split("\n")
    for numbers in find_paragraphs(text):
        for reading in COMMAND_PATTERNS:
            for command in find_commands(lines[numbers.start : numbers.stop], reading):
                number = numbers[command.line]
                found.setdefault(number, QuickAction(command.name, command.argument, number))
    return text_without_commands(lines, found), [
        found[number] for number in sorted(found) if found[number].name not in EMOTICONS
    ]


def find_commands(lines: list[str], reading: re.Pattern[str]) -> Iterator[QuickAction]:
    """Yield the commands of a paragraph from left to right; a command consumes the backticks of its line."""
    text = "\n".join(lines)
    skips = SkippedSpans(text)
    at = line = counted = 0
    while (match := reading.search(text, at)) is not None:
        if match["name"] is None:
            at = skips.span_end(match.start()) or match.end()
            continue
        at = match.end()
        line += text.count("\n", counted, match.start())
        counted = match.start()
        name = match["name"].casefold()
        if name in COMMAND_NAMES or name in EMOTICONS:
            yield QuickAction(ALIASES.get(name, name), (match["argument"] or "").strip(), line)
        else:
            at = match.start("name")


def text_without_commands(lines: list[str], found: dict[int, QuickAction]) -> str:
    """Return the note without its commands, with emoticons in place of those that stand for one."""
    kept: list[str] = []
    cut = False
    for number, line in enumerate(lines):
        command = found.get(number)
        if command is None:
            if not (cut and not line.strip()):  # the blank line after a command goes with it
                kept.append(line)
            cut = False
        elif command.name in EMOTICONS:
            kept.append(f"{command.argument} {EMOTICONS[command.name]}".strip())
        else:
            cut = True
    return "\n".join(kept).rstrip()


LABEL = re.compile(r'~?"([^"]+)"|~?([^\s~"]+)')


@dataclass(slots=True)
class QuickActionOutcome:
    """What commands did: `changes` and `summary` as the API reports them, `applied` the names of effective ones."""

    changes: Raw = field(default_factory=dict)
    summary: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)


@dataclass(slots=True)
class QuickActionContext:
    """The merge request, the author, and what the commands of one note have changed so far."""

    world: GitLabWorld
    mr: LabMergeRequest
    user: User
    head_sha: str | None
    edit: MergeRequestEdit = field(default_factory=MergeRequestEdit)
    changes: Raw = field(default_factory=dict)

    def has_access_level(self, level: int) -> bool:
        return self.world.access_level(self.user, self.world.project_by_id(self.mr.project_id)) >= level

    @property
    def can_edit(self) -> bool:
        """Whether the author of the note may change the merge request: its own author and developers may."""
        return self.has_access_level(access.DEVELOPER) or self.user.id == self.mr.author_id

    @property
    def labels(self) -> list[str]:
        return list(self.mr.labels if self.edit.labels is None else self.edit.labels)

    def parse_people(self, argument: str) -> list[int]:
        named = {word.lstrip("@").lower() for word in argument.replace(",", " ").split()}
        known = [each for each in self.world.users if each.username.lower() in named]
        return [each.id for each in known] + ([self.user.id] if "me" in named else [])


Effect = Callable[[QuickActionContext, str], str | None]


def apply_commands(
    world: GitLabWorld, mr: LabMergeRequest, user: User, commands: list[QuickAction], head_sha: str | None
) -> QuickActionOutcome:
    """Execute the commands in order, as one edit; announce each to the world's listeners, applied or not."""
    standing, outcome = QuickActionContext(world, mr, user, head_sha), QuickActionOutcome()
    for command in commands:
        effect = EFFECTS.get(command.name)
        words = effect(standing, command.argument) if effect else None
        if words is not None:
            outcome.applied.append(command.name)
        outcome.summary.append(words or f"Could not apply {command.name} command.")
        _announce_command(standing, command, words is not None)
    apply_edit(world, mr, user, standing.edit)
    outcome.changes = standing.changes
    return outcome


def _announce_command(standing: QuickActionContext, command: QuickAction, applied: bool) -> None:
    mr, world = standing.mr, standing.world
    extra = {"argument": command.argument, "applied": applied}
    project = world.project_by_id(mr.project_id)
    world.announce(WorldChange("quick_action", command.name, mr, standing.user, project, mr, extra=extra))


def _close(standing: QuickActionContext, _argument: str) -> str | None:
    return _change_state(standing, "close", "opened", "Closed this merge request.")


def _reopen(standing: QuickActionContext, _argument: str) -> str | None:
    return _change_state(standing, "reopen", "closed", "Reopened this merge request.")


def _change_state(standing: QuickActionContext, event: str, fitting: str, words: str) -> str | None:
    if not standing.can_edit or standing.mr.state != fitting:
        return None
    standing.edit.state_event = standing.changes["state_event"] = event
    return words


def _merge(standing: QuickActionContext, _argument: str) -> str | None:
    # GitLab merges only if the note names the head that its author has seen.
    mr = standing.mr
    ready = mr.state == "opened" and not mr.draft and mr.sha is not None
    if not (ready and standing.has_access_level(access.DEVELOPER) and standing.head_sha == mr.sha):
        return None
    standing.edit.state_event, standing.changes["merge"] = "merge", mr.sha
    return "Merged this merge request."


def _approve(standing: QuickActionContext, _argument: str) -> str | None:
    if not standing.has_access_level(access.DEVELOPER) or not approve(standing.world, standing.mr, standing.user):
        return None
    return "Approved the current merge request."


def _unapprove(standing: QuickActionContext, _argument: str) -> str | None:
    done = unapprove(standing.world, standing.mr, standing.user)
    return "Unapproved the current merge request." if done else None


def _title(standing: QuickActionContext, argument: str) -> str | None:
    if not standing.can_edit or not argument:
        return None
    standing.edit.title = standing.changes["title"] = argument
    return f'Changed the title to "{argument}".'


def _draft(standing: QuickActionContext, _argument: str) -> str | None:
    return _set_draft(standing, not standing.mr.draft)


def _ready(standing: QuickActionContext, _argument: str) -> str | None:
    return _set_draft(standing, False) if standing.mr.draft else None


def _set_draft(standing: QuickActionContext, draft: bool) -> str | None:
    if not standing.can_edit:
        return None
    plain = DRAFT.sub("", standing.edit.title or standing.mr.title, count=1)
    standing.edit.title, standing.edit.draft = f"Draft: {plain}" if draft else plain, draft
    standing.changes["wip_event"] = "draft" if draft else "ready"
    return f"Marked this merge request as {'a draft' if draft else 'ready'}."


def _target_branch(standing: QuickActionContext, argument: str) -> str | None:
    if not standing.can_edit or not argument:
        return None
    branch = argument.split(maxsplit=1)[0]
    standing.edit.target_branch = standing.changes["target_branch"] = branch
    return f"Set target branch to {branch}."


def _label(standing: QuickActionContext, argument: str) -> str | None:
    named = [first or second for first, second in LABEL.findall(argument)]
    return _set_labels(standing, [*standing.labels, *named], "add_label_ids", named)


def _unlabel(standing: QuickActionContext, argument: str) -> str | None:
    named = [first or second for first, second in LABEL.findall(argument)] or standing.labels
    return _set_labels(standing, [each for each in standing.labels if each not in named], "remove_label_ids", named)


def _relabel(standing: QuickActionContext, argument: str) -> str | None:
    named = [first or second for first, second in LABEL.findall(argument)]
    return _set_labels(standing, named, "label_ids", named)


def _set_labels(standing: QuickActionContext, labels: list[str], key: str, named: list[str]) -> str | None:
    if not named or not (standing.has_access_level(access.PLANNER) or standing.can_edit):
        return None
    standing.edit.labels = list(dict.fromkeys(labels))
    standing.changes[key] = [label_id(each) for each in named]
    return f"Changed labels: {' '.join(named)}."


def _people_effect(kind: str, how: str) -> Effect:
    """Return an effect on people; `kind` is assignee_ids or reviewer_ids, `how` is add, remove or replace."""

    def effect(standing: QuickActionContext, argument: str) -> str | None:
        named = standing.parse_people(argument)
        if not standing.can_edit or not (named or how == "remove"):
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


def _report_only_effect(key: str, value: object, words: str, level: int = 0) -> Effect:
    """Return an effect that is only reported, because the stand-in does not store what GitLab would change."""

    def effect(standing: QuickActionContext, argument: str) -> str | None:
        if not standing.has_access_level(level):
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
    "assign": _people_effect("assignee_ids", "add"),
    "unassign": _people_effect("assignee_ids", "remove"),
    "reassign": _people_effect("assignee_ids", "replace"),
    "request_review": _people_effect("reviewer_ids", "add"),
    "unassign_reviewer": _people_effect("reviewer_ids", "remove"),
    "reassign_reviewer": _people_effect("reviewer_ids", "replace"),
    "lock": _report_only_effect("discussion_locked", True, "Locked the discussion.", access.DEVELOPER),
    "unlock": _report_only_effect("discussion_locked", False, "Unlocked the discussion.", access.DEVELOPER),
    "todo": _report_only_effect("todo_event", "add", "Added a to-do item."),
    "done": _report_only_effect("todo_event", "done", "Marked to-do item as done."),
    "subscribe": _report_only_effect("subscription_event", "subscribe", "Subscribed to notifications."),
    "unsubscribe": _report_only_effect("subscription_event", "unsubscribe", "Unsubscribed from notifications."),
    "award": _report_only_effect("emoji_award", "", "Toggled emoji reaction."),
    "milestone": _report_only_effect("milestone_id", None, "Set the milestone.", access.PLANNER),
    "remove_milestone": _report_only_effect("milestone_id", None, "Removed the milestone.", access.PLANNER),
    "estimate": _report_only_effect("time_estimate", 0, "Set time estimate.", access.PLANNER),
    "remove_estimate": _report_only_effect("time_estimate", 0, "Removed time estimate.", access.PLANNER),
    "spend": _report_only_effect("spend_time", 0, "Added spent time.", access.PLANNER),
    "remove_time_spent": _report_only_effect("spend_time", "reset", "Removed spent time.", access.PLANNER),
    "copy_metadata": _report_only_effect("copy_metadata", "", "Copied labels and milestone.", access.PLANNER),
    "rebase": _report_only_effect("rebase", True, "Scheduled a rebase of this branch.", access.DEVELOPER),
    "submit_review": _report_only_effect("submit_review", True, "Submitted the current review."),
    "request_changes": _report_only_effect("request_changes", True, "Changes requested to the current merge request."),
    "run_pipeline": _report_only_effect("run_pipeline", True, "Started a pipeline.", access.DEVELOPER),
}
