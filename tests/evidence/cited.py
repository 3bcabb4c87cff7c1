"""Entries of a session, as results of tools look in a journal: what the tests of citations check against."""

import json
from collections.abc import Sequence
from typing import Any

from hummingbird.agent.tools.results import fence_untrusted
from hummingbird.core.journal import JournalEntry, ToolFinished, ToolOutcome, ToolStarted, UserSaid

URL = "https://gitlab.example.org/acme/widgets"
ORDER = UserSaid(text=json.dumps({"project": "acme/widgets", "mr_iid": 7, "pipeline_id": 9011}))


def call(
    name: str, said: str, *, number: int = 1, outcome: ToolOutcome = ToolOutcome.OK, **arguments: Any
) -> tuple[JournalEntry, JournalEntry]:
    """A call and its result, as it stands there: nothing is put around it."""
    begun = ToolStarted(call_id=f"{name}{number}", name=name, arguments=json.dumps(arguments))
    return begun, ToolFinished(call_id=f"{name}{number}", name=name, text=said, outcome=outcome)


def whole(name: str, content: str, **arguments: Any) -> tuple[JournalEntry, JournalEntry]:
    """All of an output, in its fence."""
    return call(name, f"{fence_untrusted(content, name)}\n[event_project_url: {URL}]", **arguments)


def log(lines: Sequence[str], job_id: int = 70011) -> tuple[JournalEntry, JournalEntry]:
    return whole("gitlab_get_job_log", "\n".join(lines), job_id=job_id)


def preview(lines: Sequence[tuple[int, str]], total: int, job_id: int = 70011) -> tuple[JournalEntry, JournalEntry]:
    """Some lines of a log, with their numbers."""
    name = "gitlab_get_job_log"
    said = f"[{name} returned 99999 bytes, {total} lines. All of it is in /tmp/data/_out/x_1.log; this is a preview:]"
    shown = "\n".join(f"{number}: {text}" for number, text in lines)
    return call(name, f"{said}\n{fence_untrusted(shown, name)}\n[event_project_url: {URL}]", job_id=job_id)


def printed(output: str, command: str = "grep", number: int = 1) -> tuple[JournalEntry, JournalEntry]:
    text = f"exit code 0\nstdout:\n{fence_untrusted(output, 'sandbox_exec')}\nstderr: [no output]"
    return call("sandbox_exec", text, number=number, command=command)


def jobs(*found: tuple[int, str, str]) -> tuple[JournalEntry, JournalEntry]:
    rows = [
        {"id": number, "name": name, "status": status, "web_url": f"{URL}/-/jobs/{number}"}
        for number, name, status in found
    ]
    return whole("gitlab_get_pipeline_jobs", "\n".join(json.dumps(row, separators=(",", ":")) for row in rows))


def block(*lines: str, language: str = "") -> str:
    return "\n".join([f"```{language}", *lines, "```"])
