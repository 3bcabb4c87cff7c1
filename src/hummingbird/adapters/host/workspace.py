"""The folder in which a conversation was started, for its tools: what was read and changed in it, and the way back."""

import asyncio
import os
import stat
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hummingbird.adapters.host.below import Below, Spot, kind, read_at_most, reason
from hummingbird.adapters.host.changes import Change, Content, History, content_of, marked, put
from hummingbird.adapters.host.differing import diff
from hummingbird.adapters.host.pages import listed, numbered
from hummingbird.adapters.host.searching import FileSearch, Showing
from hummingbird.adapters.host.workspace_specs import EDIT, READ
from hummingbird.domain.errors import CommandFailed
from hummingbird.domain.host_limits import EDIT_BYTES, READ_BYTES
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Output, Tool, ToolContext


class Workspace:
    """`forbidden`: folders that tools may not touch, such as where sessions are kept. `environment`: for git, which is
    asked what is ignored. `judged`: paths come as `plain` gave them, and somebody has decided about that very file: one
    that leads elsewhere by now is refused. `showing`: what of it a search may show; None: all."""

    def __init__(
        self,
        root: Path,
        forbidden: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        *,
        judged: bool = False,
        showing: Showing | None = None,
    ) -> None:
        self.below = Below(root, forbidden)
        self._judged = judged
        self._history = History(self.below)
        self._read: dict[Spot, bytes] = {}  # the mark of what the model has seen
        self._changes: Counter[str] = Counter()
        self._one_at_a_time = threading.Lock()
        search = FileSearch(self.below, forbidden, environment or {}, showing=showing)
        self.tools: tuple[Tool, ...] = (FileRead(self), search, FileEdit(self))

    def go_on_from(self, before: "Workspace") -> None:
        """That of the same folder and conversation until now: what was changed there can be taken back here."""
        self._history, self._read, self._changes = before._history, before._read, before._changes

    def changed(self) -> tuple[str, ...]:
        """Files that are not as they were before, as far as this process has changed them, in order."""
        return tuple(path for path, times in self._changes.items() if times > 0)

    def plain(self, path: str) -> str:
        """The one name of the file that a path leads to; the path itself if it leads to none that may be used."""
        try:
            return self.below.spot(path).shown or "."
        except CommandFailed:
            return path

    def has(self, path: str) -> bool:
        """Whether a file is there, by a path that does not lead out."""
        try:
            mode = self.below.mode(self.below.spot(path))
        except (CommandFailed, OSError):
            return False
        return mode is not None and stat.S_ISREG(mode)

    def _spot(self, path: str) -> Spot:
        spot = self.below.spot(path)
        if self._judged and (spot.shown or ".") != path:
            raise CommandFailed(f"{path} leads to {spot.shown} by now; look again, and use that name.")
        return spot

    def undo(self) -> str:
        """Takes back the last change. A sentence. Raises UsageFault."""
        with self._one_at_a_time:
            change = self._history.undo()
            self._changes[change.spot.shown] -= 1
            self._read.pop(change.spot, None)
        if change.before is None:
            return f"{change.spot.shown} was new and is gone again."
        return f"{change.spot.shown} is again as it was before the last change."

    def read(self, path: str, offset: int, limit: int | None) -> str:
        spot = self._spot(path)
        try:
            mode = self.below.mode(spot)
            if mode is None:
                raise CommandFailed(f"There is no {spot.shown}. Look for it with file_search, or list its folder.")
            if stat.S_ISDIR(mode):
                return listed(self.below, spot, offset, limit)
            with self.below.file(spot) as at:
                content = self._content(spot, at)
        except OSError as error:
            raise CommandFailed(f"{spot.shown} cannot be read: {reason(error)}.") from error
        if len(content) <= EDIT_BYTES:
            self._read[spot] = marked(content)
        return numbered(spot.shown, content, offset, limit)

    def _content(self, spot: Spot, at: int) -> bytes:
        content = read_at_most(at, READ_BYTES)
        if len(content) > READ_BYTES:
            size = os.fstat(at).st_size
            raise CommandFailed(
                f"{spot.shown} has {size} bytes, more than is read here ({READ_BYTES}); use a command such as sed -n."
            )
        return content

    def edit(self, path: str, old: str | None, new: str) -> str:
        with self._one_at_a_time:
            spot = self._editable(path)
            before = content_of(self.below, spot)
            self._agrees(spot, before, whole=old is None)
            after = new.encode("utf-8", "replace") if old is None else _replaced(spot, before, old, new)
            if len(after) > EDIT_BYTES:
                raise CommandFailed(f"{spot.shown} would be larger than {EDIT_BYTES} bytes; write it with a command.")
            if before is not None and before.text == after:
                raise CommandFailed(f"{spot.shown} would stay as it is: the new text is the old one.")
            made = put(self.below, spot, after, before)
            self._history.note(Change(spot, before, marked(after), made))
            self._changes[spot.shown] += 1
            self._read[spot] = marked(after)
        return diff(spot.shown, before.text if before else None, after)

    def _editable(self, path: str) -> Spot:
        spot = self._spot(path)
        try:
            mode = self.below.mode(spot)
        except OSError as error:
            raise CommandFailed(f"{spot.shown} cannot be changed: {reason(error)}.") from error
        if mode is not None and not stat.S_ISREG(mode):
            raise CommandFailed(f"{spot.shown} is {kind(mode)}, not a file; it is left alone.")
        return spot

    def _agrees(self, spot: Spot, before: Content | None, *, whole: bool) -> None:
        """Nobody's work is written over that the model has not seen."""
        known = self._read.get(spot)
        if before is None:
            return
        if known is not None and known != before.mark:
            raise CommandFailed(f"{spot.shown} changed on disk after you last read it. Read it again, then edit it.")
        if known is None and whole:
            raise CommandFailed(f"{spot.shown} exists already. Read it first, or give `old` to replace a part of it.")


def _replaced(spot: Spot, before: Content | None, old: str, new: str) -> bytes:
    if before is None:
        raise CommandFailed(f"There is no {spot.shown} to replace anything in. Leave out `old` to create it.")
    if b"\0" in before.text[: 1 << 16]:
        raise CommandFailed(f"{spot.shown} is binary; change it with a command.")
    wanted, given = old.encode("utf-8", "replace"), new.encode("utf-8", "replace")
    if wanted not in before.text and b"\r\n" in before.text:  # models write lines the other way
        wanted, given = (text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for text in (wanted, given))
    times = before.text.count(wanted) if wanted else 0
    if not times:
        raise CommandFailed(
            f"`old` is not in {spot.shown}, letter by letter. Read the file again and copy it from there."
        )
    if times > 1:
        raise CommandFailed(
            f"`old` is {times} times in {spot.shown}. Give more of the lines around it, so that it is once."
        )
    return before.text.replace(wanted, given)


class FileRead:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def spec(self) -> ToolSpec:
        return READ

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, object], context: ToolContext) -> Output:
        path, offset, limit = arguments["path"], arguments.get("offset", 1), arguments.get("limit")
        assert isinstance(path, str)
        assert isinstance(offset, int)
        assert limit is None or isinstance(limit, int)
        return await asyncio.to_thread(self._workspace.read, path, offset, limit)


class FileEdit:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def spec(self) -> ToolSpec:
        return EDIT

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, object], context: ToolContext) -> Output:
        path, old, new = arguments["path"], arguments.get("old"), arguments["new"]
        assert isinstance(path, str)
        assert isinstance(new, str)
        assert old is None or isinstance(old, str)
        return await asyncio.to_thread(self._workspace.edit, path, old, new)
