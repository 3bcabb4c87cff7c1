"""What these tests share: an image, a manifest that PodSecurity lets in, and a plain HTTP client."""

import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.real_parts import missing
from tests.standins.kubernetes.server import KubernetesLab

Raw = dict[str, Any]
MERGE = "application/merge-patch+json"
# pid 1 must reap, or dead commands fill the pids limit
STAY = 'trap "exit 0" TERM INT; while :; do sleep 86400 & wait $!; done'


def tiny_image(user: str = "65532:65532") -> str:
    """A local image of busybox alone; made once a machine, whatever worker comes first."""
    busybox = shutil.which("busybox")
    if shutil.which("podman") is None or busybox is None:
        missing("podman and a static busybox are needed to run the stand-in's pods; install both")
    archive = _archive(Path(busybox).read_bytes())
    name = f"localhost/hummingbird-lab-tiny:{hashlib.sha256(archive + user.encode()).hexdigest()[:16]}"
    with _one_at_a_time():
        if subprocess.run(["podman", "image", "exists", name], check=False).returncode:
            _import(name, archive, user)
    return name


def _import(name: str, archive: bytes, user: str) -> None:
    changes = [f"--change=USER {user}", "--change=WORKDIR /workspace"]
    made = subprocess.run(
        ["podman", "import", "-q", *changes, "-", name], input=archive, capture_output=True, check=False
    )
    if made.returncode:
        missing(f"podman cannot keep images here: {made.stderr.decode()[-300:]}")


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / f"hummingbird-lab-tiny-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _archive(busybox: bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("proc", 0o755), ("tmp", 0o1777), ("workspace", 0o1777)):
            archive.addfile(_member(folder, mode, tarfile.DIRTYPE))
        program = _member("bin/busybox", 0o755, tarfile.REGTYPE)
        program.size = len(busybox)
        archive.addfile(program, io.BytesIO(busybox))
        listed = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
        for applet in sorted(set(listed) - {"busybox"}):
            link = _member(f"bin/{applet}", 0o777, tarfile.SYMTYPE)
            link.linkname = "busybox"
            archive.addfile(link)
    return content.getvalue()


def _member(name: str, mode: int, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode, member.type = mode, kind
    return member


def pod_spec(image: str, *, command: list[str] | None = None, **changes: Any) -> Raw:
    spec: Raw = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "main",
                "image": image,
                "command": command or ["sh", "-c", STAY],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "resources": {"limits": {"memory": "128Mi", "cpu": "1"}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }
        ],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}],
    }
    return {**spec, **changes}


def pod(name: str, image: str, labels: dict[str, str] | None = None, **changes: Any) -> Raw:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": pod_spec(image, **changes)}


def deployment(name: str, image: str, replicas: int, labels: dict[str, str]) -> Raw:
    template = {"metadata": {"labels": labels}, "spec": pod_spec(image, restartPolicy="Always")}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


class Place:
    """A namespace of its own in a lab, and a client with the sandboxes' role in it."""

    def __init__(self, lab: KubernetesLab, namespace: str, image: str) -> None:
        self.lab = lab
        self.name = namespace
        self.image = image
        lab.namespace(namespace)
        self.token = lab.token(namespace)
        headers = {"Authorization": f"Bearer {self.token}"}
        # plain HTTP needs no certificates, and loading them takes longer than the rest of a test
        self.http = httpx2.Client(base_url=lab.url, headers=headers, verify=False)

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    def create(self, manifest: Raw) -> httpx2.Response:
        return self.http.post(self.path, json=manifest)

    def get(self, name: str) -> httpx2.Response:
        return self.http.get(f"{self.path}/{name}")

    def list(self, **query: str) -> list[str]:
        answer = self.http.get(self.path, params=query)
        answer.raise_for_status()
        return [each["metadata"]["name"] for each in answer.json()["items"]]

    def patch(self, name: str, patch: Any, media_type: str = MERGE) -> httpx2.Response:
        return self.http.patch(f"{self.path}/{name}", json=patch, headers={"Content-Type": media_type})

    def delete(self, name: str, **options: Any) -> httpx2.Response:
        return self.http.request("DELETE", f"{self.path}/{name}", json=options)

    def made(self, manifest: Raw) -> Raw:
        answer = self.create(manifest)
        assert answer.status_code == 201, answer.text
        born: Raw = answer.json()
        return born

    def settled(self, manifest: Raw) -> Raw:
        """The pod of a lab that holds its pods back, once nothing but a client will change it."""
        name = self.made(manifest)["metadata"]["name"]
        self.lab.wait_until(lambda: self.lab.pod(self.name, name)["status"].get("conditions"))
        return self.lab.pod(self.name, name)

    def started(self, manifest: Raw) -> Raw:
        """The pod, once it is ready."""
        name = self.made(manifest)["metadata"]["name"]
        self.lab.wait_until(lambda: any(each["metadata"]["name"] == name for each in self.lab.ready_pods(self.name)))
        return self.lab.pod(self.name, name)

    def phase(self, name: str) -> str:
        return str(self.lab.pod(self.name, name)["status"]["phase"])


def eventually(holds: Callable[[], Any]) -> None:
    """Until it holds, looking again and again; the test's own time limit is the end of patience."""
    while not holds():
        time.sleep(0.01)


def refused(answer: httpx2.Response, code: int, reason: str) -> str:
    """The sentence of a refusal, which must be a Status object as the real API makes it."""
    status = answer.json()
    assert (answer.status_code, status["kind"], status["status"]) == (code, "Status", "Failure"), answer.text
    assert (status["code"], status["reason"]) == (code, reason)
    assert answer.headers["content-type"] == "application/json"
    return str(status["message"])
