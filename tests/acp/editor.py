"""An editor, as the protocol's own library has it, and the real `hummingbird acp` behind it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp import text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    InitializeResponse,
    NewSessionResponse,
    RequestPermissionResponse,
)

from hummingbird.acp.updates import FRAME_BYTES
from tests.standins.vendors.server import VendorLab

PROGRAM = "from hummingbird.cli.acp import acp; acp(prog_name='hummingbird acp')"
MODEL = "openai:gpt-6.1-terra"


@dataclass
class Editor:
    """Keeps what it is told, and answers what it is asked with `choose`: an option's id, or nothing to dismiss it."""

    choose: Callable[[Any], str] = lambda question: "reject"
    form: dict[str, Any] = field(default_factory=dict)
    updates: list[tuple[str, Any]] = field(default_factory=list)
    questions: list[Any] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self.news.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.questions.append((session_id, tool_call, options))
        self.news.set()
        chosen = self.choose(tool_call)
        if chosen == "wait":
            await asyncio.Event().wait()
        if not chosen:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> AcceptElicitationResponse:
        self.questions.append((message, mode))
        return AcceptElicitationResponse(action="accept", content=self.form)

    def on_connect(self, conn: Any) -> None:
        """Nothing to remember."""

    async def until(self, seen: Callable[["Editor"], Any], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not seen(self):
                self.news.clear()
                await self.news.wait()

    def of(self, kind: str, session_id: str = "") -> list[Any]:
        return [one for whose, one in self.updates if one.session_update == kind and session_id in ("", whose)]

    def text(self, kind: str = "agent_message_chunk", session_id: str = "") -> str:
        return "".join(one.content.text for one in self.of(kind, session_id))

    def statuses(self) -> list[tuple[str, str]]:
        """What became of calls, in the order in which it was told."""
        kinds = {"tool_call", "tool_call_update"}
        return [(one.tool_call_id, one.status) for _, one in self.updates if one.session_update in kinds]


@dataclass
class Desk:
    editor: Editor
    connection: ClientSideConnection
    process: asyncio.subprocess.Process
    hello: InitializeResponse
    workspace: Path

    async def new(self, **more: Any) -> NewSessionResponse:
        return await self.connection.new_session(cwd=str(self.workspace), mcp_servers=[], **more)

    async def say(self, session_id: str, *blocks: Any) -> str:
        made = [text_block(one) if isinstance(one, str) else one for one in blocks]
        return (await self.connection.prompt(session_id=session_id, prompt=made)).stop_reason


def environment(lab: VendorLab | None, home: Path) -> dict[str, str]:
    given = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    url = lab.openai_url if lab is not None else "http://127.0.0.1:9/v1"
    return given | {"HUMMINGBIRD_HOME": str(home), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k-123456789"}


async def started(
    lab: VendorLab | None, home: Path, *more: str, before: str = "", stdout: int = asyncio.subprocess.PIPE
) -> asyncio.subprocess.Process:
    """`before`: what the process does first."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-W", "error", "-c", before + PROGRAM, "--model", MODEL, *more]
    return await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=stdout, stderr=pipe, env=environment(lab, home), cwd=home, limit=FRAME_BYTES
    )


@asynccontextmanager
async def editing(
    lab: VendorLab, folder: Path, *more: str, editor: Editor | None = None, forms: bool = False
) -> AsyncIterator[Desk]:
    """Ends with the end of input, and expects the process to end by itself, in peace."""
    workspace, home = folder / "workspace", folder / "home"
    workspace.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    editor = editor or Editor()
    process = await started(lab, home, *more)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    connection = ClientSideConnection(editor, process.stdin, process.stdout, use_unstable_protocol=True)  # type: ignore[arg-type]  # an editor without files and terminals
    complaints = asyncio.create_task(process.stderr.read())
    form = ElicitationCapabilities(form=ElicitationFormCapabilities()) if forms else None
    try:
        hello = await connection.initialize(1, ClientCapabilities(elicitation=form))
        yield Desk(editor, connection, process, hello, workspace)
        process.stdin.close()
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await connection.close()
        said = (await complaints).decode()
    assert "Traceback" not in said, said


async def written(path: Path) -> int:
    """The number that a command has written there by now."""
    await soon(lambda: path.exists() and bool(path.read_text().strip()), 30)
    return int(await asyncio.to_thread(path.read_text))


async def gone(pid: int, seconds: float) -> None:
    """A process that nobody has waited for yet is gone, too."""
    stat = Path(f"/proc/{pid}/stat")

    def is_gone() -> bool:
        try:
            return stat.read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    await soon(is_gone, seconds)


async def soon(seen: Callable[[], bool], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not seen():  # noqa: ASYNC110 - another process does it, and tells nobody
            await asyncio.sleep(0.01)
