"""Konflux as a source: what it offers, whom it tells its credentials, and what the operator must fix."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.errors import ClusterUnusable, UsageError
from hummingbird.core.limits import METADATA_BYTES
from hummingbird.core.protocols.tools import DataSource
from hummingbird.konflux import KonfluxSettings
from hummingbird.konflux import source as tool_specs
from hummingbird.konflux.source import KonfluxSource
from tests.clients.written import OURS, program, written
from tests.konflux.stage import SHA, TENANT, Asked, before, konflux, thing

API = "https://api.kflux.example.com:6443/ns/acme-tenant"
UI = "https://konflux-ui.apps.kflux.example.com/ns/acme-tenant"


def test_nothing_is_read_or_asked_when_it_is_made_and_all_five_tools_are_there() -> None:
    source: DataSource = KonfluxSource(KonfluxSettings(API, kubeconfig="/nowhere/at/all"), {})
    assert source.name == "konflux"
    assert [tool.spec.name for tool in source.tools] == [
        "konflux_list_pipelineruns",
        "konflux_list_taskruns",
        "konflux_list_pods",
        "konflux_get_pod",
        "konflux_get_pod_log",
    ]
    assert {(tool.spec.source, tool.spec.toolset) for tool in source.tools} == {("konflux", "konflux")}
    assert list(source.secrets) == []


def test_every_tool_says_where_people_see_the_tenant() -> None:
    for spec in tool_specs.build_specs(UI):
        assert spec.metadata == {"konflux_ui": UI}
        assert len(json.dumps(dict(spec.metadata))) <= METADATA_BYTES
        assert f"{UI}/pipelinerun/NAME" in spec.notes
    assert all(not spec.metadata and "Link a" not in spec.notes for spec in tool_specs.build_specs(""))


def test_the_tools_are_accepted_alone_and_together() -> None:
    """A description names another tool only while that one is enabled."""
    tools = KonfluxSource(KonfluxSettings(API), {}).tools
    names = [tool.spec.name for tool in tools]
    assert "konflux_get_pod_log gives its log" in description(Toolbox(tools), "konflux_list_taskruns")
    for tool in tools:
        alone = Toolbox([tool], hidden=names)
        told = description(alone, tool.spec.name) + alone.notes
        assert [name for name in names if name != tool.spec.name and name in told] == []


def description(toolbox: Toolbox, name: str) -> str:
    return next(each.description for each in toolbox.definitions if each.name == name)


@pytest.mark.parametrize(
    ("tool", "arguments", "fine"),
    [
        ("list_pipelineruns", {"sha": SHA}, True),
        ("list_pipelineruns", {"sha": "a" * 64}, True),
        ("list_pipelineruns", {}, False),
        ("list_pipelineruns", {"sha": "main"}, False),
        ("list_pipelineruns", {"sha": f"{SHA},x=y"}, False),
        ("list_pipelineruns", {"sha": f"{SHA}\n"}, False),
        ("list_pipelineruns", {"sha": SHA, "namespace": "other"}, False),
        ("list_taskruns", {"pipelinerun": "run-1.x"}, True),
        ("list_taskruns", {"pipelinerun": "run,other!=x"}, False),
        ("list_taskruns", {"pipelinerun": "r" * 64}, False),
        ("get_pod", {"pod": "p" * 253}, True),
        ("get_pod", {"pod": "../secrets/token"}, False),
        ("get_pod", {"pod": "p/log"}, False),
        ("get_pod", {"pod": ".."}, False),
        ("get_pod_log", {"pod": "p", "container": "step-build"}, True),
        ("get_pod_log", {"pod": "p", "container": "a b"}, False),
    ],
)
def test_arguments_are_narrow(tool: str, arguments: dict[str, str], fine: bool) -> None:
    schema = next(spec.schema for spec in tool_specs.build_specs(UI) if spec.name == f"konflux_{tool}")
    assert jsonschema_rs.is_valid(dict(schema), arguments) is fine


def test_a_cluster_without_its_tenant_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="/ns/TENANT"):
        KonfluxSource(KonfluxSettings("https://api.kflux.example.com:6443"), {})


async def test_a_kubeconfig_that_cannot_be_used_fails_the_call(tmp_path: Path) -> None:
    source = KonfluxSource(KonfluxSettings(API, kubeconfig=str(tmp_path / "nothing")), {})
    with pytest.raises(ClusterUnusable, match="cannot be read: fix it"):
        await Asked(source)("get_pod", pod="p")
    await source.close()


async def test_the_token_is_masked_and_goes_to_both_servers(tmp_path: Path) -> None:
    with konflux(tmp_path / "case") as lab:
        lab.add(thing("PipelineRun", "run"))
        async with before(lab, tmp_path) as asked:
            assert list(asked.source.secrets) == [lab.token]
            await asked.names("list_pipelineruns", sha=SHA)
        assert {(each.server, each.headers["authorization"]) for each in lab.requests} == {
            ("cluster", f"Bearer {lab.token}"),
            ("archive", f"Bearer {lab.token}"),
        }


@pytest.mark.thorough
async def test_the_context_of_the_tenants_server_is_used_though_another_is_the_current_one(tmp_path: Path) -> None:
    with konflux(tmp_path / "case") as lab:
        lab.add(thing("PipelineRun", "run"))
        right = json.loads(lab.write_kubeconfig(tmp_path / "right").read_text())
        wrong = json.loads(written(tmp_path / "wrong", "other", current="other").read_text())
        both = {key: wrong[key] + right[key] for key in ("clusters", "users", "contexts")}
        (tmp_path / "both").write_text(json.dumps({**both, "current-context": "other"}))
        async with before(lab, tmp_path, kubeconfig=str(tmp_path / "both")) as asked:
            assert await asked.names("list_pipelineruns", sha=SHA) == ["run"]


@pytest.mark.thorough
async def test_a_credential_program_serves_both_servers_and_sees_none_of_our_tokens(tmp_path: Path) -> None:
    with konflux(tmp_path / "case") as lab:
        lab.add(thing("PipelineRun", "live"))
        lab.add(thing("PipelineRun", "old"), archived=True)
        seen = tmp_path / "seen"
        login = program(tmp_path / "login", f'printenv >>{seen}; echo \'{{"status":{{"token":"{lab.token}"}}}}\'')
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(login)}}
        file = written(tmp_path / "config", "k", current="k", user=user, cluster={"server": lab.cluster_url})
        source = KonfluxSource(
            KonfluxSettings(f"{lab.cluster_url}/ns/{TENANT}", str(file), kubearchive_url=lab.archive_url),
            {"PATH": "/usr/bin:/bin", **OURS},
        )
        assert await Asked(source).names("list_pipelineruns", sha=SHA) == ["live", "old"]
        await source.close()
    assert "secret" not in seen.read_text()


@pytest.mark.thorough
async def test_an_archive_behind_the_clusters_own_address_is_asked_there(tmp_path: Path) -> None:
    """Konflux's proxy has it below /plugins/kubearchive."""
    with konflux(tmp_path / "case") as lab:
        lab.add(thing("PipelineRun", "old"), archived=True)
        address = f"{lab.archive_url}/plugins/kubearchive/"
        async with before(lab, tmp_path, kubearchive_url=address) as asked:
            assert await asked.names("list_pipelineruns", sha=SHA) == ["old"]


async def test_it_can_be_closed_before_it_was_used_and_twice() -> None:
    source = KonfluxSource(KonfluxSettings(API), {})
    await source.close()
    await source.close()


@pytest.mark.thorough
async def test_without_a_context_of_that_server_the_current_ones_credentials_go_where_the_operator_says(
    tmp_path: Path,
) -> None:
    """And nowhere else: the server that the kubeconfig names is not asked."""
    with konflux(tmp_path / "case") as lab:
        lab.add(thing("PipelineRun", "run"))
        elsewhere = {"server": "http://127.0.0.1:1"}
        file = written(tmp_path / "config", "k", current="k", user={"token": lab.token}, cluster=elsewhere)
        async with before(lab, tmp_path, kubeconfig=str(file)) as asked:
            assert await asked.names("list_pipelineruns", sha=SHA) == ["run"]
