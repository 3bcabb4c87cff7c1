"""The conversation as langchain holds it: create_agent (a langgraph) over ChatOpenAI, its limit raised."""

import asyncio
import os

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter


async def converse(meter: Meter) -> str:
    @tool(description=dialogue.TOOL_DESCRIPTION)
    async def echo(text: str) -> str:
        return meter.echo(text)

    os.environ["LANGSMITH_TRACING"] = "false"
    model = ChatOpenAI(model=dialogue.MODEL_CHAT, base_url=f"{meter.url}/v1", api_key="none", use_responses_api=False)
    agent = create_agent(model, [echo], system_prompt=dialogue.SYSTEM)
    question = {"messages": [{"role": "user", "content": dialogue.QUESTION}]}
    state = await agent.ainvoke(question, {"recursion_limit": meter.turns * 4 + 20})
    return state["messages"][-1].text


if __name__ == "__main__":
    clock = Meter()
    clock.finish(asyncio.run(converse(clock)))
