"""A chat as a configuration makes it, with a vendor's stand-in as its model. Everything else is real."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hummingbird.app.chat import ChatPartner, create_partner
from hummingbird.app.chat_context import ChatOptions
from hummingbird.config.loader import load_config
from hummingbird.core.events import EntryRecorded, RunEvent, RunOutcome, StatusMessage
from hummingbird.core.journal import JournalEntry
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionQuestion
from tests.standins.vendors.script import Call, Script, Step, Turn
from tests.standins.vendors.server import VendorLab

Kind = TypeVar("Kind", bound=JournalEntry)
MODEL, OTHER = "openai:gpt-6.1-terra", "openai:gpt-6.1-luna"
QUICK = "toolsets: [todo, memory, recall, terminal, workspace, delegate, mcp]"  # no sandbox to be started


@dataclass
class Person:
    """Says the same to every question, and keeps them."""

    answer: GrantScope | None = None
    asked: list[PermissionQuestion] = field(default_factory=list)
    name: str = "the test"

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        return PermissionAnswer(self.answer)


@dataclass
class Talking:
    partner: ChatPartner
    lab: VendorLab
    person: Person
    seen: list[RunEvent]

    async def say(self, text: str = "go") -> RunOutcome:
        return await self.partner.say(text)

    def written(self, kind: type[Kind]) -> list[Kind]:
        return [one.entry for one in self.seen if isinstance(one, EntryRecorded) and isinstance(one.entry, kind)]

    @property
    def told(self) -> list[str]:
        return [one.sentence for one in self.seen if isinstance(one, StatusMessage)]

    @property
    def models(self) -> list[str]:
        return [request.body["model"] for request in self.lab.requests]

    @property
    def offered(self) -> set[str]:
        return {tool["name"] for tool in self.lab.requests[0].body.get("tools", ())}


class Improvised(Script):
    """Answers whatever it is asked, as `answer` says."""

    def __init__(self, answer: Callable[[dict[str, Any]], Turn]) -> None:
        super().__init__()
        self._answer = answer

    def next(self, request: dict[str, Any]) -> Turn:
        return self._answer(request)


def call(name: str, **arguments: Any) -> Turn:
    return Turn(calls=(Call(name, arguments),))


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.strip("\n").splitlines())


@asynccontextmanager
async def talking(
    folder: Path,
    *steps: Step,
    chat: str = QUICK,
    settings: str = "",
    person: Person | None = None,
    environment: Mapping[str, str] | None = None,
    script: Script | None = None,
    change: Callable[[ChatOptions], ChatOptions] = lambda parts: parts,
) -> AsyncIterator[Talking]:
    """`chat` and `settings`: lines of YAML below those sections. All steps have to be played."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    said = "" if "model:" in settings else f"  model: {MODEL}\n"
    file = folder / "hummingbird.yaml"
    file.write_text(f"settings:\n{said}{indented(settings, 2)}chat:\n{indented(chat, 2)}")
    seen: list[RunEvent] = []
    asked = person or Person()
    with VendorLab(script or Script(steps)) as lab:
        variables = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HUMMINGBIRD_HOME": str(folder / "home"),
            "OPENAI_API_KEY": "key-of-the-test-0001",
            "OPENAI_BASE_URL": lab.openai_url,
            **(environment or {}),
        }
        parts = ChatOptions(
            configuration=load_config(file, variables),
            environment=variables,
            workspace=workspace,
            asker=asked,
            on_event=lambda event: seen.append(event),  # noqa: PLW0108 - an observer's argument has a name
        )
        partner = await create_partner(change(parts))
        try:
            yield Talking(partner, lab, asked, seen)
            lab.script.assert_consumed()
        finally:
            await partner.close()


def results(talk: Talking) -> Sequence[str]:
    """What tools gave back, as the last request to the model has it."""
    found = (item for item in talk.lab.requests[-1].body["input"] if item.get("type") == "function_call_output")
    return [str(item["output"]) for item in found]
