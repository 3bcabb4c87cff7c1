"""A partner that says what its script says, as slowly as it says. What is asked of it is kept in `heard`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from hummingbird.agent.todo_list import Todo
from hummingbird.chat.partner import ChatPermissions, ChatStatus, ChatToolInfo, CompactionPreview, LastExchange
from hummingbird.core.errors import UsageError
from hummingbird.core.events import EntryRecorded, RunEvent, RunOutcome, TextDelta
from hummingbird.core.journal import EndReason, JournalEntry, ModelAnswered, ModelCalled, RunEnded, RunStarted
from hummingbird.core.messages import AssistantMessage, ImagePart
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.protocols.interaction import Clarifier, PermissionAsker
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.protocols.sessions import SearchHit
from hummingbird.core.sessions import SessionSubject, SessionSummary
from hummingbird.core.usage import Bill, TokenUsage

BILL = Bill(3, 3, TokenUsage(fresh=200, cache_read=800, output=50), Decimal("0.0123"), 0)
SESSION = "abcdef123456"


class ScriptedPartner:
    """`script` is called with each message: a text that is said at once, or a coroutine function's work."""

    def __init__(self, observer: RunObserver, asker: PermissionAsker, clarifier: Clarifier) -> None:
        self.observer = observer
        self.asker = asker
        self.clarifier = clarifier
        self.heard: list[str] = []
        self.steered: list[str] = []
        self.script: Callable[[ScriptedPartner, str], object] = lambda partner, text: f"heard {text}"
        self.undelivered: tuple[str, ...] = ()
        self.list: list[Todo] = []
        self.attached: dict[str, bytes] = {}
        self.takes_files = True
        self.takes_images = True
        self.images: list[ImagePart] = []
        self.shelf = asyncio.Event()  # cleared, it takes for ever to put a file away
        self.shelf.set()
        self.closed = False
        self.mode = PermissionMode.ASK
        self.last: LastExchange | None = None
        self.edited: list[str] = []
        self.rules: list[str] = []
        self.on_close: Callable[[], object] = lambda: None
        self.preview = CompactionPreview(12, 9_000, 2_000, "They talked about **birds**.")
        self._task: asyncio.Task[object] | None = None
        self._interrupted = False

    def show(self, event: RunEvent) -> None:
        self.observer(event)

    def record(self, entry: JournalEntry) -> None:
        self.observer(EntryRecorded(entry))

    async def stream(self, text: str, size: int = 8, pause_s: float = 0.0) -> str:
        """Deltas of `size` characters, one each `pause_s` whatever else takes time; then all of it as an answer."""
        clock = asyncio.get_running_loop().time
        due = clock()
        self.record(ModelCalled(call_id="m1", model="scripted:bird", messages=1))
        for at in range(0, len(text), size):
            self.show(TextDelta(text[at : at + size]))
            due += pause_s
            await asyncio.sleep(max(0.0, due - clock()))
        self.record(ModelAnswered(call_id="m1", model="scripted:bird", message=AssistantMessage(text)))
        return text

    async def say(self, text: str) -> RunOutcome:
        self.heard.append(text)
        self._interrupted = False
        self.record(RunStarted(run_id="r1", model="scripted:bird"))
        self._task = asyncio.ensure_future(self._played(text))
        try:
            answer = str(await self._task)
            reason, answered = EndReason.COMPLETED, True
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            answer, reason, answered = "", EndReason.INTERRUPTED, False
        self.record(RunEnded(run_id="r1", reason=reason, text=answer, answered=answered))
        undelivered, self.undelivered = self.undelivered, ()
        return RunOutcome(SESSION, "r1", reason, answer, answered, "", (), 1, BILL, undelivered)

    async def _played(self, text: str) -> object:
        answer = self.script(self, text)
        if asyncio.iscoroutine(answer):
            return await answer
        return await self.stream(str(answer))

    def interrupt(self) -> None:
        if self._task is not None and not self._task.done():
            self._interrupted = True
            self._task.cancel()

    def steer(self, text: str) -> None:
        if self._task is None or self._task.done():
            raise UsageError("Nothing runs that could be steered.")
        self.steered.append(text)

    def status(self) -> ChatStatus:
        return ChatStatus(SESSION, "scripted:bird", 12_000, 100_000, BILL, self.mode)

    def last_exchange(self) -> LastExchange | None:
        return self.last

    async def fork(self) -> str:
        self.heard.append("/fork")
        return "copy00"

    async def rename(self, title: str) -> None:
        self.heard.append(f"/rename {title}")

    def messages(self) -> Sequence[str]:
        return self.heard

    def changed_files(self, messages: int = 1) -> Sequence[str]:
        return self.edited if self.heard else ()

    async def undo_edits(self, messages: int = 1) -> Sequence[str]:
        undone, self.edited = self.edited, []
        return [f"{name} is as it was {messages} messages ago." for name in undone]

    async def run_command(self, command: str) -> str:
        self.heard.append(f"!{command}")
        return f"ran {command}"

    async def remember(self, text: str) -> str:
        return f"Remembered {text}."

    async def model_names(self) -> Sequence[str]:
        return ["bird", "owl"]

    def attach_image(self, image: ImagePart) -> str:
        if not self.takes_images:
            raise UsageError("The model bird takes no images.")
        self.images.append(image)
        return f"[image {len(self.images)}: {image.name}]"

    def own_commands(self) -> Mapping[str, str]:
        return {"critique": "Reviews."}

    def expand_command(self, name: str, argument: str) -> str:
        return f"Review {argument}" if name == "critique" else ""

    def servers(self) -> Sequence[str]:
        return ["time: 2 tools"]

    def context_parts(self) -> Sequence[tuple[str, int]]:
        return [("system prompt", 3_000), ("results of tools", 9_000), ("free", 88_000)]

    async def workspace_diff(self) -> str:
        return "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new"

    def transcript(self) -> str:
        return "# Session"

    def switch_mode(self, mode: PermissionMode) -> None:
        self.mode = mode

    def permissions(self) -> ChatPermissions:
        return ChatPermissions(self.mode, tuple((line, "session") for line in self.rules), ("rule 'ask me'",))

    async def add_permission(self, line: str, *, always: bool = False) -> None:
        self.rules.append(line)

    async def remove_permission(self, number: int) -> str:
        return self.rules.pop(number - 1)

    async def attach(self, name: str, content: bytes) -> str:
        if not self.takes_files:
            raise UsageError("There is no sandbox: choose one with --sandbox.")
        await self.shelf.wait()
        self.attached[name] = content
        return f"/kept/{name}"

    async def start_session(self) -> str:
        self.heard.append("/new")
        return "fedcba"

    async def resume(self, beginning: str) -> SessionSummary:
        if not SESSION.startswith(beginning):
            raise UsageError(f"No session's id begins with {beginning}.")
        return SessionSummary(SESSION, title="birds", changed_at=1.0)

    async def list_sessions(self, limit: int, words: str = "") -> Sequence[SessionSummary]:
        elsewhere = SessionSubject(folder="/far/away")
        return [
            SessionSummary("0123456789", elsewhere, "nests of the north", changed_at=2.0, last_words="They are warm."),
            SessionSummary(SESSION, SessionSubject(folder=str(Path.cwd())), "birds", changed_at=1.0),
        ]

    async def search_sessions(self, words: str, limit: int) -> Sequence[SearchHit]:
        return []

    async def switch_model(self, name: str) -> str:
        self.heard.append(f"/model {name}")
        return f"scripted:{name}"

    def tools(self) -> Sequence[ChatToolInfo]:
        return [ChatToolInfo("terminal", "terminal", "Runs a command on this machine.", "ask")]

    async def preview_compaction(self, focus: str = "") -> CompactionPreview:
        return self.preview

    async def apply_compaction(self, preview: CompactionPreview) -> None:
        self.heard.append("/apply")

    async def undo_compaction(self) -> bool:
        return False

    async def undo_message(self) -> str:
        if not self.heard:
            raise UsageError("There is no message to take back.")
        return self.heard.pop()

    async def undo_edit(self) -> str:
        return "a.py is as it was."

    async def stop(self, which: str = "") -> str:
        self.interrupt()
        return f"Stopped {which or 'everything'}."

    def memory_text(self) -> str:
        return "# Memory\n\nfacts"

    def todos(self) -> Sequence[Todo]:
        return self.list

    def grants(self) -> Sequence[str]:
        return ["terminal ls: this session"]

    async def export_session(self, folder: str) -> Path:
        return Path(folder)

    async def wait_until_stored(self) -> None:
        """Nothing is kept."""

    async def close(self) -> None:
        self.closed = True
        self.on_close()
