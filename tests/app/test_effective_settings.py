"""A key that is changed changes what happens. Each through the whole way from YAML to the effect."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.console import SystemClock
from hummingbird.app.gitlab_write import ForgeCache, write_token
from hummingbird.app.model_choice import price_overrides
from hummingbird.app.sandboxes import SandboxChoice, choose_for_service, resolve_sandbox, sandbox_sentence
from hummingbird.app.source_registry import build_source_settings
from hummingbird.core.errors import MissingSetting, UsageError
from hummingbird.core.journal import EndReason, ToolFinished
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.sandboxes.kubernetes_manifest import parse_bytes, parse_cores
from hummingbird.sandboxes.registry import DEFAULT_IMAGE, SandboxOptions, SandboxRegistry
from hummingbird.service.protocols import InvestigationRequest
from tests.app.conducting import MODEL, Stage, applied, configured, order, shell, staged
from tests.sandboxes.kube import LabStage, beside, given_lab, given_lab_stage  # noqa: F401 - a fixture
from tests.standins.function_tool import FunctionTool
from tests.standins.vendors.script import Call, Fault, Turn

EMPTY = {"type": "object", "properties": {}}
DEAR = f'prices: {{"{MODEL}": {{input: 1000000, output: 1000000}}}}'


def results(stage: Stage) -> list[str]:
    return [one.text for one in stage.entries() if isinstance(one, ToolFinished)]


@pytest.mark.parametrize(("seconds", "told"), [("1", "was ended after 1 s"), ("30", "exit code 0")])
async def test_exec_timeout_seconds_ends_a_command(tmp_path: Path, seconds: str, told: str) -> None:
    with staged(tmp_path, shell("sleep 3"), Turn(text="ok")) as stage:
        await stage.conduct(order(), settings=f"sandbox: {{exec_timeout_seconds: {seconds}}}")
        tools = {tool["name"]: tool for tool in stage.lab.requests[0].body["tools"]}
    assert told in results(stage)[0]
    said = tools["sandbox_exec"]["input_schema"]["properties"]["timeout_s"]["description"]
    assert f"; {seconds} unless given" in said


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "in_a_file"), [("256", True), ("4096", False)])
async def test_max_inline_size_decides_what_becomes_a_file(tmp_path: Path, size: str, in_a_file: bool) -> None:
    with staged(tmp_path, shell("seq 300"), Turn(text="ok")) as stage:
        await stage.conduct(order(), workflow=f"max_inline_size: {size}")
    assert ("/tmp/data/_out/" in results(stage)[0]) is in_a_file


async def test_prices_are_what_a_run_costs(tmp_path: Path) -> None:
    with staged(tmp_path, Turn(text="ok"), Turn(text="ok")) as stage:
        usual = await stage.conduct(order("one"))
        dear = await stage.conduct(order("two"), settings=DEAR)
    assert usual.outcome.bill.cost_usd is not None
    assert dear.outcome.bill.cost_usd is not None
    assert usual.outcome.bill.cost_usd < 1 < dear.outcome.bill.cost_usd


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("budgets", "reason"),
    [
        ("{usd_per_run: 0.5}", EndReason.COST_LIMIT),
        ("{usd_per_day: 0.5}", EndReason.COST_LIMIT),
        ("{usd_per_run: 100000000, usd_per_day: 100000000}", EndReason.COMPLETED),
    ],
)
async def test_budgets_bring_a_run_to_its_end(tmp_path: Path, budgets: str, reason: EndReason) -> None:
    with staged(tmp_path, shell("true"), Turn(text="so far")) as stage:
        done = await stage.conduct(order(), settings=f"{DEAR}\nbudgets: {budgets}")
    assert done.outcome.reason is reason


async def test_the_days_budget_counts_all_runs_of_a_project(tmp_path: Path) -> None:
    settings = f"{DEAR}\nbudgets: {{usd_per_day: 0.5}}"
    with staged(tmp_path, Turn(text="one"), Turn(text="two")) as stage:
        first = await stage.conduct(order("one"), settings=settings)
        second = await stage.conduct(order("two"), settings=settings)
    assert (first.outcome.reason, second.outcome.reason) == (EndReason.COMPLETED, EndReason.COST_LIMIT)


@pytest.mark.parametrize(("seconds", "reason"), [(50, EndReason.TIME_LIMIT), (500, EndReason.COMPLETED)])
async def test_seconds_per_run_bring_a_run_to_its_end(tmp_path: Path, seconds: int, reason: EndReason) -> None:
    with staged(tmp_path, Turn(calls=(Call("wait", {}),)), Turn(text="so far")) as stage:

        def minute() -> str:
            stage.clock.advance(60)
            return "over"

        wait = FunctionTool(ToolSpec("wait", "Waits.", EMPTY), minute)
        done = await stage.conduct(order(), workflow=f"budgets: {{seconds_per_run: {seconds}}}", tools=[wait])
    assert (done.outcome.reason, done.seconds) == (reason, 60)


@pytest.mark.thorough
@pytest.mark.parametrize(("limit", "reason"), [(1_000, EndReason.CONTEXT_LIMIT), (60_000, EndReason.COMPLETED)])
async def test_context_limit_brings_a_run_to_its_end(tmp_path: Path, limit: int, reason: EndReason) -> None:
    with staged(tmp_path, shell("seq 900"), Turn(text="so far")) as stage:
        done = await stage.conduct(order(), workflow=f"context_limit: {limit}")
    assert done.outcome.reason is reason


@pytest.mark.thorough
async def test_max_iterations_brings_a_run_to_its_end(tmp_path: Path) -> None:
    with staged(tmp_path, shell("true"), Turn(text="so far")) as stage:
        done = await stage.conduct(order(), workflow="max_iterations: 2")
    assert done.outcome.reason is EndReason.MAX_ITERATIONS


async def test_fallback_models_take_over_in_their_order(tmp_path: Path) -> None:
    refused = Fault("status", status=401, type="authentication_error")
    with staged(tmp_path, refused, Turn(text="second")) as stage:
        done = await stage.conduct(order(), settings="fallback_models: [anthropic:claude-haiku-5-5]")
        assert [request.body["model"] for request in stage.lab.requests] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert (done.model, done.trouble) == ("anthropic:claude-haiku-5-5", ())


async def test_model_regions_say_where_a_model_is(tmp_path: Path) -> None:
    """With a region, the next thing that is amiss is told."""
    given = {"GOOGLE_CLOUD_PROJECT": "p", "ANTHROPIC_VERTEX_BASE_URL": "https://elsewhere.example"}
    with staged(tmp_path) as stage:
        stage.environment = given
        with pytest.raises(MissingSetting, match=r"needs a region: .* model_regions"):
            await conducted_with(stage, "model: claude-sonnet-5-5")
        with pytest.raises(MissingSetting, match="would send a Google token"):
            await conducted_with(stage, "model: claude-sonnet-5-5\nmodel_regions: {claude-: europe-west1}")


async def conducted_with(stage: Stage, settings: str) -> None:
    configuration = configured(stage.folder / "config", settings)
    await stage.investigator().investigate(InvestigationRequest(order(), configuration, applied(configuration), "Why?"))


async def test_ca_bundle_reaches_models_sources_clusters_and_the_forge(tmp_path: Path) -> None:
    sources = "gitlab: {}\ntesting_farm: {}\nkonflux: {cluster_url: 'https://api.a.example:6443/ns/t'}"
    lines = "\n".join(f"  {line}" for line in sources.splitlines())
    configuration = configured(tmp_path, f"model: {MODEL}\nca_bundle: /gone.pem", f"data_sources:\n{lines}")
    found = build_source_settings(configuration.settings, applied(configuration), {})
    assert found.gitlab is not None
    assert found.konflux is not None
    assert found.testing_farm is not None
    assert {found.gitlab.ca_bundle, found.konflux.ca_bundle, found.testing_farm.ca_bundle} == {"/gone.pem"}
    assert resolve_sandbox(configuration.settings, SandboxChoice()).ca_bundle == "/gone.pem"
    with pytest.raises(MissingSetting, match=r"/gone\.pem"):
        ForgeCache({})(configuration)
    with staged(tmp_path) as stage, pytest.raises(MissingSetting, match=r"/gone\.pem"):
        await stage.conduct(order(), settings="ca_bundle: /gone.pem")


def test_what_a_workflow_declares_is_what_its_sources_get(tmp_path: Path) -> None:
    """A project's own token comes first."""
    text = """\
data_sources:
  gitlab: {token_env: READER, projects: [acme/other]}
  konflux: {cluster_url: 'https://api.a.example:6443/ns/t', kubeconfig_env: WHERE, context: c}
  testing_farm: {token_env: FARM, api_url: 'https://farm.example', artifacts: ['https://a.example/x/']}"""
    settings = "gitlab_url: https://git.example\nformer_bot_ids: [5]\nsession_marker_prefix: mark"
    configuration = configured(tmp_path, settings, text)
    given = {"READER": "r", "WHERE": "/kube", "FARM": "f"}
    found = build_source_settings(configuration.settings, applied(configuration), given, frozenset({9}))
    assert found.gitlab is not None
    assert found.gitlab.token is not None
    assert (found.gitlab.url, found.gitlab.token.reveal()) == ("https://git.example", "r")
    assert (found.gitlab.project, found.gitlab.projects) == ("acme/widgets", ("acme/other",))
    assert (found.gitlab.bot_ids, found.gitlab.marker_prefix) == (frozenset({5, 9}), "mark")
    assert found.konflux is not None
    assert (found.konflux.kubeconfig, found.konflux.context) == ("/kube", "c")
    assert found.testing_farm is not None
    assert found.testing_farm.token is not None
    assert (found.testing_farm.token.reveal(), found.testing_farm.api_url) == ("f", "https://farm.example")
    assert found.testing_farm.artifacts == ("https://a.example/x/",)
    with pytest.raises(MissingSetting, match="WHERE"):
        build_source_settings(configuration.settings, applied(configuration), {"READER": "r", "FARM": "f"})


def test_a_project_has_the_token_that_is_for_it() -> None:
    given = {"ORCHESTRATOR_GITLAB_TOKEN": "all", "ORCHESTRATOR_GITLAB_TOKEN_ACME_WIDGETS": " own\n"}
    assert write_token("acme/widgets", given).reveal() == "own"
    assert write_token("acme/other", given).reveal() == "all"
    with pytest.raises(MissingSetting, match="ORCHESTRATOR_GITLAB_TOKEN_ACME_OTHER"):
        write_token("acme/other", {})


SANDBOX = """\
sandbox:
  backend: k8s
  image: registry.example/box:1
  namespace: boxes
  active_deadline_seconds: 600
  linger_seconds: 7
  max_lingering_pods: 3
  metadata: {labels: {team: birds}, annotations: {why: "tests"}}
  resources:
    requests: {cpu: 50m, memory: 64Mi, ephemeral-storage: 64Mi}
    limits: {cpu: "1", memory: 256Mi, ephemeral-storage: 256Mi}"""


def wanted(folder: Path, settings: str, chosen: SandboxChoice | None = None) -> SandboxOptions:
    return resolve_sandbox(configured(folder, settings).settings, chosen or SandboxChoice())


def test_the_sandbox_section_is_what_is_asked_for(tmp_path: Path) -> None:
    found = wanted(tmp_path, SANDBOX)
    assert (found.backend, found.image, found.configured_namespace) == ("k8s", "registry.example/box:1", "boxes")
    assert (found.deadline_s, found.linger_s, found.max_lingering) == (600, 7, 3)
    assert wanted(tmp_path, "max_iterations: 3") == SandboxOptions(image=DEFAULT_IMAGE)


@pytest.mark.parametrize(
    ("chosen", "backend"),
    [
        (SandboxChoice(), "bubblewrap"),
        (SandboxChoice(backend="podman"), "podman"),
        (SandboxChoice(context="c", namespace="n"), "k8s"),
        (SandboxChoice(backend="k8spool", context="c", namespace="n"), "k8spool"),
    ],
)
def test_the_command_line_comes_before_the_sandbox_section(tmp_path: Path, chosen: SandboxChoice, backend: str) -> None:
    """A context means Kubernetes."""
    found = wanted(tmp_path, "sandbox: {namespace: boxes}", chosen)
    assert (found.backend, found.context, found.namespace) == (backend, chosen.context, chosen.namespace)


IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
NAMESPACE = "sandbox: {namespace: my-namespace}"


@pytest.mark.parametrize(
    ("settings", "chosen", "backend", "why"),
    [
        (NAMESPACE, choose_for_service({}), "k8spool", "in the namespace my-namespace: settings.sandbox.namespace is"),
        ("{}", choose_for_service(IN_A_POD), "k8spool", "this is a pod of a cluster"),
        ("{}", choose_for_service({}), "bubblewrap", "nothing names another one"),
        ("sandbox: {backend: podman}", choose_for_service(IN_A_POD), "podman", "settings.sandbox.backend says so"),
        (NAMESPACE, choose_for_service({}, "podman"), "podman", "--sandbox says so"),
        (NAMESPACE, SandboxChoice(), "bubblewrap", "nothing names another one"),
    ],
)
def test_serve_takes_the_pool_where_pods_are_meant(
    tmp_path: Path, settings: str, chosen: SandboxChoice, backend: str, why: str
) -> None:
    """The documented settings name a namespace and no backend; `run` never takes a cluster by itself."""
    configuration = configured(tmp_path, settings).settings
    assert resolve_sandbox(configuration, chosen).backend == backend
    assert why in sandbox_sentence(configuration, chosen)


def test_a_configured_context_comes_with_the_configured_namespace(tmp_path: Path) -> None:
    section = "sandbox: {context: far, namespace: boxes}"
    found = wanted(tmp_path, section)
    assert (found.context, found.namespace) == ("far", "boxes")
    found = wanted(tmp_path, section, SandboxChoice(context="near"))
    assert (found.context, found.namespace) == ("near", "")


@pytest.mark.thorough
async def test_a_pod_is_what_the_sandbox_section_says(lab_stage: LabStage, tmp_path: Path) -> None:
    """Labels, annotations, resources, deadline, image and namespace reach the API."""
    settings = SANDBOX.replace("registry.example/box:1", lab_stage.image).replace("boxes", lab_stage.namespace)
    given: Mapping[str, str] = {"KUBECONFIG": str(lab_stage.kubeconfig)}
    sandboxes = SandboxRegistry(wanted(tmp_path, settings), given, SystemClock(), print)
    sandbox = sandboxes.make("session")
    try:
        await sandbox.start()
        (pod,) = await beside(lab_stage.pods)
        done = await sandbox.exec("ulimit -d")
    finally:
        await sandbox.cleanup()
        await sandboxes.close()
    (container,) = pod["spec"]["containers"]
    assert container["image"] == lab_stage.image
    assert pod["metadata"]["labels"]["team"] == "birds"
    assert pod["metadata"]["annotations"]["why"] == "tests"
    assert pod["spec"]["activeDeadlineSeconds"] == 600
    assert container["resources"]["requests"]["cpu"] == "50m"
    assert container["resources"]["limits"]["memory"] == "256Mi"
    assert int(done.stdout) * 1024 == 256 * 2**20


def test_a_container_is_held_to_the_limits(tmp_path: Path) -> None:
    found = wanted(tmp_path, SANDBOX.replace("k8s", "podman"))
    place: Any = SandboxRegistry(found, {}, SystemClock(), print).make()._backend
    made = place._spec
    assert (made.image, made.memory_bytes, made.space_bytes) == ("registry.example/box:1", 256 * 2**20, 256 * 2**20)


@pytest.mark.parametrize(
    ("text", "amount"), [("1Gi", 2**30), ("1.5Ki", 1536), ("2k", 2000), ("3M", 3_000_000), ("7", 7), ("1Ei", 2**60)]
)
def test_amounts_of_bytes(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


def test_amounts_of_processor_time() -> None:
    assert (parse_cores("100m"), parse_cores("2"), parse_cores("1.5")) == (0.1, 2.0, 1.5)


@pytest.mark.parametrize("text", ["", "much", "0", "-1", "1 Gi", "1e3x"])
def test_what_is_no_amount_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="like 500m"):
        parse_bytes(text)


@pytest.mark.thorough
def test_money_keeps_its_cents(tmp_path: Path) -> None:
    """Prices are exact."""

    settings = configured(tmp_path, "prices: {m: {input: 0.1, output: 0.2, cache_read: 0.01}}").settings
    price = price_overrides(settings.prices)["m"]
    assert (price.fresh, price.output, price.cache_read, price.cache_write) == (
        *(Decimal("0.1"), Decimal("0.2"), Decimal("0.01")),
        None,
    )
