"""The bare loop that everything is compared with: OpenAI chat over httpx2, history encoded anew in each turn.

No retries, no limits, no journal, no types: only what it takes to hold the conversation.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter

FUNCTION = {
    "name": dialogue.TOOL_NAME,
    "description": dialogue.TOOL_DESCRIPTION,
    "parameters": dialogue.TOOL_SCHEMA,
}


async def converse(meter: Meter, encode: Callable[[Any], str | bytes] = json.dumps) -> str:
    messages: list[Any] = [
        {"role": "system", "content": dialogue.SYSTEM},
        {"role": "user", "content": dialogue.QUESTION},
    ]
    request = {
        "model": dialogue.MODEL_CHAT,
        "messages": messages,
        "tools": [{"type": "function", "function": FUNCTION}],
    }
    headers = {"authorization": "Bearer none", "content-type": "application/json"}
    async with httpx2.AsyncClient(base_url=meter.url, headers=headers, trust_env=False) as client:
        while True:
            response = await client.post("/v1/chat/completions", content=encode(request))
            response.raise_for_status()
            message = response.json()["choices"][0]["message"]
            messages.append(message)
            for call in message.get("tool_calls") or ():
                result = meter.echo(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            if not message.get("tool_calls"):
                return str(message["content"])


if __name__ == "__main__":
    clock = Meter()
    clock.finish(asyncio.run(converse(clock)))
