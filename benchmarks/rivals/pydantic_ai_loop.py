"""The conversation as pydantic-ai holds it: Agent over OpenAI chat, with the request limit lifted."""

import asyncio

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter


async def converse(meter: Meter) -> str:
    async def echo(text: str) -> str:
        return meter.echo(text)

    provider = OpenAIProvider(base_url=f"{meter.url}/v1", api_key="none")
    agent = Agent(OpenAIChatModel(dialogue.MODEL_CHAT, provider=provider), system_prompt=dialogue.SYSTEM)
    agent.tool_plain(description=dialogue.TOOL_DESCRIPTION)(echo)
    result = await agent.run(dialogue.QUESTION, usage_limits=UsageLimits(request_limit=None))
    return result.output


if __name__ == "__main__":
    clock = Meter()
    clock.finish(asyncio.run(converse(clock)))
