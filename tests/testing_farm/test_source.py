"""What the source offers, and that it touches nothing before it is asked."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import httpcore2
import jsonschema_rs
import pytest

from hummingbird.core.errors import CallDenied, SourceUnavailable, UsageError
from hummingbird.core.protocols.tools import DataSource, ToolContext, ToolToken
from hummingbird.core.tool_spec import ToolDefinition, ToolEffect
from hummingbird.models.rules_report.analysis_tools import ToolRole, find_analysis_tools
from hummingbird.testing_farm import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource
from tests.testing_farm.visited import OLD, RUN, no_pause


def test_it_offers_three_tools_that_read() -> None:
    source: DataSource = TestingFarmSource(TestingFarmSettings())
    assert source.name == "testing_farm"
    assert [tool.spec.name for tool in source.tools] == ["tf_get_request_status", "tf_get_results", "tf_get_test_log"]
    for tool in source.tools:
        assert (tool.spec.source, tool.spec.toolset, tool.is_available()) == ("testing_farm", "testing_farm", True)
        assert tool.spec.effects == {ToolEffect.READ}
        assert not tool.spec.trusted
        assert "not JUnit" in tool.spec.notes


def test_links_are_built_from_one_address() -> None:
    """The documented prompt writes [{request_id}]({artifacts_base}/{request_id}/)."""
    [metadata] = {tuple(tool.spec.metadata.items()) for tool in TestingFarmSource(TestingFarmSettings()).tools}
    assert metadata == (("artifacts_base", "https://artifacts.osci.redhat.com/testing-farm"),)
    public = TestingFarmSettings(artifacts=("https://artifacts.dev.testing-farm.io/",))
    [metadata] = {tuple(tool.spec.metadata.items()) for tool in TestingFarmSource(public).tools}
    assert metadata == (("artifacts_base", "https://artifacts.dev.testing-farm.io"),)


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


@pytest.mark.parametrize(
    ("artifacts", "address", "denied"),
    [
        ((), "10.1.2.3", False),  # as the internal ranch is, for the documented `testing_farm: {}`
        ((), "127.0.0.1", True),
        ((), "169.254.169.254", True),
        (("https://artifacts.osci.redhat.com.example/testing-farm/",), "10.1.2.3", True),
        (("https://artifacts.example/",), "10.1.2.3", True),
    ],
)
async def test_the_known_hosts_may_be_in_a_private_network_and_no_others(
    monkeypatch: pytest.MonkeyPatch, artifacts: tuple[str, ...], address: str, denied: bool
) -> None:
    async def home(host: str, port: int) -> Sequence[str]:
        return [address]

    reached: list[str] = []

    async def connect(_: Any, host: str, *__: Any) -> None:
        reached.append(host)
        raise httpcore2.ConnectError("as far as it goes here")

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    settings = TestingFarmSettings(artifacts=artifacts) if artifacts else TestingFarmSettings()
    url = f"{settings.artifacts[0]}{OLD}/out.log"
    source = TestingFarmSource(settings, resolve=home, sleep=no_pause)
    with pytest.raises(CallDenied if denied else SourceUnavailable, match="private or special" if denied else None):
        await source.tools[2]({"url": url}, ToolContext("s", "c"))
    await source.close()
    await source.close()
    assert set(reached) == (set() if denied else {address})


def test_the_model_without_a_model_finds_its_way_around() -> None:
    specs = [tool.spec for tool in TestingFarmSource(TestingFarmSettings()).tools]
    found = find_analysis_tools(ToolDefinition(spec.name, spec.description, spec.schema) for spec in specs)
    assert {offer.role: offer.tool.name for offer in found} == {
        ToolRole.RESULTS: "tf_get_results",
        ToolRole.TEST_LOG: "tf_get_test_log",
    }
