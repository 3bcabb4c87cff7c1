"""The bare loop for Anthropic's Messages: two cache breakpoints slide along the end of the history."""

import asyncio
import json
from typing import Any

import httpx2

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter

TOOL = {
    "name": dialogue.TOOL_NAME,
    "description": dialogue.TOOL_DESCRIPTION,
    "input_schema": dialogue.TOOL_SCHEMA,
}
HEADERS = {"x-api-key": "none", "anthropic-version": "2023-06-01", "content-type": "application/json"}


async def converse(meter: Meter) -> str:
    marked: list[dict[str, Any]] = [{"type": "text", "text": dialogue.QUESTION}]
    messages: list[Any] = [{"role": "user", "content": [marked[0]]}]
    request = {"model": dialogue.MODEL_ANTHROPIC, "max_tokens": 4096, "tools": [TOOL]}
    request |= {"system": dialogue.SYSTEM, "messages": messages}
    async with httpx2.AsyncClient(base_url=meter.url, headers=HEADERS, trust_env=False) as client:
        while True:
            marked[-1]["cache_control"] = {"type": "ephemeral"}
            if len(marked) > 2:
                del marked.pop(0)["cache_control"]
            response = await client.post("/v1/messages", content=json.dumps(request))
            response.raise_for_status()
            content = response.json()["content"]
            messages.append({"role": "assistant", "content": content})
            results = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": meter.echo(**block["input"])}
                for block in content
                if block["type"] == "tool_use"
            ]
            if not results:
                return str(content[0]["text"])
            messages.append({"role": "user", "content": results})
            marked.append(results[-1])


if __name__ == "__main__":
    clock = Meter()
    clock.finish(asyncio.run(converse(clock)))
