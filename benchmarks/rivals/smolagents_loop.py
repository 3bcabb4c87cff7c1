"""The conversation as smolagents holds it: ToolCallingAgent, silent, with the others' system prompt.

It ends only when the model calls `final_answer`, so the mock has to be reset with that closing.
"""

from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool
from smolagents.agents import EMPTY_PROMPT_TEMPLATES

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter


def converse(meter: Meter) -> str:
    @tool
    def echo(text: str) -> str:
        """Return the text and the part of the log around it.

        Args:
            text: What to look up.
        """
        return meter.echo(text)

    model = OpenAIModel(dialogue.MODEL_CHAT, api_base=f"{meter.url}/v1", api_key="none")
    prompts = {**EMPTY_PROMPT_TEMPLATES, "system_prompt": dialogue.SYSTEM}
    agent = ToolCallingAgent(
        [echo], model, prompt_templates=prompts, max_steps=meter.turns + 5, verbosity_level=LogLevel.OFF
    )
    return str(agent.run(dialogue.QUESTION))


if __name__ == "__main__":
    clock = Meter()
    clock.finish(converse(clock))
