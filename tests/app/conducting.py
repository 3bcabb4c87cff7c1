"""An investigator over real parts: a case's GitLab, a bubblewrap sandbox, files, and a model that a script plays."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hummingbird.app.investigation import AgentInvestigator
from hummingbird.app.session_holder import SPENDING_FILE
from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.loader import load_config
from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.journal import JournalEntry, ToolStarted
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.protocols.storage import ObjectInfo, ObjectStream, ObjectVersion, VersionedContent
from hummingbird.core.protocols.tools import Tool
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.service.protocols import InvestigationRequest, InvestigationResult
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.journals import FileJournal
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.spending_store import SqliteSpendingStore
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

MODEL = "anthropic:claude-sonnet-5-5"
PROJECT = "acme/widgets"
ORCHESTRATOR = "writes-everything-0123456789abcdef"  # no shape that would give it away
WORKFLOW = "analyze-failures"
TASK = '{"project": "acme/widgets", "mr_iid": 7}'


def shell(command: str) -> Turn:
    return Turn(calls=(Call("sandbox_exec", {"command": command}),))


def order(session_id: str = "session", order_id: str = "order", cause: OrderCause = OrderCause.PIPELINE) -> WorkOrder:
    return WorkOrder(
        id=order_id, session_id=session_id, cause=cause, workflow=WORKFLOW, project=PROJECT, mr_iid=7, sha="a" * 40
    )


def configured(folder: Path, settings: str = "", workflow: str = "") -> Configuration:
    """With one workflow for every project. `settings` and `workflow` are lines of YAML, without their indentation."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "look.md").write_text("Find out why the pipeline failed.")
    lines = ["settings:", *(f"  {line}" for line in settings.splitlines()), "workflows:", f"  {WORKFLOW}:"]
    lines += ["    prompt: look.md", '    projects: {"*": {}}']
    lines += [f"    {line}" for line in workflow.splitlines()]
    file = folder / "hummingbird.yaml"
    file.write_text("\n".join(lines) + "\n")
    return load_config(file, None)


def applied(configuration: Configuration) -> ResolvedWorkflow:
    found = configuration.resolve(WORKFLOW, PROJECT)
    assert found is not None
    return found


class Stage:
    """One model server, one folder of sessions; as many investigators as there are processes."""

    def __init__(self, folder: Path, lab: VendorLab) -> None:
        self.folder, self.lab = folder, lab
        self.sessions = folder / "sessions"
        self.clock = ScriptedClock()
        self.environment = {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": lab.anthropic_url,
            "ORCHESTRATOR_GITLAB_TOKEN": ORCHESTRATOR,
        }

    def investigator(self, sessions: SessionStore | None = None) -> AgentInvestigator:
        spending = SqliteSpendingStore(self.folder / SPENDING_FILE, self.clock.now)
        kept = sessions or FolderSessionStore(self.sessions)
        return AgentInvestigator(kept, self.environment, spending=spending, clock=self.clock)

    def in_bucket(self, objects: "ShakyObjects") -> BucketSessionStore:
        return BucketSessionStore(objects, "memory://", self.clock.now)

    def configuration(self, settings: str = "", workflow: str = "") -> Configuration:
        return configured(self.folder / "config", f"model: {MODEL}\n{settings}", workflow)

    async def conduct(
        self,
        wanted: WorkOrder,
        text: str = TASK,
        *,
        sessions: SessionStore | None = None,
        settings: str = "",
        workflow: str = "",
        tools: Sequence[Tool] = (),
    ) -> InvestigationResult:
        configuration = self.configuration(settings, workflow)
        investigator = self.investigator(sessions)
        return await investigator.investigate(
            InvestigationRequest(wanted, configuration, applied(configuration), text, tools=tools)
        )

    def entries(self, session_id: str = "session") -> Sequence[JournalEntry]:
        journal = FileJournal(self.sessions / session_id / "journal.jsonl")
        journal.close()
        return journal.entries()


@contextmanager
def staged(folder: Path, *turns: object) -> Iterator[Stage]:
    """All turns must be used up."""
    with VendorLab(Script(list(turns))) as lab:  # type: ignore[arg-type] # turns and faults alike
        yield Stage(folder, lab)
        lab.script.assert_consumed()


@contextmanager
def on_a_case(name: str, folder: Path) -> Iterator[tuple[Scene, WorkOrder, str]]:
    """The scene, the order that its event leads to, and the text of it."""
    with Scene(find_case(name)) as scene:
        world = scene.worlds.gitlab
        wanted = WorkOrder(
            id="order",
            session_id="session",
            cause=OrderCause.PIPELINE,
            workflow=WORKFLOW,
            project=world.project.path,
            mr_iid=world.merge_request.iid,
            sha=world.merge_request.sha or "",
        )
        pipeline = scene.case.description["event"]["pipeline"]
        told = f'{{"workflow": "{WORKFLOW}", "project": "{wanted.project}", "mr_iid": {wanted.mr_iid}, '
        yield scene, wanted, told + f'"sha": "{wanted.sha}", "pipeline_id": {pipeline}}}'


class ShakyObjects:
    """A bucket in memory that can be told to be away (`down`), and to take nothing whose name ends in one of
    `refused`."""

    def __init__(self) -> None:
        self.kept = BucketObjectStore.in_memory()
        self.down = False
        self.refused: tuple[str, ...] = ()

    async def put(self, name: str, content: bytes) -> None:
        self._check_taken(name)
        await self.kept.put(name, content)

    async def get(self, name: str) -> bytes | None:
        self._check()
        return await self.kept.get(name)

    async def list_names(self, prefix: str) -> Sequence[str]:
        self._check()
        return await self.kept.list_names(prefix)

    async def delete(self, name: str) -> None:
        self._check()
        await self.kept.delete(name)

    async def get_versioned(self, name: str, most_bytes: int | None = None) -> VersionedContent | None:
        self._check()
        return await self.kept.get_versioned(name, most_bytes)

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        self._check_taken(name)
        return await self.kept.compare_and_swap(name, content, known)

    async def list_objects(self, prefix: str) -> Sequence[ObjectInfo]:
        self._check()
        return await self.kept.list_objects(prefix)

    async def put_stream(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        self._check_taken(name)
        return await self.kept.put_stream(name, chunks)

    async def open_stream(self, name: str) -> ObjectStream | None:
        self._check()
        return await self.kept.open_stream(name)

    async def content(self) -> dict[str, bytes]:
        """All there is, whatever mood it is in."""
        return {name: await self.kept.get(name) or b"" for name in await self.kept.list_names("")}

    def _check(self) -> None:
        if self.down:
            raise ObjectStoreUnusable("The store cannot be reached: try again later.")

    def _check_taken(self, name: str) -> None:
        self._check()
        if name.endswith(self.refused):
            raise ObjectStoreUnusable(f"The bucket does not take {name}: make room.")


async def until(holds: Callable[[], bool]) -> None:
    """What other threads and processes do is not told to us."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.05)


def begun(journal: Path, command: str) -> bool:
    """Whether the command runs, by the journal of a session that somebody else writes."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return any('"kind":"tool_started"' in line and command in line for line in lines)


async def begun_in(sessions: SessionStore, command: str, session_id: str = "session") -> None:
    """Returns when the command runs, by what is stored of the session."""
    async with asyncio.timeout(60):
        while not _runs(await sessions.load_entries(session_id), command):  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.05)


def _runs(entries: Sequence[JournalEntry], command: str) -> bool:
    return any(isinstance(one, ToolStarted) and command in one.arguments for one in entries)
