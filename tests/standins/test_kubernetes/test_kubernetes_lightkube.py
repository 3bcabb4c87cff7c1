"""lightkube's client works against the stand-in as it would against the real thing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.resources.core_v1 import Pod
from lightkube.types import PatchType

from tests.standins.test_kubernetes.stage import Place, pod

Raw = dict[str, Any]


@pytest.fixture
async def client(paper: Place, tmp_path: Path) -> AsyncIterator[AsyncClient]:
    config = KubeConfig.from_file(paper.lab.kubeconfig(tmp_path / "config", paper.token, paper.name))
    made = AsyncClient(config=config.get(), trust_env=False)
    yield made
    await made.close()


def manifest(place: Place, name: str, labels: dict[str, str]) -> Pod:
    made = Pod.from_dict(pod(name, place.image, labels))
    assert isinstance(made, Pod)
    return made


async def test_pods_are_made_read_listed_patched_and_deleted(paper: Place, client: AsyncClient) -> None:
    born = await client.create(manifest(paper, "one", {"role": "standby"}))
    await client.create(manifest(paper, "two", {"role": "active"}))
    assert born.metadata is not None
    assert born.metadata.namespace == paper.name
    found = [each.metadata.name async for each in client.list(Pod, labels={"role": "standby"}) if each.metadata]
    assert found == ["one"]
    labels: Raw = {"role": None, "claimed-by": "me"}
    patched = await client.patch(Pod, "one", {"metadata": {"labels": labels}}, patch_type=PatchType.MERGE)
    assert patched.metadata is not None
    assert patched.metadata.labels == {"claimed-by": "me"}
    assert (await client.get(Pod, "one")).metadata == patched.metadata
    await client.delete(Pod, "one", grace_period=0)
    with pytest.raises(ApiError) as gone:
        await client.get(Pod, "one")
    assert (gone.value.status.code, gone.value.status.reason) == (404, "NotFound")


async def test_a_stale_version_is_a_conflict_for_lightkube_too(paper: Place, client: AsyncClient) -> None:
    version = paper.settled(pod("one", paper.image))["metadata"]["resourceVersion"]
    claim: Raw = {"metadata": {"resourceVersion": version, "labels": {"claimed-by": "me"}}}
    await client.patch(Pod, "one", claim, patch_type=PatchType.MERGE)
    claim["metadata"]["labels"]["claimed-by"] = "you"
    with pytest.raises(ApiError) as late:
        await client.patch(Pod, "one", claim, patch_type=PatchType.MERGE)
    assert (late.value.status.code, late.value.status.reason) == (409, "Conflict")


async def test_a_list_in_chunks_is_the_whole_list(paper: Place, client: AsyncClient) -> None:
    for name in ("a", "b", "c", "d", "e"):
        paper.made(pod(name, paper.image))
    found = [each.metadata.name async for each in client.list(Pod, chunk_size=2) if each.metadata]
    assert found == ["a", "b", "c", "d", "e"]


async def test_what_the_role_does_not_hold_is_an_api_error(paper: Place, client: AsyncClient) -> None:
    with pytest.raises(ApiError) as refused:
        _ = [each async for each in client.list(Pod, namespace="*")]
    assert refused.value.status.code == 403
    assert "at the cluster scope" in str(refused.value.status.message)
    with pytest.raises(httpx2.HTTPStatusError) as watching:
        _ = [each async for each in client.watch(Pod)]
    assert watching.value.response.status_code == 403


async def test_a_command_runs_over_lightkubes_own_websocket(place: Place, tmp_path: Path) -> None:
    place.started(pod("one", place.image))
    config = KubeConfig.from_file(place.lab.kubeconfig(tmp_path / "config", place.token, place.name))
    async with AsyncClient(config=config.get(), trust_env=False) as client:
        done = await client.exec("one", command=["sh", "-c", "cat; exit 3"], stdin=b"hello", stdout=True)
    assert (done.exit_code, done.stdout) == (3, "hello")
