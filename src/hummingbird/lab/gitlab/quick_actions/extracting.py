"""GitLab's quick actions: which lines of a note are commands, and what is left of the note without them.

Follows GitLab 18: a line that begins with `/name` inside a paragraph, whatever the case of the name, with carriage
returns deleted beforehand; code spans are skipped by looking for backticks from left to right, which is not how
Markdown finds them. It judges whether text may be posted, so wherever there are two readings it takes the one that
executes. Pure: knows no merge request, and shares nothing with whatever protects a note from it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hummingbird.lab.gitlab.quick_actions.paragraphs import find_paragraphs
from hummingbird.lab.gitlab.quick_actions.skips import Skips

OTHER_NAMES = {
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
_NAMES = """
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
NAMES = frozenset(_NAMES.split()) | frozenset(OTHER_NAMES)
SIGNS = {"shrug": "¯\\＿(ツ)＿/¯", "tableflip": "(╯°□°)╯︵ ┻━┻"}  # `/cc` does nothing and stays where it is

# As GitLab has it, and more eagerly: blanks before the slash, any white space after the name.
READINGS = tuple(
    re.compile(rf"`|^<|{command}(?=\n|\Z)", re.MULTILINE)
    for command in (
        r"^/(?P<name>[^\s/]+)(?: (?P<argument>[^\n]*)|[ \t\f\v]*)",
        r"^ {0,3}/(?P<name>[^\s/]+)(?:[^\S\n](?P<argument>[^\n]*))?",
    )
)


@dataclass(frozen=True, slots=True)
class Command:
    """`name` as GitLab knows it first; `line` counts from nought."""

    name: str
    argument: str
    line: int


def extracted(text: str) -> tuple[str, list[Command]]:
    """What is left of a note, and the commands in it, in their order."""
    text = text.replace("\r", "")
    found: dict[int, Command] = {}
    lines = text.split("\n")
    for numbers in find_paragraphs(text):
        for reading in READINGS:
            for command in commands_in(lines[numbers.start : numbers.stop], reading):
                number = numbers[command.line]
                found.setdefault(number, Command(command.name, command.argument, number))
    return remaining(lines, found), [found[number] for number in sorted(found) if found[number].name not in SIGNS]


def commands_in(lines: list[str], reading: re.Pattern[str]) -> Iterator[Command]:
    """Of one paragraph, from left to right: a command eats the backticks of its own line."""
    text = "\n".join(lines)
    skips = Skips(text)
    at = line = counted = 0
    while (match := reading.search(text, at)) is not None:
        if match["name"] is None:
            at = skips.end(match.start()) or match.end()
            continue
        at = match.end()
        line += text.count("\n", counted, match.start())
        counted = match.start()
        name = match["name"].casefold()
        if name in NAMES or name in SIGNS:
            yield Command(OTHER_NAMES.get(name, name), (match["argument"] or "").strip(), line)
        else:
            at = match.start("name")


def remaining(lines: list[str], found: dict[int, Command]) -> str:
    """The note without its commands, and with the signs that some stand for."""
    kept: list[str] = []
    cut = False
    for number, line in enumerate(lines):
        command = found.get(number)
        if command is None:
            if not (cut and not line.strip()):  # the blank line after a command goes with it
                kept.append(line)
            cut = False
        elif command.name in SIGNS:
            kept.append(f"{command.argument} {SIGNS[command.name]}".strip())
        else:
            cut = True
    return "\n".join(kept).rstrip()
