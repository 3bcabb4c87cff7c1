"""Keys that decide which model works, where it is, for how long and at what price."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.model_choice import price_overrides
from hummingbird.config.loader import load_config
from hummingbird.config.template import load_embedded
from hummingbird.core.errors import ConfigurationError
from hummingbird.core.journal import Compacted, EndReason, ToolFinished
from hummingbird.core.usage import TokenUsage
from hummingbird.evidence.citations.claims import REMOVED_QUOTATION
from hummingbird.evidence.citations.quote_checks import UNFOUND_LABEL
from hummingbird.models.registry import ModelRegistry
from hummingbird.service.protocols import InvestigationRequest
from tests.app.conducting import MODEL, Stage, applied, configured, order, shell, staged
from tests.config.effects.talking import Improvised
from tests.models.resolved import made, url
from tests.standins.vendors.script import Fault, Turn
from tests.standins.vendors.server import VendorLab

OTHER = "anthropic:claude-haiku-5-5"
REFUSED = Fault("status", status=401, type="authentication_error")
LEVELS = pytest.mark.parametrize("level", ["settings", "workflow"])
MILLION = TokenUsage(fresh=1_000_000, output=1_000_000, cache_read=1_000_000, cache_write=1_000_000)


def levels(level: str, near: str, far: str) -> tuple[str, str]:
    """What the settings and what the workflow say, so that `near` holds, on that level."""
    return (near, "") if level == "settings" else (far, near)


@LEVELS
async def test_model_is_the_one_that_is_asked(tmp_path: Path, level: str) -> None:
    with staged(tmp_path, Turn(text="ok")) as stage:
        settings = f"model: {OTHER if level == 'settings' else MODEL}"
        workflow = f"model: {OTHER}" if level == "workflow" else ""
        configuration = configured(tmp_path / "config", settings, workflow)
        await stage.investigator().investigate(
            InvestigationRequest(order(), configuration, applied(configuration), "Why?")
        )
        assert [request.body["model"] for request in stage.lab.requests] == ["claude-haiku-5-5"]


@LEVELS
async def test_fallback_models_take_over(tmp_path: Path, level: str) -> None:
    """Without any, rules alone write the report."""
    settings, workflow = levels(level, f"fallback_models: [{OTHER}]", "fallback_models: [digest]")
    with staged(tmp_path, REFUSED, Turn(text="second"), REFUSED) as stage:
        with_one = await stage.conduct(order("one"), settings=settings, workflow=workflow)
        without = await stage.conduct(order("two"))
    assert (with_one.model, without.model) == (OTHER, "digest")


@LEVELS
async def test_max_iterations_ends_a_run(tmp_path: Path, level: str) -> None:
    settings, workflow = levels(level, "max_iterations: 2", "max_iterations: 20")
    with staged(tmp_path, shell("true"), Turn(text="so far")) as stage:
        done = await stage.conduct(order(), settings=settings, workflow=workflow)
    assert done.outcome.reason is EndReason.MAX_ITERATIONS


@pytest.mark.thorough
async def test_with_more_iterations_the_same_run_is_completed(tmp_path: Path) -> None:
    with staged(tmp_path, shell("true"), Turn(text="so far")) as stage:
        done = await stage.conduct(order(), settings="max_iterations: 2", workflow="max_iterations: 20")
    assert done.outcome.reason is EndReason.COMPLETED


@pytest.mark.thorough
@pytest.mark.parametrize(("limit", "reason"), [(1_000, EndReason.CONTEXT_LIMIT), (60_000, EndReason.COMPLETED)])
@LEVELS
async def test_context_limit_ends_a_run(tmp_path: Path, level: str, limit: int, reason: EndReason) -> None:
    """And `wrap_up` makes a report of what was found until then."""
    settings, workflow = levels(level, f"context_limit: {limit}", "context_limit: 50000")
    with staged(tmp_path, shell("seq 900"), Turn(text="so far")) as stage:
        done = await stage.conduct(order(), settings=settings, workflow=workflow)
    assert (done.outcome.reason, done.outcome.text) == (reason, "so far")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("context", "summaries", "reason"),
    [("wrap_up", False, EndReason.CONTEXT_LIMIT), ("compact", True, EndReason.COMPLETED)],
)
async def test_context_says_what_a_full_context_leads_to(
    tmp_path: Path, context: str, summaries: bool, reason: EndReason
) -> None:
    """A report, or room for more."""
    count = iter(range(100))

    def answer(request: dict[str, Any]) -> Turn:
        """Works for 24 turns, or until it may not; a side task has no tools."""
        over = next(count) >= 24 or "last turn" in str(request["messages"][-2:])
        work = shell(f"seq {1000 + len(request['messages'])} 1300")
        return work if request.get("tools") and not over else Turn(text="so far")

    workflow = f"context: {context}\ncontext_limit: 11000"
    with VendorLab(Improvised(answer)) as lab:
        stage = Stage(tmp_path, lab)
        done = await stage.conduct(order(), settings="max_iterations: 40", workflow=workflow)
        made = [one for one in stage.entries() if isinstance(one, Compacted)]
    assert (bool(made), done.outcome.reason) == (summaries, reason)


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "in_a_file"), [(256, True), (4096, False)])
@LEVELS
async def test_max_inline_size_decides_what_becomes_a_file(
    tmp_path: Path, level: str, size: int, in_a_file: bool
) -> None:
    settings, workflow = levels(level, f"max_inline_size: {size}", "max_inline_size: 1000")
    with staged(tmp_path, shell("seq 300"), Turn(text="ok")) as stage:
        await stage.conduct(order(), settings=settings, workflow=workflow)
        (result,) = (one.text for one in stage.entries() if isinstance(one, ToolFinished))
    assert ("/tmp/data/_out/" in result) is in_a_file


async def test_the_documented_inline_size_keeps_what_a_command_prints(tmp_path: Path) -> None:
    printed = shell("yes 'an unremarkable line' | head -c 150000")
    with staged(tmp_path, printed, Turn(text="ok")) as stage:
        await stage.conduct(order(), workflow="max_inline_size: 200000\ncontext_limit: 500000")
        (result,) = (one.text for one in stage.entries() if isinstance(one, ToolFinished))
    assert result.count("an unremarkable line\n") == 150_000 // 21


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("citations: strict", REMOVED_QUOTATION),
        ("citations: mark", f"{UNFOUND_LABEL}\n\n```\nSegmentation fault\n```"),
        ("citations: off", "```\nSegmentation fault\n```"),
        ("", f"{UNFOUND_LABEL}\n\n```\nSegmentation fault\n```"),
    ],
)
async def test_citations_decide_what_becomes_of_an_invented_line(tmp_path: Path, line: str, left: str) -> None:
    with staged(tmp_path, Turn(text="The log says:\n\n```\nSegmentation fault\n```")) as stage:
        done = await stage.conduct(order(), workflow=line)
    assert done.outcome.text == f"The log says:\n\n{left}"


def test_the_shipped_failure_analysis_is_strict_and_the_review_marks() -> None:
    shipped = load_embedded().workflows
    assert (shipped["analyze-failures"].citations, shipped["code-review"].citations) == ("strict", "mark")


async def test_prompt_is_what_the_model_is_told(tmp_path: Path) -> None:
    with staged(tmp_path, Turn(text="ok"), Turn(text="ok")) as stage:
        await stage.conduct(order("one"))
        file = tmp_path / "config" / "hummingbird.yaml"
        file.write_text(file.read_text().replace("look.md", "other.md"))
        (tmp_path / "config" / "other.md").write_text("Count the birds.")
        other = load_config(file, None)
        await stage.investigator().investigate(InvestigationRequest(order("two"), other, applied(other), "Why?"))
        first, second = (str(request.body["system"]) for request in stage.lab.requests)
    assert ("Find out why" in first, "Count the birds." in first) == (True, False)
    assert ("Find out why" in second, "Count the birds." in second) == (False, True)


@pytest.mark.parametrize("line", ["context: Make Room", "action: open_an_issue", "nothing_found: shout"])
def test_what_is_not_offered_is_refused_and_not_ignored(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigurationError, match=line.split(":", maxsplit=1)[0]):
        configured(tmp_path, workflow=line)


@pytest.mark.parametrize(
    ("regions", "region"),
    [
        ("{claude: us-east5}", "us-east5"),
        ("{claude: us-east5, claude-haiku: europe-west1}", "europe-west1"),
        ("{gemini: us-east5}", "asia-east1"),
    ],
)
def test_model_regions_are_where_models_are_asked(tmp_path: Path, regions: str, region: str) -> None:
    """The longest beginning of a name holds, and the environment where none fits."""
    settings = configured(tmp_path, f"model_regions: {regions}").settings
    given = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "asia-east1"}
    address = url(made("claude-haiku-5-5", given, model_regions=settings.model_regions))
    assert f"https://{region}-aiplatform.googleapis.com/" in address
    assert f"/locations/{region}/" in address


@pytest.mark.parametrize(
    ("prices", "usd"),
    [
        ("{input: 1, output: 10}", 13),  # of the cache as of fresh ones
        ("{input: 2, output: 10}", 16),
        ("{input: 1, output: 20}", 23),
        ("{input: 1, output: 10, cache_read: 0.25}", "12.25"),
        ("{input: 1, output: 10, cache_write: 3}", 15),
    ],
)
def test_each_price_is_in_the_bill(tmp_path: Path, prices: str, usd: str) -> None:
    """A million tokens of each kind."""
    settings = configured(tmp_path, f'prices: {{"{MODEL}": {prices}}}').settings
    models = ModelRegistry({"ANTHROPIC_API_KEY": "k"}, price_overrides=price_overrides(settings.prices))
    assert models.resolve(MODEL).price(MILLION) == Decimal(usd)
