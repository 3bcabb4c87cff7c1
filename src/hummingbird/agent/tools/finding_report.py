"""The tool `report_finding`: a review reports each finding on a line of the diff, and is told at once if it cannot.

    tool = ReportFindingTool(Diff(await forge.diffs(iid)), earlier_findings(await forge.threads(iid)), head=change.head)
    …                                                   # a run whose tools include this one
    findings = findings_from_entries(journal, run_id)   # or tool.findings, if the run stayed in one process

The tool collects findings and posts nothing. They can be read from the journal too, so that a run that continues in
another process loses none.
"""

import asyncio
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from hummingbird.agent.interrupts import run_within
from hummingbird.agent.tools.spill import SpillShape
from hummingbird.core.diffs import Diff, DiffPosition
from hummingbird.core.errors import ArgumentsInvalid, CallDenied, CommandFailed, HummingbirdError
from hummingbird.core.findings import (
    PostedFinding,
    ReviewFinding,
    Severity,
    SuggestedEdit,
    apply_edits,
    build_patch,
    edit_problem,
    file_problem,
    find_repeated,
    finding_fingerprint,
    split_lines,
    strip_line_end,
)
from hummingbird.core.journal import JournalEntry, RunStarted, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.json_codec import decode_json
from hummingbird.core.limits import (
    FINDING_CHARS,
    FINDING_PATH_CHARS,
    FINDINGS,
    SUGGESTION_ABOVE,
    SUGGESTION_CHARS,
    SUGGESTION_FILE_BYTES,
    SUGGESTION_LINES,
    SUGGESTION_TRY_S,
)
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT
from hummingbird.core.protocols.tools import ByteStream, ToolContext, ToolOutput
from hummingbird.core.text import replace_surrogates
from hummingbird.core.tool_spec import ToolSpec

SOURCE = "gitlab_get_file_at_ref"
_FILE, _PATCH = "file", "patch"
_NO_GIT = 77
_OPTIONS = "--whitespace=nowarn"
# Ignore a repository that the model may have made around the folder, and everybody's git settings.
_GIT = (
    f"GIT_CEILING_DIRECTORIES={SANDBOX_ROOT} GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null "
    "HOME=/nonexistent git apply"
)


class SuggestionUntested(Exception):
    """Says, as the end of a sentence, why a suggestion could not be tested."""


class SuggestionTester:
    """Test the suggestions of one review with git before anybody can apply them with a click.

    The file at the head and the patch are untrusted, so git runs in the session's sandbox. All accepted suggestions are
    tested together, so that two that change the same lines are noticed. A suggestion that cannot be tested is shown as
    code. `head` is the commit whose diff is reviewed; empty if not known.
    """

    def __init__(self, head: str = "") -> None:
        self._head = head
        self._spill: SpillShape | None = None
        self._files: dict[str, bytes] = {}
        self._taken: dict[str, list[SuggestedEdit]] = {}

    def use_sandbox(self, spill: SpillShape) -> None:
        self._spill = spill

    async def test(self, path: str, change: SuggestedEdit, diff: Diff, context: ToolContext) -> str:
        """Return an empty string if the suggestion applies, else why that is not known; call it one at a time.

        A suggestion that applies is part of later tests. Raises ArgumentsInvalid if it does not apply and the model can
        do something about it.
        """
        try:
            await run_within(SUGGESTION_TRY_S, self._check_applies(path, change, diff, context))
        except SuggestionUntested as error:
            return str(error)
        except TimeoutError:
            return "it took too long"
        self._taken.setdefault(path, []).append(change)
        return ""

    async def _check_applies(self, path: str, change: SuggestedEdit, diff: Diff, context: ToolContext) -> None:
        if self._spill is None or not self._head:
            raise SuggestionUntested("there is no sandbox")
        content = self._files.get(path) or await self._fetch_file(path, context, self._spill)
        self._files[path] = content
        if why := file_problem(content):
            raise SuggestionUntested(why)
        if not _matches_diff(content, change, path, diff):
            raise SuggestionUntested("the file has changed meanwhile")
        if why := edit_problem(content, change):
            raise _not_applicable_error(why)
        taken = self._taken.get(path, [])
        if met := next((one for one in taken if one.overlaps(change)), None):
            raise _not_applicable_error(
                f"an earlier suggestion of yours changes line {met.last} already, and both cannot be applied"
            )
        if not await self._git_applies(content, [*taken, change], self._spill):
            raise _not_applicable_error("git refuses it")

    async def _fetch_file(self, path: str, context: ToolContext, spill: SpillShape) -> bytes:
        try:
            content = await _read_file(await context.call(SOURCE, {"path": path, "ref": self._head}))
        except HummingbirdError as error:
            raise SuggestionUntested("the file could not be read") from error
        if len(content) > SUGGESTION_FILE_BYTES:
            raise SuggestionUntested("the file is too large")
        masking = spill.secrets.open_stream()
        if masking.end(content) != content:  # secrets must not get into a sandbox
            raise SuggestionUntested("the file holds a credential")
        return content

    async def _git_applies(self, content: bytes, changes: Sequence[SuggestedEdit], spill: SpillShape) -> bool:
        """Return whether git can apply the suggestion, and the file then has the intended content."""
        try:
            async with spill.sandbox.use() as sandbox:
                folder = f"{SANDBOX_ROOT}/.tried"
                await sandbox.write_file(f"{folder}/{_FILE}", content)
                await sandbox.write_file(f"{folder}/{_PATCH}", build_patch(content, changes, _FILE))
                done = await sandbox.exec(_git_command(folder))
        except HummingbirdError as error:
            raise SuggestionUntested("there is no sandbox") from error
        if done.exit_code == _NO_GIT:
            raise SuggestionUntested("there is no git in the sandbox")
        said = done.stdout.split()[:1]
        return done.exit_code == 0 and said == [sha256(apply_edits(content, changes)).hexdigest().encode()]


def _matches_diff(content: bytes, change: SuggestedEdit, path: str, diff: Diff) -> bool:
    """Return whether the lines to be replaced are those of the diff: the fetched file may be of another commit."""
    lines = split_lines(content)
    numbers = range(change.first, min(change.last, len(lines)) + 1)
    return all(strip_line_end(lines[number - 1]).decode() == diff.line_text(path, number) for number in numbers)


def _git_command(folder: str) -> str:
    tries = f"{_GIT} --check {_OPTIONS} {_PATCH} && {_GIT} {_OPTIONS} {_PATCH} && sha256sum {_FILE}"
    return (
        f"command -v git >/dev/null 2>&1 || exit {_NO_GIT}; cd {shlex.quote(folder)} || exit 1; "
        f"({tries}) 2>/dev/null; status=$?; cd / && rm -rf {shlex.quote(folder)}; exit $status"
    )


async def _read_file(output: ToolOutput) -> bytes:
    """Return the content, at most one byte more than is accepted.

    Raises what the source raises, and CommandFailed if it is not a file.
    """
    if not isinstance(output, ByteStream):
        raise CommandFailed("That is not a text file.")
    content = bytearray()
    async for chunk in output.chunks:
        content += chunk
        if len(content) > SUGGESTION_FILE_BYTES:
            break
    return bytes(content[: SUGGESTION_FILE_BYTES + 1])


def _not_applicable_error(why: str) -> ArgumentsInvalid:
    return ArgumentsInvalid(
        f"The suggestion cannot be applied as it is: {why}. Nothing was noted. Report the finding again without a "
        "suggestion, or with one that fits."
    )


NAME = "report_finding"
DESCRIPTION = f"""\
Reports one finding on one line of the merge request's diff, for people to read beside that line. Nothing is shown \
before the work is done. Call it once for each finding, the most serious first, at most {FINDINGS} times in all. A \
line that the diff does not show cannot carry one: what concerns such a line belongs in your answer. You are told if \
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
            "fixing. nit: a matter of taste.",
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
# It changes nothing outside the run, so it may run beside other tools and needs no permission.
SPEC = ToolSpec(name=NAME, description=DESCRIPTION, schema=SCHEMA, toolset="review", trusted=True)
APPLIES = "Its suggestion was tried: git applies it."  # findings_from_entries looks for it in the journal
_NORMAL_NAME = NAME.replace("_", "")


class ReportFindingTool:
    """The tool of one review.

    `earlier` are the findings that the merge request has already, including resolved ones. `head` is the commit of the
    diff, whose files suggestions are tested on.
    """

    def __init__(self, diff: Diff, earlier: Iterable[PostedFinding] = (), *, head: str = "") -> None:
        self._diff = diff
        self._suggestions = SuggestionTester(head)
        self._one_by_one = asyncio.Lock()
        self._earlier = tuple(earlier)
        self._findings: list[ReviewFinding] = []
        self._own: list[PostedFinding] = []

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def is_available(self) -> bool:
        return True

    def use_sandbox(self, spill: SpillShape) -> None:
        self._suggestions.use_sandbox(spill)

    @property
    def findings(self) -> tuple[ReviewFinding, ...]:
        """Return the findings in the order in which they were reported to this very tool."""
        return tuple(self._findings)

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Accept a finding.

        Raises ArgumentsInvalid for a finding that the model can correct, and CallDenied for one that is not needed. A
        call that fails is no finding, here and in the journal.
        """
        async with self._one_by_one:  # so that simultaneous calls see each other's findings
            return await self._accept(_build_finding(arguments), context)

    async def _accept(self, finding: ReviewFinding, context: ToolContext) -> str:
        spot = self._check_line(finding)
        code = self._diff.line_text(finding.path, finding.line, old=finding.old)
        there = replace(finding, path=spot.new_path)  # the path that threads on its lines use
        self._check_not_reported(there, code)
        said = await self._test_suggestion(there, context)
        self._findings.append(replace(finding, applies_cleanly=said == APPLIES))
        self._own.append(PostedFinding(path=there.path, line=there.line, fingerprint=finding_fingerprint(there, code)))
        return " ".join(filter(None, (f"Noted as finding {len(self._findings)} of at most {FINDINGS}.", said)))

    async def _test_suggestion(self, finding: ReviewFinding, context: ToolContext) -> str:
        """Return what to say about the suggestion.

        Raises ArgumentsInvalid for one that does not apply.
        """
        if finding.suggestion is None:
            return ""
        change = SuggestedEdit(finding.line - finding.lines_above, finding.line, finding.suggestion)
        why = await self._suggestions.test(finding.path, change, self._diff, context)
        if not why:
            return APPLIES
        return f"Its suggestion could not be tried, for {why}: it will be shown as code that nobody can click on."

    def _check_line(self, finding: ReviewFinding) -> DiffPosition:
        if finding.path not in self._diff:
            raise ArgumentsInvalid(
                "The diff has no such file. Name it as the diff does, from the root of the repository; what concerns "
                "a file that was not changed belongs in your answer."
            )
        spot = self._diff.find_position(finding.path, finding.line, old=finding.old)
        if spot is None:
            raise ArgumentsInvalid(self._wrong_line_message(finding))
        if finding.suggestion is not None and finding.old:
            raise ArgumentsInvalid("A line that is removed cannot have a suggestion; report it without one.")
        if finding.suggestion is not None and finding.suggestion.count("\n") >= SUGGESTION_LINES:
            raise ArgumentsInvalid(f"A suggestion has at most {SUGGESTION_LINES} lines; report it without one.")
        self._check_range(finding)
        return spot

    def _check_range(self, finding: ReviewFinding) -> None:
        if not finding.first_line:
            return
        if finding.suggestion is None or finding.first_line > finding.line:
            raise ArgumentsInvalid("first_line goes with a suggestion, and is not below line; leave it out otherwise.")
        if finding.lines_above > SUGGESTION_ABOVE:
            raise ArgumentsInvalid(f"A suggestion replaces at most {SUGGESTION_ABOVE} lines above the one it is on.")
        lines = range(finding.first_line, finding.line)
        if missing := [line for line in lines if self._diff.find_position(finding.path, line) is None]:
            raise ArgumentsInvalid(f"Line {missing[0]} is not in the diff, so it cannot be replaced.")

    def _wrong_line_message(self, finding: ReviewFinding) -> str:
        side, other = ("old", "new") if finding.old else ("new", "old")
        there = f"Line {finding.line} of the {side} side of that file is not in the diff."
        if self._diff.find_position(finding.path, finding.line, old=not finding.old) is not None:
            there += f" The {other} side has a line with that number: give side {other} if you mean it."
        if near := self._diff.nearest_lines(finding.path, finding.line, old=finding.old):
            return f"{there} The nearest lines that can carry a finding: {', '.join(map(str, near))}."
        return f"{there} None of the {side} side can carry a finding; say it in your answer."

    def _check_not_reported(self, finding: ReviewFinding, code: str) -> None:
        if one := find_repeated(finding, code, self._earlier):
            end = "was resolved by somebody" if one.resolved else "is still open"
            if one.dismissed:
                raise CallDenied(
                    "Dismissed: a developer has decided to do nothing about an earlier finding on this line. "
                    "Do not bring it up again, not even in your answer."
                )
            raise CallDenied(
                f"Already reported: an earlier finding on this line {end}, and each is reported once. If this is a "
                "different matter, say so in your answer."
            )
        if one := find_repeated(finding, code, self._own, in_other_words=False):
            raise CallDenied(f"Already reported: you have said this about line {one.line}. Once is enough.")
        if len(self._findings) >= FINDINGS:
            raise CallDenied(f"There are {FINDINGS} findings already, and more are not taken. Write your answer.")


def findings_from_entries(entries: Iterable[JournalEntry], run_id: str = "") -> tuple[ReviewFinding, ...]:
    """Return the accepted findings of a run, or of all runs, in order and each once.

    A call with an unknown outcome was reported to the model as such, and counts only if it was made again.
    """
    started: dict[str, str] = {}
    found: dict[ReviewFinding, None] = {}
    within = not run_id
    for entry in entries:
        if isinstance(entry, RunStarted) and run_id:
            within = entry.run_id == run_id
        elif isinstance(entry, ToolStarted) and _is_this_tool(entry.name):
            started[entry.call_id] = entry.arguments
        elif isinstance(entry, ToolFinished) and within and entry.outcome is ToolOutcome.OK:
            finding = _parse_finding(started.pop(entry.call_id, ""))
            if finding is not None and len(found) < FINDINGS:
                found[replace(finding, applies_cleanly=entry.text.endswith(APPLIES))] = None
    return tuple(found)


def _is_this_tool(name: str) -> bool:
    """Return whether the name means this tool.

    Journals hold the name as the model spelt it, and the toolbox accepts several spellings.
    """
    return re.sub(r"[^a-z0-9]", "", name.lower()) == _NORMAL_NAME


def _parse_finding(arguments: str) -> ReviewFinding | None:
    try:
        return _build_finding(decode_json(arguments)) if arguments else None
    except (KeyError, TypeError, ValueError):
        return None  # a hook may have rewritten the arguments


def _build_finding(arguments: Mapping[str, Any]) -> ReviewFinding:
    suggestion = arguments.get("suggestion")
    return ReviewFinding(
        path=replace_surrogates(arguments["file"]).removeprefix("./"),
        line=int(arguments["line"]),
        severity=Severity(arguments["severity"]),
        text=replace_surrogates(arguments["text"]).strip(),
        suggestion=None
        if suggestion is None
        else replace_surrogates(suggestion).replace("\r\n", "\n").removesuffix("\n"),
        old=arguments.get("side") == "old",
        first_line=int(arguments.get("first_line") or 0),
    )
