"""Where sandboxes in Kubernetes are tried: one namespace of the stand-in, or of a real cluster when one is named.

HUMMINGBIRD_TEST_KUBECONFIG names the administrator's kubeconfig of a real cluster, HUMMINGBIRD_TEST_IMAGE an image that
it can pull, with python3 and a numeric USER. On both the product is given the shipped role and nothing else.
"""

import asyncio
import http.client
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest

from hummingbird.sandboxes.kubernetes_api import ClusterOptions
from hummingbird.sandboxes.kubernetes_manifest import PodSettings, build_deployment, build_role
from hummingbird.sandboxes.registry import DEFAULT_IMAGE
from tests.sandbox_image import NAME, sandbox_image
from tests.standins.kubernetes.kubectl import install
from tests.standins.kubernetes.server import KubernetesLab

Raw = dict[str, Any]
KUBECONFIG = os.environ.get("HUMMINGBIRD_TEST_KUBECONFIG", "")
IMAGE = os.environ.get("HUMMINGBIRD_TEST_IMAGE", DEFAULT_IMAGE)
SMALL = {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "64Mi"}
LARGE = {"cpu": "1", "memory": "256Mi", "ephemeral-storage": "256Mi"}
POOL = "hummingbird-sandbox-pool"


class Stage(Protocol):
    """A namespace, seen with an administrator's eyes."""

    namespace: str
    site: ClusterOptions
    image: str

    def pods(self) -> list[Raw]: ...

    def delete(self, name: str) -> None: ...

    def patch(self, name: str, changes: Raw) -> None: ...

    def deploy(self, manifest: Raw) -> None: ...

    def wait_until(self, holds: Callable[[], Any]) -> None: ...


def shape(stage: Stage, **chosen: Any) -> PodSettings:
    return PodSettings(stage.image, **{"requests": SMALL, "limits": LARGE, **chosen})


def names(stage: Stage, **labels: str) -> set[str]:
    """The pods that have these labels; a key's underscore stands for what labels have there."""
    wanted = {f"hummingbird/{key.replace('_', '-')}": value for key, value in labels.items()}
    return {
        pod["metadata"]["name"]
        for pod in stage.pods()
        if wanted.items() <= (pod["metadata"].get("labels") or {}).items()
    }


def is_ready(pod: Raw) -> bool:
    statuses = pod["status"].get("containerStatuses") or []
    return bool(statuses) and all(each["ready"] for each in statuses) and "deletionTimestamp" not in pod["metadata"]


def pool_of(stage: Stage, replicas: int) -> None:
    """A Deployment as shipped, and all of its pods ready."""
    stage.deploy(build_deployment(shape(stage), replicas))
    stage.wait_until(lambda: sum(map(is_ready, stage.pods())) >= replicas)


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


async def beside(call: Callable[[], Any]) -> Any:
    """Something that blocks, without stopping what it waits for."""
    return await asyncio.to_thread(call)


class LabStage:
    def __init__(self, lab: KubernetesLab, folder: Path, image: str) -> None:
        self.lab = lab
        self.image = image
        self.namespace = f"boxes-{secrets.token_hex(4)}"
        lab.namespace(self.namespace)
        self.token = lab.token(self.namespace)
        self.kubeconfig = lab.kubeconfig(folder / "kubeconfig", self.token, self.namespace)
        program = "" if shutil.which("kubectl") else str(install(folder / "bin"))
        self.site = ClusterOptions(kubeconfig=str(self.kubeconfig), kubectl=program)

    def pods(self) -> list[Raw]:
        return self.lab.pods(self.namespace)

    def delete(self, name: str, grace_s: int = 0) -> None:
        """As an administrator would in a hurry: at once."""
        admin = self.lab.admin_token()
        _http(self.lab.url, "DELETE", self._path(name), admin, {"gracePeriodSeconds": grace_s})

    def create(self, manifest: Raw) -> None:
        _http(self.lab.url, "POST", self._path("").rstrip("/"), self.lab.admin_token(), manifest)

    def patch(self, name: str, changes: Raw) -> None:
        _http(self.lab.url, "PATCH", self._path(name), self.lab.admin_token(), changes)

    def _path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"

    def deploy(self, manifest: Raw) -> None:
        self.lab.deployment(self.namespace, manifest)

    def wait_until(self, holds: Callable[[], Any]) -> None:
        self.lab.wait_until(holds)

    def asked(self) -> list[Any]:
        """What was asked of the API with the product's rights."""
        user = f"system:serviceaccount:{self.namespace}:hummingbird"
        return [each for each in self.lab.requests if each.user == user]

    def clear(self) -> None:
        if any(pod["metadata"].get("ownerReferences") for pod in self.pods()):
            self.lab.delete_deployment(self.namespace, POOL)
        for pod in self.pods():
            self.delete(pod["metadata"]["name"])


def _http(url: str, method: str, path: str, token: str, body: Raw) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    try:
        connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {token}", "Content-Type": kind})
        response = connection.getresponse()
        said = response.read()
        assert response.status < 300 or response.status == 404, said
    finally:
        connection.close()


class RealStage:
    def __init__(self, folder: Path) -> None:
        self.image = IMAGE
        self.namespace = f"hummingbird-test-{secrets.token_hex(4)}"
        enforced = "pod-security.kubernetes.io/enforce"
        self.deploy(
            {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": self.namespace, "labels": {enforced: "restricted"}},
            }
        )
        self.deploy(build_role())
        self.deploy({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "hummingbird"}})
        self.deploy(self._binding())
        self.wait_until(lambda: not self._run("get", "serviceaccount", "default", check=False).returncode)
        self.site = ClusterOptions(kubeconfig=str(self._written(folder / "kubeconfig")))

    def _binding(self) -> Raw:
        group = "rbac.authorization.k8s.io"
        return {
            "kind": "RoleBinding",
            "apiVersion": f"{group}/v1",
            "metadata": {"name": "hummingbird"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": build_role()["metadata"]["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": "hummingbird", "namespace": self.namespace}],
        }

    def _written(self, path: Path) -> Path:
        known = json.loads(self._run("config", "view", "--raw", "--minify", "--flatten", "-o", "json").stdout)
        token = self._run("create", "token", "hummingbird").stdout.decode().strip()
        context = {"cluster": "test", "user": "test", "namespace": self.namespace}
        written = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": known["clusters"][0]["cluster"]}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": context}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(written))
        return path

    def _run(self, *arguments: str, given: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
        command = ["kubectl", f"--kubeconfig={KUBECONFIG}", "-n", self.namespace, *arguments]
        return subprocess.run(command, input=given, capture_output=True, check=check, timeout=60)

    def pods(self) -> list[Raw]:
        found: list[Raw] = json.loads(self._run("get", "pods", "-o", "json").stdout)["items"]
        return found

    def delete(self, name: str) -> None:
        self._run("delete", "pod", name, "--grace-period=0", "--force", "--ignore-not-found")

    def patch(self, name: str, changes: Raw) -> None:
        self._run("patch", "pod", name, "--type=merge", f"--patch={json.dumps(changes)}")

    def deploy(self, manifest: Raw) -> None:
        self._run("create", "-f", "-", given=json.dumps(manifest).encode())

    def wait_until(self, holds: Callable[[], Any]) -> None:
        until = time.monotonic() + 90
        while not holds():
            assert time.monotonic() < until, "the cluster took longer than 90 s"
            time.sleep(0.2)  # a cluster tells by being asked

    def clear(self) -> None:
        self._run("delete", "namespace", self.namespace, "--wait=false")


@contextmanager
def real_stage(folder: Path) -> Iterator[RealStage]:
    if not KUBECONFIG:
        pytest.skip("HUMMINGBIRD_TEST_KUBECONFIG names no cluster")
    if shutil.which("kubectl") is None:
        pytest.skip("a real cluster is set up with kubectl, which is not installed")
    made = RealStage(folder)
    try:
        yield made
    finally:
        made.clear()


@pytest.fixture(scope="module", name="lab")
def given_lab() -> Iterator[KubernetesLab]:
    sandbox_image()
    with KubernetesLab() as lab:
        yield lab


@pytest.fixture(name="lab_stage")
def given_lab_stage(lab: KubernetesLab, tmp_path: Path) -> Iterator[LabStage]:
    made = LabStage(lab, tmp_path, NAME)
    yield made
    made.clear()


@pytest.fixture(name="stage", params=["stand-in", "cluster"])
def given_stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """What must hold on both."""
    if request.param == "stand-in":
        yield request.getfixturevalue("lab_stage")
        return
    with real_stage(tmp_path) as made:
        yield made
