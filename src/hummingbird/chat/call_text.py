"""Describes tool calls and their results in sentences for people, and shows diffs in colour."""

import json
import re
from collections.abc import Mapping
from typing import Any

from hummingbird.agent.tools.results import without_fence
from hummingbird.chat.screen import ARGUMENT_CHARS, Screen, Tone
from hummingbird.core.journal import ToolOutcome
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.text import printable_command, shorten_line

EDIT_TOOL, TERMINAL_TOOL = "file_edit", "terminal"
COMMAND_TOOLS = (TERMINAL_TOOL, "sandbox_exec")
_VALUE_CHARS = 60
_TOLD_SECONDS = 1.0  # from which on it is said how long a call took
_NOTE_CHARS = 2_000  # at the beginning of a result, where our own note stands
_SILENT_TOOLS = ("todo", "clarify", "skill", "delegate")
_OUTCOMES = {
    ToolOutcome.ERROR: "failed",
    ToolOutcome.MISTAKE: "the call was wrong",
    ToolOutcome.UNKNOWN: "interrupted",
    ToolOutcome.SKIPPED: "not run",
}
_SPILL_NOTE = re.compile(r"\[\w+ returned \d+ bytes")  # what the model reads above a preview
_EXIT_CODE = re.compile(r"[Ee]xit[ _]code:? (-?\d+)")


def parse_arguments(arguments: str) -> Mapping[str, Any]:
    """Return the arguments of a call as the journal has them; empty if they are not a JSON object."""
    try:
        found = decode_lenient_json(arguments)
    except InvalidJson:
        return {}
    return found if isinstance(found, dict) else {}


def describe_call(name: str, arguments: Mapping[str, Any], *, done: bool = False) -> str:
    """Return a short sentence about the call: "Read a.py", "Run pytest -q"; in the past tense if it is `done`."""

    def given(key: str, default: str = "") -> str:
        value = arguments.get(key, default)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    verb = "Ran" if done else "Run"
    match name:
        case "file_read":
            first = f" from line {given('offset')}" if arguments.get("offset", 1) != 1 else ""
            return f"Read {given('path')}{first}"
        case "file_search":
            where = f" in {given('path')}" if arguments.get("path", ".") != "." else ""
            what = f" for {given('pattern')}" if arguments.get("pattern") else f" {given('glob')}".rstrip()
            return f"{'Searched' if done else 'Search'}{what}{where}"
        case "file_edit":
            return f"{'Edited' if done else 'Edit'} {given('path')}"
        case "terminal":
            how = " in the background" if arguments.get("background") else ""
            return f"{verb}{how} {_one_line(given('command'))}".rstrip()
        case "sandbox_exec":
            return f"{verb} in the sandbox {_one_line(given('command'))}"
        case "process":
            what = {"list": "List", "read": "Read", "kill": "End"}.get(given("action"), "Process")
            return f"{what} background process{'es' if what == 'List' else ' ' + given('number')}"
        case "clarify":
            return "Asked you" if done else "Ask you"
        case "todo":
            return f"{'Changed' if done else 'Change'} the to-do list"
        case "memory":
            return f"{'Changed' if done else 'Change'} the memory"
        case "skill":
            return f"{'Loaded' if done else 'Load'} the skill {given('name')}"
        case "delegate":
            tasks = arguments.get("tasks")
            return f"{'Delegated' if done else 'Delegate'} {len(tasks) if isinstance(tasks, list) else 'some'} tasks"
        case _:
            shown = ", ".join(f"{key} {shorten_line(given(key), _VALUE_CHARS)}" for key in arguments)
            verb = "Called" if done else "Call"
            return f"{verb} {name}{' with ' + shown if shown else ''}"


def describe_result(name: str, arguments: Mapping[str, Any], text: str, outcome: ToolOutcome, seconds: float) -> str:
    """Return a sentence about a call that has ended: "Read a.py (270 B)", "Ran pytest -q: exit code 1"."""
    call = describe_call(name, arguments, done=outcome is ToolOutcome.OK)
    took = f", {seconds:.0f} s" if seconds >= _TOLD_SECONDS else ""
    if outcome is not ToolOutcome.OK:
        return f"{call}: {_OUTCOMES.get(outcome, outcome.value)}{took}"
    first = text.split("\n", 1)[0]
    if name in COMMAND_TOOLS:
        code = exit_code(text)
        return f"{call}{f': exit code {code}' if code else ''}{took}"
    if name == EDIT_TOOL:
        return f"{call} ({diff_size_text(text)}{took})"
    if name == "file_search" and (found := re.search(r"\[(.*?)\.?\]", without_fence(text).split("\n", 1)[0])):
        return f"{call}: {found[1]}"
    if name in _SILENT_TOOLS:
        return call
    return f"{call} ({_size_text(without_fence(text) if first else text)}{took})"


def exit_code(text: str) -> int | None:
    """Return the exit code that the result of a command names; None if it names none."""
    found = _EXIT_CODE.search(text[:_NOTE_CHARS])
    return int(found[1]) if found else None


def output_lines(text: str) -> list[str]:
    """Return the output of a command without our own note about it and without the fence."""
    lines = without_fence(text).rstrip().split("\n")
    if _SPILL_NOTE.match(lines[0]):
        return [line for line in lines[1:] if not line.startswith('{"saved_to":')]
    return lines[1:] if _EXIT_CODE.search(lines[0]) else lines


def _size_text(text: str) -> str:
    size = len(text.encode("utf-8", "replace"))
    return f"{size} B" if size < 1_000 else f"{size / 1_000:.1f} kB" if size < 1_000_000 else f"{size / 1e6:.1f} MB"


def full_call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the whole call for a person who is asked about it, nothing left out, in the order of the call."""
    if name in COMMAND_TOOLS and isinstance(arguments.get("command"), str):
        others = {key: value for key, value in arguments.items() if key != "command"}
        lines = [printable_command(str(arguments["command"]))]
    else:
        others, lines = dict(arguments), []
    for key, value in others.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = printable_command(text)
        lines.append(f"{key}: {shown}" if "\n" not in shown else f"{key}:\n{_indent(shown, '  ')}")
    return _indent("\n".join(lines), "    ")


def diff_size_text(diff: str) -> str:
    """Return how many lines a unified diff adds and removes: "+3 −1"."""
    lines = _diff_body(diff)
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"+{added} −{removed}"


def show_diff(screen: Screen, diff: str, most_lines: int) -> None:
    """Show the hunks of a unified diff in colour, and say how many lines are left out."""
    lines = _diff_body(diff)
    for line in lines[:most_lines]:
        tone = Tone.GOOD if line.startswith("+") else Tone.BAD if line.startswith("-") else Tone.DIM
        screen.say(f"    {line}", tone, verbatim=True)
    if len(lines) > most_lines:
        screen.say(f"    … {more_lines(len(lines) - most_lines)}", Tone.DIM)


def more_lines(count: int) -> str:
    return "1 more line" if count == 1 else f"{count:,} more lines"


def _diff_body(diff: str) -> list[str]:
    """Return the lines from the first hunk on: the two lines above it only name the file."""
    lines = without_fence(diff).rstrip("\n").split("\n")
    first = next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return lines[first:]


def _one_line(command: str) -> str:
    return shorten_line(printable_command(command), ARGUMENT_CHARS)


def _indent(text: str, by: str) -> str:
    return "\n".join(by + line if line else line for line in text.split("\n"))
