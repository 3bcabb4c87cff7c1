"""The workspace: tools that read, search and edit files in the folder of a conversation, and undo for the edits."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from hummingbird.core.errors import ArgumentsInvalid, CommandFailed, UsageError
from hummingbird.core.protocols.tools import Tool, ToolContext, ToolOutput
from hummingbird.core.shell.values import (
    EDIT_BYTES,
    LISTED_NAMES,
    READ_BYTES,
    READ_LINE_CHARS,
    READ_LINES,
    SEARCH_ANSWER_BYTES,
    SEARCH_MATCHES,
    SEARCH_S,
    SHOWN_BYTES,
)
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.sandboxes.host.file_changes import (
    ChangeHistory,
    FileChange,
    FileContent,
    content_digest,
    format_unified_diff,
    read_content,
    write_content,
)
from hummingbird.sandboxes.host.safe_path import (
    GIT_OWN_NAMES,
    SafeFolder,
    SafePath,
    display_name,
    file_kind,
    os_error_reason,
    read_at_most,
)
from hummingbird.sandboxes.host.tool_specs import EDIT_SPEC, READ_SPEC, SEARCH_SPEC

# Takes the arguments of a search and its start path; returns whether a file, by its canonical path, may be shown, or
# None if all may.
SearchFilter: TypeAlias = Callable[[Mapping[str, Any], str], Callable[[str], bool] | None]

_SOURCE_ROOT = Path(__file__).parents[3]
# Python runs isolated (-I), so that it imports nothing from the folder that it searches.
_SEARCH_COMMAND = (
    "import sys; sys.path.insert(0, {!r}); from hummingbird.sandboxes.host.search_program import main; main()"
)
_JUDGE_PREFIX = b'{"judge":'


class FileSearchTool:
    """The tool `file_search`: runs `search_program` in a process of its own, which can be killed on a slow pattern.

    `showing` decides which files may be shown; the program never opens the others.
    """

    def __init__(
        self,
        below: SafeFolder,
        forbidden: Sequence[Path],
        environment: Mapping[str, str],
        time_s: float = SEARCH_S,
        showing: SearchFilter | None = None,
    ) -> None:
        self._below, self._showing = below, showing
        self._time_s = time_s
        kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
        self._environment = {"PATH": os.defpath, **kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        self._where = {"root": str(below.root), "forbidden": [str(path) for path in forbidden], "time_s": time_s}

    @property
    def spec(self) -> ToolSpec:
        return SEARCH_SPEC

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        if not arguments.get("pattern") and not arguments.get("glob"):
            raise ArgumentsInvalid("Give a pattern to look for, or a glob to list files, or both.")
        wanted = {"pattern": "", "literal": False, "path": ".", "glob": "", **arguments}
        start = self._below.resolve(wanted["path"]).display_path  # raises now if the path is wrong
        shows = self._showing(arguments, start) if self._showing else None
        judging = _SearchJudge(shows) if shows else None
        if judging and not judging.judge([start])[0]:
            raise CommandFailed(f"Rules do not let {start} be read without asking, so nothing in it is searched.")
        request = {**self._where, **wanted, "parent": os.getpid(), "judged": judging is not None}
        answer, in_time = await self._run_search(json.dumps(request).encode() + b"\n", judging)
        return self._format_answer(answer, in_time, judging.left_out if judging else 0)

    async def _run_search(self, request: bytes, judging: "_SearchJudge | None") -> tuple[bytes, bool]:
        command = [sys.executable or "python3", "-I", "-S", "-c", _SEARCH_COMMAND.format(str(_SOURCE_ROOT))]
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - it takes a millisecond, and nothing can be lost meanwhile
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            start_new_session=True,
        )
        begun = threading.Event()
        try:
            return await asyncio.to_thread(_run_with_deadline, process, request, judging, self._time_s, begun)
        finally:
            _kill_search(process)
            if not begun.is_set():
                _close_pipes(process)

    def _format_answer(self, answer: bytes, in_time: bool, left_out: int) -> str:
        found = [json.loads(line) for line in answer.split(b"\n")[:-1]]
        over = next((each for each in found if "over" in each), None)
        if over and over["fault"]:
            raise CommandFailed(over["fault"])
        lines = [each["line"] for each in found if "line" in each]
        said = self._summary(lines, over, in_time)
        if left_out:
            said += f" {left_out} files are left out because of rules: file_read of them is denied, or asked about."
        return "\n".join([f"[{said}]", *lines])

    def _summary(self, lines: Sequence[str], over: Mapping[str, Any] | None, in_time: bool) -> str:
        if over is None:
            why = "The search broke off" if in_time else f"The search was stopped after {self._time_s:g} s"
            return f"{why}; {len(lines)} matches until then. Make the pattern simpler, or name a path or a glob."
        said = f"{len(lines)} matches in {over['files']} files."
        if over["more"]:
            said = (
                f"The first {len(lines)} matches; there are more than {SEARCH_MATCHES}, or many in one file. Narrow it."
            )
        return f"{said} {over['skipped']} files are binary, too large or not readable." if over["skipped"] else said


class _SearchJudge:
    """Asks whether files may be shown, and counts those that may not."""

    def __init__(self, shows: Callable[[str], bool]) -> None:
        self._shows = shows
        self.left_out = 0

    def judge(self, names: Sequence[str]) -> list[bool]:
        answers = [self._shows(name) for name in names]
        self.left_out += answers.count(False)
        return answers


def _run_with_deadline(
    process: subprocess.Popen[bytes],
    request: bytes,
    judging: _SearchJudge | None,
    time_s: float,
    begun: threading.Event,
) -> tuple[bytes, bool]:
    begun.set()  # from here on `_exchange` closes the pipes
    late = threading.Event()

    def expire() -> None:
        late.set()
        _kill_search(process)

    alarm = threading.Timer(time_s, expire)
    alarm.start()
    try:
        return _exchange(process, request, judging)[:SEARCH_ANSWER_BYTES], not late.is_set()
    finally:
        alarm.cancel()


def _exchange(process: subprocess.Popen[bytes], request: bytes, judging: _SearchJudge | None) -> bytes:
    """Answer the program's questions about files; return everything else that it writes until it ends."""
    assert process.stdin
    assert process.stdout
    told: list[bytes] = []
    with suppress(BrokenPipeError), process.stdout as said, process.stdin as asked:
        asked.write(request)
        asked.flush()
        for line in said:
            if judging and line.startswith(_JUDGE_PREFIX) and line.endswith(b"\n"):
                asked.write(json.dumps(judging.judge(json.loads(line)["judge"])).encode() + b"\n")
                asked.flush()
            else:
                told.append(line)
    return b"".join(told)


def _kill_search(process: subprocess.Popen[bytes]) -> None:
    """Kill the search with the process that it may have started, git."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close pipes that no thread will read, because the call was cancelled while every thread was busy."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


_NUL_SCAN_BYTES = 1 << 16  # a NUL in this many bytes means binary, as git has it


def format_lines(path: str, content: bytes, offset: int, limit: int | None) -> str:
    """Format lines with their numbers, from `offset` on, which counts from 1."""
    if b"\0" in content[:_NUL_SCAN_BYTES]:
        return f"[{path}: {len(content)} bytes that are not text; look at it with a command such as file or xxd]"
    text = content.decode("utf-8", "replace")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = max(1, offset)
    wanted = lines[first - 1 : first - 1 + min(limit or READ_LINES, READ_LINES)]
    kept = _fit_lines([f"{number:6}\t{_truncate_line(line)}" for number, line in enumerate(wanted, first)])
    said = _describe_range(path, len(lines), first, len(kept))
    if "\r\n" in text:
        said += " Lines end in CR LF."
    if b"\xef\xbf\xbd" not in content and "\ufffd" in text:
        said += " Some bytes are not UTF-8 and shown as \ufffd."
    return "\n".join([f"[{said}]", *kept])


def _fit_lines(lines: list[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > SHOWN_BYTES and kept:
            break
        kept.append(line)
    return kept


def _truncate_line(line: str) -> str:
    line = line.removesuffix("\r")
    more = len(line) - READ_LINE_CHARS
    return line if more <= 0 else f"{line[:READ_LINE_CHARS]}[… {more} more characters]"


def _describe_range(path: str, lines: int, first: int, count: int) -> str:
    if not lines:
        return f"{path} is empty."
    if not count:
        return f"{path} has {lines} lines, none from {first} on."
    last = first + count - 1
    if count == lines:
        return f"{path}, all {lines} lines."
    return f"{path}, lines {first} to {last} of {lines}." + (f" Go on with offset {last + 1}." if last < lines else "")


def format_folder(below: SafeFolder, spot: SafePath, offset: int, limit: int | None) -> str:
    with below.open_folder(spot) as folder, os.scandir(folder) as found:
        names = sorted((os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found)
        names = [(name, is_folder) for name, is_folder in names if name.decode("utf-8", "replace") not in GIT_OWN_NAMES]
        first = max(1, offset)
        page = names[first - 1 : first - 1 + min(limit or LISTED_NAMES, LISTED_NAMES)]
        lines = [f"{display_name(name)}{'/' if is_folder else _entry_suffix(folder, name)}" for name, is_folder in page]
    more = len(names) - (first - 1) - len(page)
    said = f"[{spot.display_path}, a folder with {len(names)} names."
    return "\n".join([said + (f" Go on with offset {first + len(page)}.]" if more > 0 else "]"), *lines])


def _entry_suffix(folder: int, name: bytes) -> str:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return f" -> {display_name(os.readlink(name, dir_fd=folder))}"
    except OSError:
        return ""
    return f"  {found.st_size}" if stat.S_ISREG(found.st_mode) else "  [no regular file]"


class Workspace:
    """A folder whose files a conversation reads and changes.

    Args:
        root: The folder.
        forbidden: Folders that tools may not touch, such as where sessions are stored.
        environment: For git, which is asked what it ignores.
        judged: Somebody has approved the exact path that `canonical_path` returned, so a path that leads elsewhere by
            now is refused.
        showing: Which files a search may show; None for all.
    """

    def __init__(
        self,
        root: Path,
        forbidden: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        *,
        judged: bool = False,
        showing: SearchFilter | None = None,
    ) -> None:
        self.folder = SafeFolder(root, forbidden)
        self._needs_canonical_path = judged
        self._history = ChangeHistory(self.folder)
        self._read_digests: dict[SafePath, bytes] = {}  # digests of what the model has seen
        self._changes: Counter[str] = Counter()
        self._edit_lock = threading.Lock()
        search = FileSearchTool(self.folder, forbidden, environment or {}, showing=showing)
        self.tools: tuple[Tool, ...] = (FileReadTool(self), search, FileEditTool(self))

    def inherit_state(self, before: "Workspace") -> None:
        """Take over history and digests of this conversation's previous workspace, so that its edits can be undone."""
        self._history, self._read_digests, self._changes = before._history, before._read_digests, before._changes

    def list_changed_files(self) -> tuple[str, ...]:
        """Return the files that this process has changed and not restored, in order."""
        return tuple(path for path, times in self._changes.items() if times > 0)

    def canonical_path(self, path: str) -> str:
        """Return the one name of the file that a path leads to, or the path itself if it may not be used."""
        try:
            return self.folder.resolve(path).display_path or "."
        except CommandFailed:
            return path

    def has_file(self, path: str) -> bool:
        """Return whether the path is a file below the folder."""
        try:
            mode = self.folder.file_mode(self.folder.resolve(path))
        except (CommandFailed, OSError):
            return False
        return mode is not None and stat.S_ISREG(mode)

    def _resolve(self, path: str) -> SafePath:
        spot = self.folder.resolve(path)
        if self._needs_canonical_path and (spot.display_path or ".") != path:
            raise CommandFailed(f"{path} now leads to {spot.display_path}; look again, and use that name.")
        return spot

    def undo(self) -> str:
        """Take back the last change; return a sentence. Raises UsageError."""
        with self._edit_lock:
            change = self._history.undo()
            self._changes[change.path.display_path] -= 1
            self._read_digests.pop(change.path, None)
        if change.before is None:
            return f"{change.path.display_path} was new and is gone again."
        return f"{change.path.display_path} is again as it was before the last change."

    @property
    def change_position(self) -> int:
        """The number of changes that were made and not taken back; `undo_since` goes back to it."""
        return self._history.position

    def changed_since(self, position: int) -> tuple[str, ...]:
        return tuple(spot.display_path for spot in self._history.paths_since(position))

    def undo_since(self, position: int) -> list[str]:
        """Take back all changes made since, newest first; return a sentence for each."""
        told: list[str] = []
        while self._history.position > position:
            try:
                told.append(self.undo())
            except UsageError as error:  # what was changed by somebody else stays, and with it what came before
                return [*told, str(error)]
        return told

    def read(self, path: str, offset: int, limit: int | None) -> str:
        spot = self._resolve(path)
        try:
            mode = self.folder.file_mode(spot)
            if mode is None:
                raise CommandFailed(
                    f"There is no {spot.display_path}. Look for it with file_search, or list its folder."
                )
            if stat.S_ISDIR(mode):
                return format_folder(self.folder, spot, offset, limit)
            with self.folder.open_file(spot) as at:
                content = self._read_content(spot, at)
        except OSError as error:
            raise CommandFailed(f"{spot.display_path} cannot be read: {os_error_reason(error)}.") from error
        if len(content) <= EDIT_BYTES:
            self._read_digests[spot] = content_digest(content)
        return format_lines(spot.display_path, content, offset, limit)

    def _read_content(self, spot: SafePath, at: int) -> bytes:
        content = read_at_most(at, READ_BYTES)
        if len(content) > READ_BYTES:
            size = os.fstat(at).st_size
            raise CommandFailed(
                f"{spot.display_path} has {size} bytes, more than is read here ({READ_BYTES}); use a "
                "command such as sed -n."
            )
        return content

    def preview_edit(self, path: str, old: str | None, new: str) -> str:
        """Return the diff that the edit would make now. Raises CommandFailed if the edit would fail."""
        with self._edit_lock:
            spot, before, after = self._plan_edit(path, old, new)
        return format_unified_diff(spot.display_path, before.text if before else None, after)

    def edit(self, path: str, old: str | None, new: str) -> str:
        with self._edit_lock:
            spot, before, after = self._plan_edit(path, old, new)
            made = write_content(self.folder, spot, after, before)
            self._history.record(FileChange(spot, before, content_digest(after), made))
            self._changes[spot.display_path] += 1
            self._read_digests[spot] = content_digest(after)
        return format_unified_diff(spot.display_path, before.text if before else None, after)

    def _plan_edit(self, path: str, old: str | None, new: str) -> tuple[SafePath, FileContent | None, bytes]:
        """Return the file, its content before the edit (None if it is new) and after. Raises CommandFailed."""
        spot = self._resolve_editable(path)
        before = read_content(self.folder, spot)
        if not old and before is None:
            old = None  # models say that a file is new in both ways
        self._check_unchanged(spot, before, whole=old is None)
        after = new.encode("utf-8", "replace") if old is None else _replace_text(spot, before, old, new)
        if len(after) > EDIT_BYTES:
            raise CommandFailed(
                f"{spot.display_path} would be larger than {EDIT_BYTES} bytes; write it with a command."
            )
        if before is not None and before.text == after:
            raise CommandFailed(f"{spot.display_path} would stay as it is: the new text is the old one.")
        return spot, before, after

    def _resolve_editable(self, path: str) -> SafePath:
        spot = self._resolve(path)
        try:
            mode = self.folder.file_mode(spot)
        except OSError as error:
            raise CommandFailed(f"{spot.display_path} cannot be changed: {os_error_reason(error)}.") from error
        if mode is not None and not stat.S_ISREG(mode):
            raise CommandFailed(f"{spot.display_path} is {file_kind(mode)}, not a file; it is left alone.")
        return spot

    def _check_unchanged(self, spot: SafePath, before: FileContent | None, *, whole: bool) -> None:
        """Raise CommandFailed if the edit would overwrite something that the model has not seen."""
        known = self._read_digests.get(spot)
        if before is None:
            return
        if known is not None and known != before.digest:
            raise CommandFailed(
                f"{spot.display_path} changed on disk after you last read it. Read it again, then edit it."
            )
        if known is None and whole:
            raise CommandFailed(
                f"{spot.display_path} exists already. Read it first, or give `old` to replace a part of it."
            )


def _replace_text(spot: SafePath, before: FileContent | None, old: str, new: str) -> bytes:
    if before is None:
        raise CommandFailed(f"There is no {spot.display_path} to replace anything in. Leave out `old` to create it.")
    if not old:
        raise CommandFailed(f"{spot.display_path} exists, and `old` is empty: give the text that `new` is to replace.")
    if b"\0" in before.text[: 1 << 16]:
        raise CommandFailed(f"{spot.display_path} is binary; change it with a command.")
    wanted, given = old.encode("utf-8", "replace"), new.encode("utf-8", "replace")
    if wanted not in before.text and b"\r\n" in before.text:  # models write LF where the file has CR LF
        wanted, given = (text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for text in (wanted, given))
    times = before.text.count(wanted) if wanted else 0
    if not times:
        raise CommandFailed(
            f"`old` is not in {spot.display_path}, letter by letter. Read the file again and copy it from there."
        )
    if times > 1:
        raise CommandFailed(
            f"`old` is {times} times in {spot.display_path}. Give more of the lines around it, so that it is once."
        )
    return before.text.replace(wanted, given)


class FileReadTool:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def spec(self) -> ToolSpec:
        return READ_SPEC

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        path, offset, limit = arguments["path"], arguments.get("offset", 1), arguments.get("limit")
        assert isinstance(path, str)
        assert isinstance(offset, int)
        assert limit is None or isinstance(limit, int)
        return await asyncio.to_thread(self._workspace.read, path, offset, limit)


class FileEditTool:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def spec(self) -> ToolSpec:
        return EDIT_SPEC

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        path, old, new = arguments["path"], arguments.get("old"), arguments["new"]
        assert isinstance(path, str)
        assert isinstance(new, str)
        assert old is None or isinstance(old, str)
        return await asyncio.to_thread(self._workspace.edit, path, old, new)
