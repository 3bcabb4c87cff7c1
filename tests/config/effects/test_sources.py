"""What a workflow declares of its data sources, from YAML to what a case's servers are asked for."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hummingbird.app.source_registry import build_source_settings, create_sources
from hummingbird.config.loader import load_config
from hummingbird.core.errors import (
    CallDenied,
    CredentialRefused,
    HummingbirdError,
    MissingSetting,
    SourceRefused,
    UsageError,
)
from hummingbird.core.protocols.tools import ByteStream, ToolContext
from hummingbird.gitlab.read import source as gitlab_source
from hummingbird.lab.case import find_case
from hummingbird.lab.fault_injection import Redirect
from hummingbird.lab.gitlab.case_loader import EXPIRED_TOKEN
from hummingbird.lab.scene import Scene
from tests.clients.written import written as kubeconfig_of
from tests.config.effects.desk import PROJECT, WORKFLOW, written

CASE = "konflux-build-and-test"
REQUEST = "6b2f0c1e-5d3a-4f6e-9c38-0a7d52e1b9f4"
ARTIFACTS = "gitlab_list_job_artifacts"
DETAILS, RUNS, STATUS, LOG = (
    *("gitlab_get_mr_details", "konflux_list_pipelineruns"),
    *("tf_get_request_status", "tf_get_test_log"),
)


@dataclass
class Place:
    """A case's servers, and the declarations that reach them."""

    scene: Scene
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        files = {"KUBE": self.scene.write_kubeconfig(self.folder / "kubeconfig")}
        self.environment |= {"GOOD": self.scene.read_token, "STALE": EXPIRED_TOKEN, "KUBE": str(files["KUBE"])}

    @property
    def konflux(self) -> dict[str, str]:
        return {"cluster_url": self.scene.cluster_url, "kubeconfig_env": "KUBE"}

    @property
    def farm(self) -> dict[str, Any]:
        artifacts = [f"{self.scene.url('artifacts')}/"]
        return {"api_url": self.scene.url("testing_farm"), "artifacts": artifacts, "private_addresses": True}

    def made(self, source: str, about: Mapping[str, Any], *, tokens: str = "{}", project: str = PROJECT) -> Any:
        lines = [f"data_sources: {json.dumps({source: about})}"]
        settings = [f"gitlab_url: {self.scene.url('gitlab')}"]
        file = written(self.folder / "config", settings, lines, project=f"{{tokens: {tokens}}}")
        configuration = load_config(file, None)
        applied = configuration.resolve(WORKFLOW, project)
        assert applied is not None
        (found,) = create_sources(
            build_source_settings(configuration.settings, applied, self.environment), self.environment
        )
        return found

    async def asks(self, source: str, about: Mapping[str, Any], tool: str, **more: Any) -> str:
        """What the tool answers; `more` are its arguments, and how the source is made."""
        made = {name: more.pop(name) for name in ("tokens", "project_of") if name in more}
        options = {"tokens": made.get("tokens", "{}"), "project": made.get("project_of", PROJECT)}
        found = self.made(source, about, **options)
        try:
            (wanted,) = (one for one in found.tools if one.spec.name == tool)
            answer = await wanted(more, ToolContext("session", "call"))
            if not isinstance(answer, ByteStream):
                return str(answer)
            return b"".join([chunk async for chunk in answer.chunks]).decode()
        finally:
            await found.close()

    @property
    def farm_tokens(self) -> list[str | None]:
        return self.scene.run_in_server(
            lambda worlds: [one.headers.get("authorization") for one in worlds.testing_farm.requests]
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Scene(find_case(CASE)) as scene:
        yield Place(scene, tmp_path)


def iid(place: Place) -> int:
    return place.scene.worlds.gitlab.merge_request.iid


def sha(place: Place) -> str:
    return place.scene.worlds.gitlab.merge_request.sha or ""


async def test_what_is_not_declared_is_not_there(place: Place) -> None:
    names = {source: {tool.spec.source for tool in place.made(source, about).tools} for source, about in all_of(place)}
    assert names == {"gitlab": {"gitlab"}, "konflux": {"konflux"}, "testing_farm": {"testing_farm"}}


def all_of(place: Place) -> list[tuple[str, dict[str, Any]]]:
    return [("gitlab", {}), ("konflux", place.konflux), ("testing_farm", place.farm)]


async def test_token_env_is_whom_gitlab_sees(place: Place) -> None:
    """And a project's own token is in the place of the workflow's."""
    number = iid(place)
    assert "title" in await place.asks("gitlab", {"token_env": "GOOD"}, DETAILS, mr_iid=number)
    with pytest.raises(CredentialRefused):
        await place.asks("gitlab", {"token_env": "STALE"}, DETAILS, mr_iid=number)
    own = "{gitlab: GOOD}"
    assert "title" in await place.asks("gitlab", {"token_env": "STALE"}, DETAILS, mr_iid=number, tokens=own)
    seen = place.scene.run_in_server(
        lambda worlds: {one.username for one in worlds.gitlab.requests if one.status == 200}
    )
    assert seen == {"project_10174980_bot_a27d4410"}


async def test_projects_of_gitlab_may_be_looked_at_besides_ones_own(place: Place) -> None:
    asked = {"mr_iid": iid(place), "project": PROJECT, "project_of": "veloren/other"}
    with pytest.raises(CallDenied):
        await place.asks("gitlab", {"token_env": "GOOD"}, DETAILS, **asked)
    about = {"token_env": "GOOD", "projects": [PROJECT]}
    assert "title" in await place.asks("gitlab", about, DETAILS, **asked)


async def test_storage_of_gitlab_may_be_in_plain_text(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object store to which GitLab leads; its network is another test's matter."""
    kept = httpx2.MockTransport(lambda _: httpx2.Response(404))
    monkeypatch.setattr(gitlab_source, "create_guarded_client", lambda **_: httpx2.AsyncClient(transport=kept))
    for storage, told in (([], "operator can add it"), (["http://minio.example/"], "did not give them out")):
        place.scene.worlds.gitlab.faults.plan("*/artifacts", Redirect("http://minio.example/a.zip"))
        with pytest.raises(SourceRefused, match=told):
            await place.asks("gitlab", {"token_env": "GOOD", "storage": storage}, ARTIFACTS, job_id=1)


@pytest.mark.thorough
async def test_cluster_url_is_the_tenant_that_is_asked(place: Place) -> None:
    assert "on-pull-request" in await place.asks("konflux", place.konflux, RUNS, sha=sha(place))
    other = {**place.konflux, "cluster_url": f"{place.scene.url('konflux')}/ns/elsewhere"}
    with pytest.raises(HummingbirdError):
        await place.asks("konflux", other, RUNS, sha=sha(place))


def both_in(place: Place) -> tuple[Path, str]:
    """A kubeconfig with the context that works, whose name is told, and one called wrong."""
    right = json.loads(Path(place.environment["KUBE"]).read_text())
    file = kubeconfig_of(place.folder / "both", "wrong", cluster={"server": place.scene.url("konflux")})
    wrong = json.loads(file.read_text())
    file.write_text(json.dumps({key: right[key] + wrong[key] for key in ("clusters", "users", "contexts")}))
    return file, str(right["contexts"][0]["name"])


@pytest.mark.thorough
async def test_kubeconfig_env_and_context_are_the_credentials_for_a_cluster(place: Place) -> None:
    file, usual = both_in(place)
    place.environment["BOTH"] = str(file)
    of = {**place.konflux, "kubeconfig_env": "BOTH"}
    assert "on-pull-request" in await place.asks("konflux", {**of, "context": usual}, RUNS, sha=sha(place))
    with pytest.raises(HummingbirdError):
        await place.asks("konflux", {**of, "context": "wrong"}, RUNS, sha=sha(place))
    with pytest.raises(MissingSetting, match="NOT_SET"):
        await place.asks("konflux", {**place.konflux, "kubeconfig_env": "NOT_SET"}, RUNS, sha=sha(place))


@pytest.mark.thorough
async def test_kubearchive_url_is_where_older_runs_are_found(place: Place) -> None:
    old = "voxygen-on-pull-request-jzwzt"
    assert old not in await place.asks("konflux", place.konflux, RUNS, sha=sha(place))
    about = {**place.konflux, "kubearchive_url": place.scene.url("kubearchive")}
    assert old in await place.asks("konflux", about, RUNS, sha=sha(place))


async def test_ui_url_is_where_people_are_sent(place: Place) -> None:
    for more, link in (({}, None), ({"ui_url": "https://ui.example"}, "https://ui.example/ns/")):
        found = place.made("konflux", {**place.konflux, **more})
        links = {tool.spec.metadata.get("konflux_ui", "") for tool in found.tools}
        assert all(str(one).startswith(link) for one in links) if link else links == {""}
        await found.close()


async def test_token_env_is_whom_testing_farm_sees(place: Place) -> None:
    """Nobody where none is named; a project's own token is in the place of the workflow's."""
    for more, tokens in (({}, "{}"), ({"token_env": "GOOD"}, "{}"), ({"token_env": "GOOD"}, "{testing_farm: STALE}")):
        await place.asks("testing_farm", {**place.farm, **more}, STATUS, request_id=REQUEST, tokens=tokens)
    assert place.farm_tokens == [None, f"Bearer {Scene.read_token}", f"Bearer {EXPIRED_TOKEN}"]


async def test_api_url_is_where_testing_farm_is_asked(place: Place) -> None:
    assert "failed" in await place.asks("testing_farm", place.farm, STATUS, request_id=REQUEST)
    elsewhere = {**place.farm, "api_url": place.scene.url("gitlab")}
    with pytest.raises(HummingbirdError):
        await place.asks("testing_farm", elsewhere, STATUS, request_id=REQUEST)


async def test_artifacts_are_read_below_what_is_declared(place: Place) -> None:
    url = f"{place.scene.url('artifacts')}/{REQUEST}/results.xml"
    assert "<testsuite" in await place.asks("testing_farm", place.farm, LOG, url=url)
    with pytest.raises(CallDenied):
        await place.asks("testing_farm", {**place.farm, "artifacts": ["https://artifacts.example/"]}, LOG, url=url)


async def test_private_addresses_are_read_only_where_that_is_said(place: Place) -> None:
    url = f"{place.scene.url('artifacts')}/{REQUEST}/results.xml"
    assert "<testsuite" in await place.asks("testing_farm", place.farm, LOG, url=url)
    with pytest.raises(UsageError, match="allow private addresses"):
        await place.asks("testing_farm", {**place.farm, "private_addresses": False}, LOG, url=url)
