"""A scripted investigation against the strict Anthropic stand-in, with notices and one resume inside the TTL.

Gives back the bodies that were really sent, each with the moment it was sent; whoever wants to know what another
placement of breakpoints would have cost can then move them.
"""

import asyncio
import copy
import random
from dataclasses import dataclass
from typing import Any

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.journal import ModelCalled, NoticeShown
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.models.registry import ModelRegistry
from hummingbird.storage.journals import MemoryJournal
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Call, Part, Script, Turn
from tests.standins.vendors.server import VendorLab

MODEL = "claude-sonnet-5-5"
SECONDS_PER_TURN = 12.0
RESUME_AFTER_S = 200.0
WORKFLOW = "Find out why the pipeline failed. " * 160  # about what a workflow's text and tool notes weigh


@dataclass(frozen=True, slots=True)
class Sent:
    at: float
    body: dict[str, Any]
    output_tokens: int


def investigation(turns: int, seed: int = 7, *, long: bool = False) -> tuple[list[Sent], int]:
    """The requests of a first run with `turns` model calls and a resume of a third as many; and how many notices.

    `long`: every fourth answer has more blocks than a breakpoint looks back, as interleaved thinking makes them.
    """
    return asyncio.run(_investigate(turns, random.Random(seed), long))


async def _investigate(turns: int, dice: random.Random, long: bool) -> tuple[list[Sent], int]:
    clock, sent = ScriptedClock(), []
    more = max(3, turns // 3)
    script = Script([*_turns(turns, dice, long), *_turns(more, dice, long)])
    with VendorLab(script, clock=clock.now) as lab:
        models = ModelRegistry({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}, now=clock.now)
        journal = MemoryJournal()

        async def look(what: str) -> str:
            clock.advance(SECONDS_PER_TURN)
            return f"{what}: " + "x" * dice.randint(200, 4000)

        schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
        tools = [
            FunctionTool(ToolSpec(f"look_{n}", "Looks at a part of the pipeline. " * 8, schema), look) for n in range(8)
        ]
        setup = LoopConfig(
            models=[models.resolve(f"anthropic:{MODEL}")],
            toolbox=Toolbox(tools),
            system=WORKFLOW,
            clock=clock,
            limits=RunLimits(iterations=turns + 1, context_tokens=None),
        )
        first = await AgentLoop(journal, setup).run('{"project":"group/project","iid":1}')
        clock.advance(RESUME_AFTER_S)
        second = await AgentLoop(journal, setup).run("And what about the second job?")
        assert first.answered, first
        assert second.answered, second
        script.assert_consumed()
        for entry, record in zip(_calls(journal), lab.requests, strict=True):
            sent.append(Sent(entry, record.body, (record.usage or {}).get("output_tokens", 0)))
        await models.close()
    notices = sum(isinstance(entry, NoticeShown) for entry in journal.entries())
    return sent, notices


def _calls(journal: MemoryJournal) -> list[float]:
    return [entry.at for entry in journal.entries() if isinstance(entry, ModelCalled)]


def _turns(count: int, dice: random.Random, long: bool) -> list[Turn]:
    """Mostly one call a turn, sometimes several, once an empty answer (which is nudged), then the report."""
    made = []
    for number in range(count - 1):
        if number == count // 2:
            made.append(Turn())
            continue
        wide = dice.choice((1, 1, 1, 2, 5))
        asked = tuple(Call(f"look_{n}", {"what": f"part {number}.{n}.{dice.random()}"}) for n in range(wide))
        if long and number % 4 == 1:
            mixed = tuple(
                part for n in range(14) for part in (Part("thinking", f"Hm {n}."), Part("text", f"Step {n}."))
            )
            made.append(Turn(parts=mixed, calls=asked))
        else:
            made.append(Turn(thinking="Let me look. " * dice.randint(1, 12), calls=asked))
    return [*made, Turn(thinking="Now I know.", text="The cause is plain. " * 40)]


def without_marks(body: dict[str, Any]) -> dict[str, Any]:
    """The same request with every cache_control taken out."""
    bare = copy.deepcopy(body)
    bare.pop("cache_control", None)
    for block in _blocks(bare):
        block.pop("cache_control", None)
    return bare


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    system = body["system"] if isinstance(body.get("system"), list) else []
    contents = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
    return [*body.get("tools", []), *system, *(block for content in contents for block in content)]
