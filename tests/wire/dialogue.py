"""A conversation by hand: what the loop does between two model calls, without the loop.

Keeps messages, the cache mark and the memo of bytes as `Conversation` does; knows no wire.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hummingbird.core.messages import (
    AssistantMessage,
    EncodedMessages,
    Message,
    Notice,
    NoticeKind,
    ToolMessage,
    UserMessage,
)
from hummingbird.core.protocols.model import DeltaListener, Model, ModelReply, ModelRequest
from hummingbird.core.tool_spec import ToolDefinition

TOOLS = (
    ToolDefinition(
        "read",
        "Read a file.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
    ToolDefinition("wait", "Wait for the pipeline.", {"type": "object", "properties": {}}),
)
SYSTEM = "You find out why pipelines fail. " + "Be brief. " * 600  # long enough for every provider's cache


@dataclass
class Dialogue:
    messages: list[Message] = field(default_factory=lambda: [UserMessage("Why did it fail?")])
    tools: tuple[ToolDefinition, ...] = TOOLS
    system: str = SYSTEM
    cached: int = 0
    calls: int = 0
    encoded: EncodedMessages = field(default_factory=EncodedMessages)

    def request(self, *, disable_tools: bool = False) -> ModelRequest:
        self.calls += 1
        return ModelRequest(
            system=self.system,
            tools=self.tools,
            messages=self.messages,
            session_id="s1",
            call_id=f"c{self.calls}",
            cached_messages=self.cached,
            disable_tools=disable_tools,
            encoded=self.encoded,
            call_ids={c.id for m in self.messages if isinstance(m, AssistantMessage) for c in m.calls},
        )

    async def ask(
        self, model: Model, listen: DeltaListener | None = None, *, disable_tools: bool = False, keep: bool = True
    ) -> ModelReply:
        request = self.request(disable_tools=disable_tools)
        sent = len(self.messages)
        reply = await model.generate(request, listen)
        self.cached = sent
        if keep:
            self.messages.append(reply.message)
        return reply

    def answer(self, texts: Sequence[str] | None = None, *, failed: bool = False) -> None:
        """Results for the calls of the last message."""
        last = self.messages[-1]
        assert isinstance(last, AssistantMessage)
        for at, call in enumerate(last.calls):
            text = texts[at] if texts else f"what {call.name} says about {call.arguments}"
            self.messages.append(ToolMessage(call.id, call.name, text, failed))

    def notice(self, text: str, kind: NoticeKind = NoticeKind.SOFT_BUDGET) -> None:
        self.messages.append(Notice(kind, text))
