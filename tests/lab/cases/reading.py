"""Reading the cases for the tests, by means of their own: not with the lab's loader, nor with the evidence engine."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird.lab.case import LabCase, case_names, find_case

CASES = case_names()
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PORTABLE = re.compile(r"[\w .+/-]+")


@dataclass(frozen=True)
class Expected:
    """What a case says is the answer for one of its failures."""

    case: LabCase
    job: str
    log: Path
    evidence: list[str]

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass
class Changed:
    """One file of a diff. `after`: the lines of the new side by their numbers."""

    path: str
    new: bool = False
    deleted: bool = False
    after: dict[int, str] = field(default_factory=dict)
    added: set[int] = field(default_factory=set)
    removed: int = 0


def part(case: LabCase, name: str, otherwise: Any = None) -> Any:
    return case.read_json(f"gitlab/{name}.json", otherwise)


def expected(name: str) -> list[Expected]:
    """Of a case: its main failure and those that it has besides."""
    case = find_case(name)
    main = case.description["expected"]
    told = [each for each in [main, *main.get("also", [])] if each.get("evidence")]
    return [Expected(case, each["job"], _log(case, each), each["evidence"]) for each in told]


def _log(case: LabCase, told: dict[str, Any]) -> Path:
    """The log that it names, or that of the failed job of this name."""
    logs = [each["log"] for each in part(case, "jobs") if each["name"] == told["job"] and each["status"] == "failed"]
    return case.folder / str(told.get("log") or next(each for each in logs if each))


def plain_lines(text: str) -> list[str]:
    """As a terminal without colours shows them."""
    return re.split(r"[\r\n]+", _ESCAPE.sub("", text))


def changes(case: LabCase) -> list[Changed]:
    """Raises ValueError for a diff whose hunks do not hold what their headers say."""
    text = (case.folder / "gitlab/diff.patch").read_bytes().decode()
    parts = re.split(r"(?m)^(?=diff --git )", text)
    if parts[0]:
        raise ValueError(f"a diff begins with 'diff --git', this one with {parts[0][:40]!r}")
    return [_changed(each) for each in parts[1:]]


def _changed(text: str) -> Changed:
    header, *_ = re.split(r"(?m)^@@ ", text, maxsplit=1)
    names_of = dict(re.findall(r'(?m)^(---|\+\+\+) "?(?:[ab]/)?(.*?)"?\t?$', header))
    new, deleted = "\nnew file mode" in header, "\ndeleted file mode" in header
    found = Changed(names_of["---" if deleted else "+++"], new, deleted)
    for hunk in re.split(r"(?m)^(?=@@ )", text)[1:]:
        _read_hunk(found, hunk)
    return found


def _read_hunk(found: Changed, hunk: str) -> None:
    head, *lines = hunk.removesuffix("\n").split("\n")
    numbers = _HUNK.match(head)
    if numbers is None:
        raise ValueError(f"not the header of a hunk: {head!r}")
    old, new = int(numbers[2] or 1), int(numbers[4] or 1)
    at = first = int(numbers[3])
    for line in lines:
        if line[:1] in ("+", " "):
            found.after[at] = line[1:]
            found.added |= {at} if line[0] == "+" else set()
            at += 1
        elif line[:1] == "-":
            found.removed += 1
    counted = sum(line[:1] in ("-", " ") for line in lines), at - first
    if counted != (old, new):
        raise ValueError(f"{found.path}: {head!r} holds {counted} lines")


def portable(path: str) -> bool:
    """Whether a file of this name can be checked out anywhere; a hostile one stands in its diff alone."""
    return _PORTABLE.fullmatch(path) is not None


def people_named(case: LabCase) -> Iterator[str]:
    """Everybody whom the case mentions."""
    request = part(case, "merge_request")
    yield from [request["author"], *request["assignees"], *request["reviewers"]]
    yield from (each["user"] for each in [*part(case, "pipelines"), *part(case, "jobs")])
    yield from (each["author"] for each in part(case, "statuses", []))
    yield from (note["author"] for note in notes(case))


def notes(case: LabCase) -> list[dict[str, Any]]:
    return [note for discussion in part(case, "discussions") for note in discussion["notes"]]


def failures_in(case: LabCase, pipeline: int) -> list[str]:
    """What makes a pipeline fail: jobs and statuses that were not replaced and are not allowed to."""
    parts = [*part(case, "jobs"), *part(case, "statuses", [])]
    of_it = [each for each in parts if each["pipeline"] == pipeline and not each.get("retried")]
    return [each["name"] for each in of_it if each["status"] == "failed" and not each["allow_failure"]]
