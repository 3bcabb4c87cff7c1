"""What the mock insists on when VALIDATE=1: the history only grows, and every call is paired with its result.

Some loops (smolagents) retell calls and results as prose; there the call's id and the result must appear.
Refuses to know anything of sockets or of time: while the clock runs, requests are not even parsed.
"""

import json
import re
from typing import Any

from benchmarks.overhead import dialogue

TOLD_CALL = re.compile(r"call_(\d{24})")
TOLD_RESULT = re.compile(r"turn (\d+)\n\[unit\]")  # how every result of the tool begins
Step = tuple[str, str]


class InvalidRequestError(Exception):
    """The request is not one that a careful provider would accept, or not this turn's."""


class Witness:
    """Remembers one conversation; raises InvalidRequestError on a request that does not continue it."""

    def __init__(self) -> None:
        self._before: list[Any] = []

    def check(self, dialect: str, body: bytes, turn: int) -> None:
        request = json.loads(body)
        demand(not request.get("stream"), "streaming was not asked for")
        demand(body.count(b'"cache_control"') <= 4, "more than four cache breakpoints")
        messages = chat_messages(request) if dialect == "chat" else anthropic_messages(request)
        demand(messages[: len(self._before)] == self._before, f"turn {turn} rewrites the history")
        demand(turn == 0 or len(messages) > len(self._before), f"turn {turn} adds nothing")
        self._before = messages
        steps = [step for message in messages for step in steps_of(message)]
        demand(paired(steps, turn), f"turn {turn}: calls and results do not pair: {steps[-4:]}")
        told = json.dumps(messages, ensure_ascii=False)
        for earlier in range(turn):
            result = json.dumps(dialogue.echo(dialogue.asked(earlier)).strip(), ensure_ascii=False)[1:-1]
            demand(result in told, f"turn {turn} lost the result of turn {earlier}")


def demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidRequestError(otherwise)


def chat_messages(request: dict[str, Any]) -> list[Any]:
    names = [tool["function"]["name"] for tool in request["tools"]]
    demand(dialogue.TOOL_NAME in names, "the tool is missing")
    messages: list[Any] = request["messages"]
    first, *rest = messages
    demand(first["role"] in ("system", "developer"), "no system prompt")
    demand(dialogue.SYSTEM.strip() in prose(first), "another system prompt")
    return rest


def anthropic_messages(request: dict[str, Any]) -> list[Any]:
    demand(dialogue.TOOL_NAME in [tool["name"] for tool in request["tools"]], "the tool is missing")
    demand(dialogue.SYSTEM.strip() in prose({"content": request["system"]}), "another system prompt")
    demand(isinstance(request.get("max_tokens"), int), "max_tokens is required")
    roles = [message["role"] for message in request["messages"]]
    demand(roles == [("user", "assistant")[i % 2] for i in range(len(roles))], "roles do not alternate")
    return [without_breakpoints(message) for message in request["messages"]]


def without_breakpoints(message: dict[str, Any]) -> dict[str, Any]:
    if isinstance(message["content"], str):
        return message
    blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]]
    return {**message, "content": blocks}


def prose(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def steps_of(message: dict[str, Any]) -> list[Step]:
    if message["role"] == "tool":
        return [("result", message["tool_call_id"])]
    if message.get("tool_calls"):
        return [("call", call["id"]) for call in message["tool_calls"]]
    blocks = message["content"] if isinstance(message["content"], list) else []
    native = [("call", block["id"]) for block in blocks if block["type"] == "tool_use"]
    native += [("result", block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
    return native or steps_told(message["role"], prose(message))


def steps_told(role: str, text: str) -> list[Step]:
    kind, pattern = ("call", TOLD_CALL) if role == "assistant" else ("result", TOLD_RESULT)
    return [(kind, call_id("chat", int(turn))) for turn in pattern.findall(text)]


def paired(steps: list[Step], turn: int) -> bool:
    """A call and its result for each turn so far, in order. Ids are the loop's own business as long as they agree."""
    ids = [name for kind, name in steps if kind == "call"]
    wanted = [(kind, name) for name in ids for kind in ("call", "result")]
    return steps == wanted and len(ids) == len(set(ids)) == turn


def call_id(dialect: str, turn: int) -> str:
    return f"{'call' if dialect == 'chat' else 'toolu'}_{turn:024d}"
