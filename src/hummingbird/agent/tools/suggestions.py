"""Suggestions, tried before anybody can click on them (W2): the file as it is at the head of the merge request, a
patch, and git in the session's sandbox, for both are others' words. Two that change the same lines are noticed, for all
that were taken are tried together.

Posts nothing, and decides nothing about findings. What cannot be tried is no mistake: it is said, and shown as code.
"""

import shlex
from collections.abc import Sequence
from hashlib import sha256

from hummingbird.agent.interruptible import within
from hummingbird.agent.tools.spill import Spill
from hummingbird.domain.diffs import Diff
from hummingbird.domain.errors import ArgumentsInvalid, CommandFailed, HummingbirdError
from hummingbird.domain.limits import SUGGESTION_FILE_BYTES, SUGGESTION_TRY_S
from hummingbird.domain.suggestions import Change, bare, changed, fault, lines_of, patch, unfit
from hummingbird.ports.sandbox import ROOT
from hummingbird.ports.tool import ByteStream, Output, ToolContext

SOURCE = "gitlab_get_file_at_ref"
_FILE, _PATCH = "file", "patch"
_NO_GIT = 77
_OPTIONS = "--whitespace=nowarn"
# Neither a repository that the model has made around it nor anybody's settings count.
_GIT = f"GIT_CEILING_DIRECTORIES={ROOT} GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent git apply"


class Untried(Exception):
    """Why it could not be: the end of a sentence."""


class Suggestions:
    """Those of one review. `head` is the commit whose diff is reviewed; empty if nobody knows."""

    def __init__(self, head: str = "") -> None:
        self._head = head
        self._spill: Spill | None = None
        self._files: dict[str, bytes] = {}
        self._taken: dict[str, list[Change]] = {}

    def work_at(self, spill: Spill) -> None:
        self._spill = spill

    async def tried(self, path: str, change: Change, diff: Diff, context: ToolContext) -> str:
        """Empty: it applies, and counts from now on. Else why that is not known. Raises ArgumentsInvalid: it does not,
        and the model can do something about it. One at a time."""
        try:
            await within(SUGGESTION_TRY_S, self._try(path, change, diff, context))
        except Untried as error:
            return str(error)
        except TimeoutError:
            return "it took too long"
        self._taken.setdefault(path, []).append(change)
        return ""

    async def _try(self, path: str, change: Change, diff: Diff, context: ToolContext) -> None:
        if self._spill is None or not self._head:
            raise Untried("there is no sandbox")
        content = self._files.get(path) or await self._fetched(path, context, self._spill)
        self._files[path] = content
        if why := unfit(content):
            raise Untried(why)
        if not _as_shown(content, change, path, diff):
            raise Untried("the file is another one by now")
        if why := fault(content, change):
            raise _wrong(why)
        taken = self._taken.get(path, [])
        if met := next((one for one in taken if one.meets(change)), None):
            raise _wrong(f"an earlier suggestion of yours changes line {met.last} already, and both cannot be applied")
        if not await self._applied(content, [*taken, change], self._spill):
            raise _wrong("git refuses it")

    async def _fetched(self, path: str, context: ToolContext, spill: Spill) -> bytes:
        try:
            content = await _read(await context.call(SOURCE, {"path": path, "ref": self._head}))
        except HummingbirdError as error:
            raise Untried("the file could not be read") from error
        if len(content) > SUGGESTION_FILE_BYTES:
            raise Untried("the file is too large")
        masking = spill.secrets.stream()
        if masking.end(content) != content:  # what is secret goes into no sandbox (T7)
            raise Untried("the file holds a credential")
        return content

    async def _applied(self, content: bytes, changes: Sequence[Change], spill: Spill) -> bool:
        """Whether git makes of the file what is meant."""
        try:
            async with spill.bench.using() as sandbox:
                folder = f"{ROOT}/.tried"
                await sandbox.write_file(f"{folder}/{_FILE}", content)
                await sandbox.write_file(f"{folder}/{_PATCH}", patch(content, changes, _FILE))
                done = await sandbox.exec(_command(folder))
        except HummingbirdError as error:
            raise Untried("there is no sandbox") from error
        if done.exit_code == _NO_GIT:
            raise Untried("there is no git in the sandbox")
        said = done.stdout.split()[:1]
        return done.exit_code == 0 and said == [sha256(changed(content, changes)).hexdigest().encode()]


def _as_shown(content: bytes, change: Change, path: str, diff: Diff) -> bool:
    """Whether the lines to be replaced are those that the diff shows: what was fetched may be of another commit."""
    lines = lines_of(content)
    numbers = range(change.first, min(change.last, len(lines)) + 1)
    return all(bare(lines[number - 1]).decode() == diff.text(path, number) for number in numbers)


def _command(folder: str) -> str:
    tries = f"{_GIT} --check {_OPTIONS} {_PATCH} && {_GIT} {_OPTIONS} {_PATCH} && sha256sum {_FILE}"
    return (
        f"command -v git >/dev/null 2>&1 || exit {_NO_GIT}; cd {shlex.quote(folder)} || exit 1; "
        f"({tries}) 2>/dev/null; status=$?; cd / && rm -rf {shlex.quote(folder)}; exit $status"
    )


async def _read(output: Output) -> bytes:
    """One byte more than is taken, at most. Raises what the source raises, and CommandFailed for what is no file."""
    if not isinstance(output, ByteStream):
        raise CommandFailed("That is no file with lines.")
    content = bytearray()
    async for chunk in output.chunks:
        content += chunk
        if len(content) > SUGGESTION_FILE_BYTES:
            break
    return bytes(content[: SUGGESTION_FILE_BYTES + 1])


def _wrong(why: str) -> ArgumentsInvalid:
    return ArgumentsInvalid(
        f"The suggestion cannot be applied as it is: {why}. Nothing was noted. Report the finding again without a "
        "suggestion, or with one that fits."
    )
