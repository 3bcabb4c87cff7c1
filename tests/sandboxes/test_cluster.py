"""The door to the API: five verbs in one namespace, preconditions that hold, refusals that say what to do."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hummingbird.core.errors import SandboxUnavailable
from hummingbird.sandboxes.kubernetes_api import (
    ClusterOptions,
    ClusterUnreachableError,
    PodApi,
    PodConflictError,
    PodGoneError,
    PodStatus,
    find_cluster,
)
from hummingbird.sandboxes.kubernetes_manifest import build_pod
from tests.models.served import answer, served
from tests.sandboxes.kube import LabStage, Stage, given_lab, given_lab_stage, given_stage, shape  # noqa: F401 - fixtures
from tests.standins.kubernetes.server import KubernetesLab

Raw = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def no_node_has_room(lab: KubernetesLab) -> None:
    """Nothing here needs a pod that runs."""
    lab.hold()


@asynccontextmanager
async def door(site: ClusterOptions) -> AsyncIterator[PodApi]:
    cluster = PodApi(find_cluster(site, {}))
    try:
        yield cluster
    finally:
        await cluster.close()


def manifest(stage: Stage, name: str = "one", **labels: str) -> Raw:
    return build_pod(shape(stage), name, labels, {})


async def test_a_pod_is_made_looked_at_listed_changed_and_removed(stage: Stage) -> None:
    async with door(stage.site) as cluster:
        made = await cluster.create(manifest(stage, colour="red"))
        found = await cluster.get("one")
        assert (found.name, found.uid) == ("one", made.uid)
        assert [each.name for each in await cluster.list({"colour": "red"})] == ["one"]
        assert await cluster.list({"colour": "blue"}) == []
        changed = await cluster.patch(found, {"labels": {"colour": "blue"}}, unchanged=False)
        assert changed.labels["colour"] == "blue"
        assert [each.uid for each in await cluster.list({"colour": "blue"})] == [made.uid]
        await cluster.delete("one", made.uid)
        with pytest.raises(PodGoneError):
            await cluster.get("one")
        with pytest.raises(PodGoneError):
            await cluster.delete("one", made.uid)


async def test_whoever_changes_a_pod_that_was_changed_meanwhile_changes_nothing(stage: Stage) -> None:
    async with door(stage.site) as cluster:
        made = await cluster.create(manifest(stage))
        seen = await cluster.patch(made, {"labels": {"first": "yes"}}, unchanged=False)
        with pytest.raises(PodConflictError):
            await cluster.patch(made, {"labels": {"second": "yes"}}, unchanged=True)
        assert "second" not in (await cluster.get("one")).labels
        assert seen.labels["first"] == "yes"


async def test_whoever_removes_a_pod_that_was_changed_or_replaced_meanwhile_removes_nothing(stage: Stage) -> None:
    async with door(stage.site) as cluster:
        made = await cluster.create(manifest(stage))
        await cluster.patch(made, {"labels": {"first": "yes"}}, unchanged=False)
        with pytest.raises(PodConflictError):
            await cluster.delete("one", made.uid, made.version)
        with pytest.raises(PodConflictError):
            await cluster.delete("one", "00000000-0000-0000-0000-000000000000")
        assert (await cluster.get("one")).uid == made.uid


async def test_a_change_meant_for_a_pod_never_reaches_another_one_of_its_name(stage: Stage) -> None:
    async with door(stage.site) as cluster:
        made = await cluster.create(manifest(stage))
        other = replace(made, uid="00000000-0000-0000-0000-000000000000")
        with pytest.raises((PodGoneError, PodConflictError)):
            await cluster.patch(other, {"labels": {"wrong": "yes"}}, unchanged=False)
        assert "wrong" not in (await cluster.get("one")).labels


async def test_a_name_that_is_taken_is_not_taken_twice(stage: Stage) -> None:
    async with door(stage.site) as cluster:
        made = await cluster.create(manifest(stage))
        with pytest.raises(PodConflictError):
            await cluster.create(manifest(stage))
        assert (await cluster.get("one")).uid == made.uid


def outside(asked: list[Any], namespace: str) -> list[Any]:
    """Requests that a role in one namespace does not cover. Paths are discovery, which everybody has."""
    return [
        each
        for each in asked
        if not each.resource.startswith("/") and (each.namespace != namespace or not each.allowed)
    ]


async def test_everything_is_asked_in_one_namespace_and_a_call_outside_it_would_be_seen(lab_stage: LabStage) -> None:
    """The second half shows that the first could fail."""
    async with door(lab_stage.site) as cluster:
        made = await cluster.create(manifest(lab_stage))
        await cluster.list({})
        await cluster.delete("one", made.uid)
    assert len(lab_stage.asked()) == 3
    assert outside(lab_stage.asked(), lab_stage.namespace) == []
    headers = {"Authorization": f"Bearer {lab_stage.token}"}
    async with httpx2.AsyncClient(base_url=lab_stage.lab.url, headers=headers) as client:
        assert (await client.get("/api/v1/pods")).status_code == 403
        assert (await client.get("/api/v1/namespaces/default/pods")).status_code == 403
    assert [each.namespace for each in outside(lab_stage.asked(), lab_stage.namespace)] == ["", "default"]


@pytest.mark.parametrize("lacking", ["create", "get", "list", "delete", "patch"])
async def test_a_verb_that_the_role_lacks_is_named_with_the_role_that_has_it(lab_stage: LabStage, lacking: str) -> None:
    verbs = [verb for verb in ("create", "get", "list", "delete", "patch") if verb != lacking]
    lab_stage.lab.narrow(lab_stage.token, {"pods": verbs})
    known = PodStatus("one", "1", "1")
    async with door(lab_stage.site) as cluster:
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "create": lambda: cluster.create(manifest(lab_stage)),
            "get": lambda: cluster.get("one"),
            "list": lambda: cluster.list({}),
            "delete": lambda: cluster.delete("one"),
            "patch": lambda: cluster.patch(known, {}, unchanged=False),
        }
        with pytest.raises(SandboxUnavailable, match=f"may not {lacking} pods .* bind the role hummingbird-sandboxes"):
            await calls[lacking]()


@pytest.mark.thorough
async def test_refused_credentials_and_missing_namespaces_say_what_to_do(lab_stage: LabStage) -> None:
    stranger = lab_stage.kubeconfig.with_name("stranger")
    lab_stage.lab.kubeconfig(stranger, "nobody-knows-me", lab_stage.namespace)
    async with door(ClusterOptions(kubeconfig=str(stranger))) as cluster:
        with pytest.raises(SandboxUnavailable, match="log in again"):
            await cluster.list({})
    admin = lab_stage.kubeconfig.with_name("admin")
    lab_stage.lab.kubeconfig(admin, lab_stage.lab.admin_token())
    async with door(ClusterOptions(kubeconfig=str(admin), namespace="nowhere")) as cluster:
        with pytest.raises(SandboxUnavailable, match="no namespace nowhere: create it or name another"):
            await cluster.create(manifest(lab_stage))


async def test_what_pod_security_refuses_is_told_with_its_reason(lab_stage: LabStage) -> None:
    spoilt = manifest(lab_stage)
    del spoilt["spec"]["securityContext"]
    async with door(lab_stage.site) as cluster:
        with pytest.raises(SandboxUnavailable, match=r"Check its labels and webhooks .*runAsNonRoot"):
            await cluster.create(spoilt)


async def test_resources_that_are_none_are_the_operators_to_mend(lab_stage: LabStage) -> None:
    wrong = build_pod(shape(lab_stage, limits={"memory": "lots"}), "one", {}, {})
    async with door(lab_stage.site) as cluster:
        with pytest.raises(SandboxUnavailable, match=r"fix image, resources and metadata.*quantities must match"):
            await cluster.create(wrong)


def status(code: str, message: str) -> bytes:
    return answer(json.dumps({"kind": "Status", "message": message}).encode(), status=code)


@asynccontextmanager
async def scripted(lab_stage: LabStage, *answers: bytes) -> AsyncIterator[tuple[PodApi, list[bytes]]]:
    async with served(*answers) as server:
        file = lab_stage.kubeconfig.with_name("scripted")
        file.write_text(lab_stage.kubeconfig.read_text().replace(lab_stage.lab.url, server.url))
        async with door(ClusterOptions(kubeconfig=str(file))) as cluster:
            yield cluster, server.requests


async def test_a_quota_that_is_used_up_says_what_can_be_done(lab_stage: LabStage) -> None:
    said = 'pods "one" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4'
    async with scripted(lab_stage, status("403 Forbidden", said)) as (cluster, _):
        with pytest.raises(SandboxUnavailable, match="wait until other sandboxes end, raise it, or ask for less"):
            await cluster.create(manifest(lab_stage))


@pytest.mark.parametrize(
    "reply",
    [
        status("503 Service Unavailable", "apiserver is shutting down"),
        status("429 Too Many Requests", "slow down"),
        answer(b"<html>bad gateway</html>", status="502 Bad Gateway", kind="text/html"),
        answer(b"<html>sign in</html>", kind="text/html"),
    ],
)
async def test_a_cluster_in_trouble_is_worth_another_try(lab_stage: LabStage, reply: bytes) -> None:
    async with scripted(lab_stage, reply) as (cluster, _):
        with pytest.raises(ClusterUnreachableError):
            await cluster.get("one")


@pytest.mark.thorough
async def test_a_cluster_that_is_not_there_is_worth_another_try(lab_stage: LabStage) -> None:
    async with served(b"") as server:
        url = server.url
    file = lab_stage.kubeconfig.with_name("gone")
    file.write_text(lab_stage.kubeconfig.read_text().replace(lab_stage.lab.url, url))
    async with door(ClusterOptions(kubeconfig=str(file))) as cluster:
        with pytest.raises(ClusterUnreachableError, match="check that it is up"):
            await cluster.get("one")


@pytest.mark.thorough
async def test_a_list_of_many_pages_is_read_to_its_end(lab_stage: LabStage) -> None:
    def page(name: str, more: str) -> bytes:
        one = {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}}
        return answer(json.dumps({"items": [one], "metadata": {"continue": more}}).encode())

    async with scripted(lab_stage, page("first", "token-2"), page("second", "")) as (cluster, requests):
        assert [each.name for each in await cluster.list({"a": "b"})] == ["first", "second"]
    assert b"labelSelector=a%3Db" in requests[0]
    assert b"continue=token-2" in requests[1]


@pytest.mark.thorough
async def test_a_door_that_was_closed_stays_closed(lab_stage: LabStage) -> None:
    """A conversation that breaks after the clean-up must not open another connection that nobody closes."""
    async with door(lab_stage.site) as cluster:
        await cluster.list({})
    with pytest.raises(ClusterUnreachableError, match="was closed"):
        await cluster.list({})
