"""`report_finding` (W2): a review says what it found, line by line of the diff, and is told at once where that cannot
be said. Collects and posts nothing; what was collected can be read off a journal too, so that a run that goes on in
another process loses none. Knows no forge.

    tool = ReportFinding(Diff(await forge.diffs(iid)), earlier_of(await forge.threads(iid)), head=change.head)
    …                                          # the tool is one of the run's
    findings = from_entries(journal, run_id)   # or tool.findings, if the run did not go on from another process
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from hummingbird.agent.tools.spill import Spill
from hummingbird.agent.tools.suggestions import Suggestions
from hummingbird.domain.diffs import Diff, Spot
from hummingbird.domain.errors import ArgumentsInvalid, CallDenied
from hummingbird.domain.findings import Earlier, Finding, Severity, fingerprint, repeated
from hummingbird.domain.journal import Entry, RunStarted, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.domain.limits import (
    FINDING_CHARS,
    FINDING_PATH_CHARS,
    FINDINGS,
    SUGGESTION_ABOVE,
    SUGGESTION_CHARS,
    SUGGESTION_LINES,
)
from hummingbird.domain.suggestions import Change
from hummingbird.domain.text import plain
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Output, ToolContext

NAME = "report_finding"
DESCRIPTION = f"""\
Reports one finding on one line of the merge request's diff, for people to read beside that line. Nothing is shown \
before the work is done. Call it once for each finding, the most serious first, at most {FINDINGS} times in all. A \
line that the diff does not show cannot carry one: what concerns such a line belongs into your answer. You are told if \
the line is wrong, or if the same was reported before; then leave it at that.\
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "file": {
            "type": "string",
            "minLength": 1,
            "maxLength": FINDING_PATH_CHARS,
            "description": "Path in the repository, as the diff names it.",
        },
        "line": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of the line in the file after the change; before it with side old.",
        },
        "severity": {
            "type": "string",
            "enum": [str(severity) for severity in Severity],
            "description": "blocker: must not be merged like this. major: goes wrong in real use. minor: worth "
            "mending. nit: a matter of taste.",
        },
        "text": {
            "type": "string",
            "pattern": r"\S",
            "maxLength": FINDING_CHARS,
            "description": "What goes wrong and when, and what to do about it. Markdown, a few sentences.",
        },
        "suggestion": {
            "type": "string",
            "maxLength": SUGGESTION_CHARS,
            "description": "The lines that this one line should become, whole and indented, without a fence; empty to "
            "take it away. Only where it can be applied as it is, and not with side old. It is tried with git at once.",
        },
        "first_line": {
            "type": "integer",
            "minimum": 1,
            "description": "With a suggestion that replaces several lines: the first of them; `line` is the last one. "
            f"At most {SUGGESTION_ABOVE} above it, all in the diff.",
        },
        "side": {
            "type": "string",
            "enum": ["new", "old"],
            "description": "old: the line is one that the change removes. new unless given.",
        },
    },
    "required": ["file", "line", "severity", "text"],
    "additionalProperties": False,
}
# It changes nothing outside the run, so it may run beside others and needs nobody's leave.
SPEC = ToolSpec(name=NAME, description=DESCRIPTION, schema=SCHEMA, toolset="review", trusted=True)
APPLIES = "Its suggestion was tried: git applies it."  # journals are read for it
_NORMAL_NAME = NAME.replace("_", "")


class ReportFinding:
    """A `Tool`. `earlier` are the findings that stand in the merge request already, resolved ones too. `head`: the
    commit whose diff it is, for suggestions to be tried on its files."""

    def __init__(self, diff: Diff, earlier: Iterable[Earlier] = (), *, head: str = "") -> None:
        self._diff = diff
        self._suggestions = Suggestions(head)
        self._one_by_one = asyncio.Lock()
        self._earlier = tuple(earlier)
        self._findings: list[Finding] = []
        self._own: list[Earlier] = []

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def available(self) -> bool:
        return True

    def work_at(self, spill: Spill) -> None:
        self._suggestions.work_at(spill)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """In the order in which they were reported to this very tool."""
        return tuple(self._findings)

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        """Raises ArgumentsInvalid for what can be said in another way, CallDenied for what need not be said: what
        fails is no finding, here and in the journal."""
        async with self._one_by_one:  # those that come at the same time are told what the others have said
            return await self._taken(_finding(arguments), context)

    async def _taken(self, finding: Finding, context: ToolContext) -> str:
        spot = self._checked(finding)
        code = self._diff.text(finding.path, finding.line, old=finding.old)
        there = replace(finding, path=spot.new_path)  # as threads on its lines name it
        self._new(there, code)
        said = await self._tried(there, context)
        self._findings.append(replace(finding, tried=said == APPLIES))
        self._own.append(Earlier(path=there.path, line=there.line, fingerprint=fingerprint(there, code)))
        return " ".join(filter(None, (f"Noted as finding {len(self._findings)} of at most {FINDINGS}.", said)))

    async def _tried(self, finding: Finding, context: ToolContext) -> str:
        """What is to be said of its suggestion. Raises ArgumentsInvalid for one that does not apply."""
        if finding.suggestion is None:
            return ""
        change = Change(finding.line - finding.above, finding.line, finding.suggestion)
        why = await self._suggestions.tried(finding.path, change, self._diff, context)
        if not why:
            return APPLIES
        return f"Its suggestion could not be tried, for {why}: it will be shown as code that nobody can click on."

    def _checked(self, finding: Finding) -> Spot:
        if finding.path not in self._diff:
            raise ArgumentsInvalid(
                "The diff has no such file. Name it as the diff does, from the root of the repository; what concerns "
                "a file that was not changed belongs into your answer."
            )
        spot = self._diff.spot(finding.path, finding.line, old=finding.old)
        if spot is None:
            raise ArgumentsInvalid(self._wrong_line(finding))
        if finding.suggestion is not None and finding.old:
            raise ArgumentsInvalid("A line that is removed cannot have a suggestion; report it without one.")
        if finding.suggestion is not None and finding.suggestion.count("\n") >= SUGGESTION_LINES:
            raise ArgumentsInvalid(f"A suggestion has at most {SUGGESTION_LINES} lines; report it without one.")
        self._check_range(finding)
        return spot

    def _check_range(self, finding: Finding) -> None:
        if not finding.first_line:
            return
        if finding.suggestion is None or finding.first_line > finding.line:
            raise ArgumentsInvalid("first_line goes with a suggestion, and is not below line; leave it away otherwise.")
        if finding.above > SUGGESTION_ABOVE:
            raise ArgumentsInvalid(f"A suggestion replaces at most {SUGGESTION_ABOVE} lines above the one it is on.")
        lines = range(finding.first_line, finding.line)
        if missing := [line for line in lines if self._diff.spot(finding.path, line) is None]:
            raise ArgumentsInvalid(f"Line {missing[0]} is not in the diff, so that it cannot be replaced.")

    def _wrong_line(self, finding: Finding) -> str:
        side, other = ("old", "new") if finding.old else ("new", "old")
        there = f"Line {finding.line} of the {side} side of that file is not in the diff."
        if self._diff.spot(finding.path, finding.line, old=not finding.old) is not None:
            there += f" The {other} side has a line with that number: give side {other} if you mean it."
        if near := self._diff.near(finding.path, finding.line, old=finding.old):
            return f"{there} The nearest lines that can carry a finding: {', '.join(map(str, near))}."
        return f"{there} None of the {side} side can carry a finding; say it in your answer."

    def _new(self, finding: Finding, code: str) -> None:
        if one := repeated(finding, code, self._earlier):
            end = "was resolved by somebody" if one.resolved else "is still open"
            if one.dismissed:
                raise CallDenied(
                    "Dismissed: a developer said of an earlier finding on this line that nothing will be done about "
                    "it. Do not bring it up again, in your answer neither."
                )
            raise CallDenied(
                f"Already reported: an earlier finding on this line {end}, and nothing is said twice. If this is quite "
                "another matter, say it in your answer."
            )
        if one := repeated(finding, code, self._own, in_other_words=False):
            raise CallDenied(f"Already reported: you have said this of line {one.line}. Once is enough.")
        if len(self._findings) >= FINDINGS:
            raise CallDenied(f"There are {FINDINGS} findings already, and more are not taken. Write your answer.")


def from_entries(entries: Iterable[Entry], run_id: str = "") -> tuple[Finding, ...]:
    """What was reported in a run, or in all of them, and taken: its calls, in order, each once. A call whose outcome
    nobody knows was told to the model as such, and counts only if it was made again."""
    started: dict[str, str] = {}
    found: dict[Finding, None] = {}
    within = not run_id
    for entry in entries:
        if isinstance(entry, RunStarted) and run_id:
            within = entry.run_id == run_id
        elif isinstance(entry, ToolStarted) and _means_it(entry.name):
            started[entry.call_id] = entry.arguments
        elif isinstance(entry, ToolFinished) and within and entry.outcome is ToolOutcome.OK:
            finding = _read(started.pop(entry.call_id, ""))
            if finding is not None and len(found) < FINDINGS:
                found[replace(finding, tried=entry.text.endswith(APPLIES))] = None
    return tuple(found)


def _means_it(name: str) -> bool:
    """Journals hold the name as the model wrote it, and tools are found under other spellings, too."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) == _NORMAL_NAME


def _read(arguments: str) -> Finding | None:
    try:
        return _finding(msgspec.json.decode(arguments)) if arguments else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError, KeyError, TypeError, ValueError):
        return None  # a hook may have made other arguments of them, which nobody wrote down


def _finding(arguments: Mapping[str, Any]) -> Finding:
    suggestion = arguments.get("suggestion")
    return Finding(
        path=plain(arguments["file"]).removeprefix("./"),
        line=int(arguments["line"]),
        severity=Severity(arguments["severity"]),
        text=plain(arguments["text"]).strip(),
        suggestion=None if suggestion is None else plain(suggestion).replace("\r\n", "\n").removesuffix("\n"),
        old=arguments.get("side") == "old",
        first_line=int(arguments.get("first_line") or 0),
    )
