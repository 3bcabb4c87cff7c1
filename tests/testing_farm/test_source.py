"""What the source offers, and that it touches nothing before it is asked."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import jsonschema_rs
import pytest

from hummingbird.core.errors import CallDenied, UsageError
from hummingbird.core.protocols.tools import DataSource, ToolContext, ToolToken
from hummingbird.core.tool_spec import ToolDefinition, ToolEffect
from hummingbird.models.rules_report.analysis_tools import ToolRole, find_analysis_tools
from hummingbird.testing_farm.settings import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource
from tests.testing_farm.visited import OLD, RUN


def test_it_offers_three_tools_that_read() -> None:
    source: DataSource = TestingFarmSource(TestingFarmSettings())
    assert source.name == "testing_farm"
    assert [tool.spec.name for tool in source.tools] == ["tf_get_request_status", "tf_get_results", "tf_get_test_log"]
    for tool in source.tools:
        assert (tool.spec.source, tool.spec.toolset, tool.is_available()) == ("testing_farm", "testing_farm", True)
        assert tool.spec.effects == {ToolEffect.READ}
        assert not tool.spec.trusted
        assert "not JUnit" in tool.spec.notes


def test_without_configuration_the_two_known_bases_are_allowed_with_their_slash() -> None:
    [metadata] = {tuple(tool.spec.metadata.items()) for tool in TestingFarmSource(TestingFarmSettings()).tools}
    bases = "https://artifacts.dev.testing-farm.io/ https://artifacts.osci.redhat.com/testing-farm/"
    assert metadata == (("artifacts_base", bases),)


@pytest.mark.parametrize(
    ("tool", "arguments", "valid"),
    [
        (0, {"request_id": RUN}, True),
        (1, {"request_id": OLD.upper()}, True),
        (0, {}, False),
        (0, {"request_id": "../../user"}, False),
        (0, {"request_id": RUN + "\n"}, False),
        (1, {"request_id": RUN, "api_url": "http://x"}, False),
        (2, {"url": "https://a.example/"}, True),
        (2, {"url": "a/b.log", "request_id": RUN}, True),
        (2, {"request_id": RUN}, False),
        (2, {"url": ""}, False),
        (2, {"url": "x" * 5000}, False),
    ],
)
def test_arguments_are_narrow(tool: int, arguments: dict[str, Any], valid: bool) -> None:
    spec = TestingFarmSource(TestingFarmSettings()).tools[tool].spec
    assert jsonschema_rs.is_valid(dict(spec.schema), arguments) is valid


def test_the_token_is_masked_and_shown_nowhere() -> None:
    settings = TestingFarmSettings(token=ToolToken("s3cret"))
    source = TestingFarmSource(settings)
    assert list(source.secrets) == ["s3cret"]
    said = chain.from_iterable((repr(tool.spec), repr(settings)) for tool in source.tools)
    assert not any("s3cret" in text for text in said)


@pytest.mark.parametrize(
    "settings",
    [
        TestingFarmSettings(api_url="api.testing-farm.io"),
        TestingFarmSettings(artifacts=("artifacts.example",)),
        TestingFarmSettings(artifacts=("http://10.0.0.1/",)),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_asked(settings: TestingFarmSettings) -> None:
    with pytest.raises(UsageError):
        TestingFarmSource(settings)


async def test_an_allowed_name_that_leads_home_is_denied() -> None:
    asked: list[str] = []

    async def home(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["10.1.2.3"]

    source = TestingFarmSource(TestingFarmSettings(), resolve=home)
    with pytest.raises(CallDenied, match="private or special network"):
        await source.tools[2]({"url": f"http://artifacts.dev.testing-farm.io/{OLD}/out.log"}, ToolContext("s", "c"))
    await source.close()
    await source.close()
    assert asked == ["artifacts.dev.testing-farm.io"]


def test_the_model_without_a_model_finds_its_way_around() -> None:
    specs = [tool.spec for tool in TestingFarmSource(TestingFarmSettings()).tools]
    found = find_analysis_tools(ToolDefinition(spec.name, spec.description, spec.schema) for spec in specs)
    assert {offer.role: offer.tool.name for offer in found} == {
        ToolRole.RESULTS: "tf_get_results",
        ToolRole.TEST_LOG: "tf_get_test_log",
    }
