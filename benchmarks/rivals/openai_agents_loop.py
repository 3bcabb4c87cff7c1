"""The conversation as openai-agents holds it: Runner over chat completions, tracing off, its limit raised."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter


async def converse(meter: Meter) -> str:
    @function_tool(description_override=dialogue.TOOL_DESCRIPTION)
    async def echo(text: str) -> str:
        return meter.echo(text)

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{meter.url}/v1", api_key="none")
    model = OpenAIChatCompletionsModel(dialogue.MODEL_CHAT, client)
    agent = Agent(name="bench", instructions=dialogue.SYSTEM, model=model, tools=[echo])
    config = RunConfig(tracing_disabled=True)
    result = await Runner.run(agent, dialogue.QUESTION, max_turns=meter.turns + 5, run_config=config)
    return result.final_output


if __name__ == "__main__":
    clock = Meter()
    clock.finish(asyncio.run(converse(clock)))
