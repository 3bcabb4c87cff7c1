"""A model that answers at once: `echo` for N turns, then a final text, as OpenAI chat or Anthropic Messages.

It runs in its own process, prints its port, and neither parses nor encodes anything while the clock runs.

    …/v1/chat/completions, …/v1/messages   the part before /v1/ names a conversation: many can run at once
    /reset?turns=N[&closing=TOOL]          a new script; some loops end only when a certain tool is called
    /seen                                  how many requests there were since the reset

With VALIDATE=1 each request is checked, and refused with status 400 when it is wrong.
"""

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs

from benchmarks.overhead import dialogue
from benchmarks.overhead.validate import InvalidRequestError, Witness, call_id

PROMPT_TOKENS, TURN_TOKENS, OUTPUT_TOKENS = 320, 300, 24


def chat_reply(turn: int, call: tuple[str, dict[str, str]] | None) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if call else dialogue.FINAL,
        "refusal": None,
    }
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": call_id("chat", turn), "type": "function", "function": function}]
    prompt = PROMPT_TOKENS + turn * TURN_TOKENS
    return {
        "id": f"chatcmpl-{turn:024d}",
        "object": "chat.completion",
        "created": 1_780_000_000 + turn,
        "model": dialogue.MODEL_CHAT,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "tool_calls" if call else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": prompt + OUTPUT_TOKENS,
            "prompt_tokens_details": {"cached_tokens": prompt - TURN_TOKENS if turn else 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def anthropic_reply(turn: int, call: tuple[str, dict[str, str]] | None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": dialogue.FINAL}
    if call:
        block = {"type": "tool_use", "id": call_id("anthropic", turn), "name": call[0], "input": call[1]}
    prompt = PROMPT_TOKENS + turn * TURN_TOKENS
    return {
        "id": f"msg_{turn:024d}",
        "type": "message",
        "role": "assistant",
        "model": dialogue.MODEL_ANTHROPIC,
        "content": [block],
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 4,
            "output_tokens": OUTPUT_TOKENS,
            "cache_creation_input_tokens": TURN_TOKENS if turn else prompt,
            "cache_read_input_tokens": prompt - TURN_TOKENS if turn else 0,
            "cache_creation": {
                "ephemeral_5m_input_tokens": TURN_TOKENS if turn else prompt,
                "ephemeral_1h_input_tokens": 0,
            },
            "service_tier": "standard",
        },
    }


def http(status: str, answer: object) -> bytes:
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def refusal(status: str, why: str) -> bytes:
    return http(status, {"type": "error", "error": {"type": "invalid_request_error", "message": why, "code": None}})


class Script:
    """All answers to all turns, encoded beforehand, and how far each conversation has come."""

    def __init__(self, turns: int, closing: str, *, validating: bool) -> None:
        last = (closing, {"answer": dialogue.FINAL}) if closing else None
        said = [(dialogue.TOOL_NAME, {"text": dialogue.asked(turn)}) for turn in range(turns)]
        self._answers = {
            "chat": [http("200 OK", chat_reply(turn, call)) for turn, call in enumerate([*said, last])],
            "anthropic": [http("200 OK", anthropic_reply(turn, call)) for turn, call in enumerate([*said, last])],
        }
        self._next: dict[str, int] = {}
        self._witnesses: dict[str, Witness] | None = {} if validating else None

    @property
    def seen(self) -> int:
        return sum(self._next.values())

    def answer(self, dialect: str, conversation: str, body: bytes) -> bytes:
        turn = self._next.get(conversation, 0)
        self._next[conversation] = turn + 1
        answers = self._answers[dialect]
        if turn >= len(answers):
            return refusal("400 Bad Request", "the script is over; reset it")
        if self._witnesses is not None:
            try:
                self._witnesses.setdefault(conversation, Witness()).check(dialect, body, turn)
            except (InvalidRequestError, LookupError, TypeError, ValueError) as wrong:
                print(f"invalid request: {wrong!r}", file=sys.stderr, flush=True)
                return refusal("400 Bad Request", f"{wrong!r}")
        return answers[turn]


class Service:
    """From request to answer, across all connections."""

    def __init__(self, *, validating: bool) -> None:
        self._validating = validating
        self._script = Script(0, "", validating=validating)

    def respond(self, target: str, body: bytes) -> bytes:
        path, _, query = target.partition("?")
        if path.endswith("/v1/chat/completions"):
            return self._script.answer("chat", path, body)
        if path.endswith("/v1/messages"):
            return self._script.answer("anthropic", path, body)
        if path == "/reset":
            wanted = parse_qs(query)
            closing = wanted.get("closing", [""])[0]
            self._script = Script(int(wanted["turns"][0]), closing, validating=self._validating)
            return http("200 OK", {"turns": int(wanted["turns"][0])})
        if path == "/seen":
            return http("200 OK", {"seen": self._script.seen})
        return refusal("404 Not Found", f"no such path: {path}")


class Connection(asyncio.Protocol):
    """One kept-alive connection. Bodies must carry a content-length, as those of every client here do."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._received = bytearray()
        self._target = ""
        self._needed = -1  # bytes of head and body together; unknown until the head is complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while self._head_is_complete() and len(self._received) >= self._needed:
            body = bytes(self._received[self._body_at : self._needed])
            del self._received[: self._needed]
            self._needed = -1
            self._transport.write(self._service.respond(self._target, body))

    def _head_is_complete(self) -> bool:
        if self._needed >= 0:
            return True
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *fields = self._received[:end].decode("latin-1").split("\r\n")
        lengths = [field.split(":", 1)[1] for field in fields if field.lower().startswith("content-length:")]
        self._target = first.split(" ")[1]
        self._body_at = end + 4
        self._needed = self._body_at + int(lengths[0] if lengths else 0)
        return True


async def serve() -> None:
    service = Service(validating=os.environ.get("VALIDATE") == "1")
    server = await asyncio.get_running_loop().create_server(lambda: Connection(service), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
