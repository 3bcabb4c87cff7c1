"""`digest` as the last link of a chain, in the middle of somebody else's work, and by its name."""

import json
from decimal import Decimal
from typing import Any

import pytest

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.tools.sandbox_tools import create_sandbox_tools
from hummingbird.core.errors import CreditExhausted, HummingbirdError, ProviderUnavailable
from hummingbird.core.events import CallDelta, Delta, TextDelta
from hummingbird.core.journal import EndReason, ModelSwitched, ToolStarted
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.tool_spec import ToolDefinition, ToolSpec
from hummingbird.core.usage import TokenUsage
from hummingbird.models.registry import ModelRegistry
from hummingbird.models.rules_report.rules_model import RulesModel
from hummingbird.storage.journals import MemoryJournal
from tests.agent.benches import start, workbench
from tests.models.rules_report.forge import Forge, listed
from tests.models.rules_report.play import digest, play, setup_of
from tests.models.rules_report.samples import COMPILE, log, long_log
from tests.standins.scripted_model import ScriptedModel, tool_call_reply

DOWN: list[Any] = [ProviderUnavailable("overloaded")] * 5


def forge_that_fails(**logs: str) -> Forge:
    return Forge([listed(901, "build")], {901: logs.get("log") or log(COMPILE, "engine")})


@pytest.mark.parametrize("error", [ProviderUnavailable("overloaded"), CreditExhausted("no credit")])
async def test_a_report_is_written_when_every_provider_is_down(error: HummingbirdError) -> None:
    down = [ScriptedModel([error] * 5, name=f"m:{number}") for number in (1, 2)]
    forge = forge_that_fails()
    played = await play(forge.order, forge.tools(), models=[*down, digest()])
    assert played.outcome.reason is EndReason.COMPLETED
    assert "**Verdict: code**" in played.text
    assert [entry.model for entry in played.entries if isinstance(entry, ModelSwitched)] == ["m:2", "digest"]


async def test_calls_that_another_model_made_count_as_made() -> None:
    """It gave up in the middle: nothing is asked twice, and what it had read is used."""
    first = ScriptedModel(
        [
            tool_call_reply(("gitlab_get_mr_details", '{"iid": 7, "project": "acme/rocket"}', "x1")),
            tool_call_reply(
                ("gitlab_get_pipeline_jobs", '{"pipeline_id": 500, "project": "acme/rocket"}', "x2"), text="Hm."
            ),
            *DOWN,
        ],
        name="m:1",
    )
    forge = forge_that_fails()
    played = await play(forge.order, forge.tools(), models=[first, digest()])
    assert sorted(forge.shape) == ["change", "diff", "jobs", "log"]
    assert "**Verdict: code**" in played.text


async def test_a_log_that_another_model_fetched_into_the_sandbox_is_searched_there() -> None:
    order = {"tool": "gitlab_get_job_log", "arguments": {"project": "acme/rocket", "job_id": 901}, "path": "job.log"}
    first = ScriptedModel([tool_call_reply(("fetch_to_sandbox", json.dumps(order), "x1")), *DOWN], name="m:1")
    forge = forge_that_fails(log=long_log(COMPILE, "engine"))
    tools = forge.tools()
    async with workbench() as bench:
        await start(bench)
        with_sandbox = create_sandbox_tools(bench, tools, Secrets())
        played = await play(
            forge.order, [*with_sandbox.tools, *tools], models=[first, digest()], shape=with_sandbox.shape
        )
    assert forge.shape.count("log") == 1
    assert any(isinstance(e, ToolStarted) and "/tmp/data/job.log" in e.arguments for e in played.entries)
    assert "4004: src/engine.c:42:5: error: 'throttle' undeclared" in played.text


@pytest.mark.thorough
async def test_a_run_whose_process_died_anywhere_goes_on_and_asks_nothing_twice() -> None:
    """It keeps nothing in memory: whoever goes on from the journal says what would have been said."""
    forge = forge_that_fails()
    straight = await play(forge.order, forge.tools())
    for kept in range(3, len(straight.entries)):
        journal = MemoryJournal(straight.entries[:kept])
        outcome = await AgentLoop(journal, setup_of(forge.tools()), "session-1").resume()
        started = [(e.name, e.arguments) for e in journal.entries() if isinstance(e, ToolStarted)]
        assert len(started) == len(set(started))
        lost = "outcome unknown" in outcome.text or "not run" in outcome.text
        assert lost or outcome.text == straight.text


async def test_with_few_turns_left_it_reports_what_it_has() -> None:
    forge = forge_that_fails()
    played = await play(forge.order, forge.tools(), limits=RunLimits(iterations=2))
    assert played.outcome.reason is EndReason.MAX_ITERATIONS
    assert played.text.startswith("## Failure report")
    assert "log" not in forge.shape


async def test_the_answer_is_streamed_like_that_of_any_model() -> None:
    seen: list[Delta] = []
    forge = forge_that_fails()
    tools = [tool.spec for tool in forge.tools()]
    request = ModelRequest("s", tuple(map(_defined, tools)), [UserMessage(forge.order)], "s", "c")
    reply = await digest().generate(request, seen.append)
    assert "".join(delta.text for delta in seen if isinstance(delta, TextDelta)) == reply.message.text
    spoken = [(d.index, d.name, d.part) for d in seen if isinstance(d, CallDelta)]
    assert spoken == [(at, call.name, call.arguments) for at, call in enumerate(reply.message.calls)]
    assert len(spoken) == 2


def _defined(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(spec.name, spec.description, spec.schema)


@pytest.mark.parametrize("name", ["digest", " Digest "])
def test_it_is_found_by_its_name_without_any_key_and_costs_nothing(name: str) -> None:
    model = ModelRegistry({}).resolve(name)
    assert isinstance(model, RulesModel)
    assert model.name == "digest"
    assert model.price(TokenUsage(fresh=10)) == Decimal(0)
    assert model.disabling_tools_is_free
    assert model.context_tokens >= 1_000_000


async def test_credentials_are_nothing_to_refresh() -> None:
    model = digest()
    assert await model.refresh_credentials() is False
    await model.close()
