"""A pod's life: real containers, hardened as the manifest says, and each way to end."""

import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.standins.kubernetes.server import KubernetesLab
from tests.standins.test_kubernetes.stage import Place, deployment, pod, tiny_image

Raw = dict[str, Any]


def containers(*filters: str) -> list[str]:
    wanted = [f"--filter={each}" for each in filters]
    return subprocess.run(["podman", "ps", "-aq", *wanted], capture_output=True, text=True, check=True).stdout.split()


def state(place: Place, name: str) -> Raw:
    found: Raw = (place.lab.pod(place.name, name)["status"].get("containerStatuses") or [{"state": {}}])[0]["state"]
    return found


def ended(place: Place, name: str) -> Raw:
    place.lab.wait_until(lambda: place.phase(name) in {"Succeeded", "Failed"})
    found: Raw = state(place, name)["terminated"]
    return found


def inside(pod_: Raw, *command: str) -> str:
    """What a command says in the pod's container, asked of podman itself."""
    uid = pod_["metadata"]["uid"]
    (found,) = containers(f"name={uid}")
    return subprocess.run(["podman", "exec", found, *command], capture_output=True, text=True, check=False).stdout


def test_a_pod_becomes_ready_by_way_of_pending_and_its_version_grows(place: Place) -> None:
    born = place.made(pod("one", place.image))
    assert born["status"]["phase"] == "Pending"
    ready = place.started(pod("two", place.image))
    assert ready["status"]["phase"] == "Running"
    assert {each["type"]: each["status"] for each in ready["status"]["conditions"]}["Ready"] == "True"
    assert ready["status"]["containerStatuses"][0]["ready"]
    assert int(ready["metadata"]["resourceVersion"]) > int(born["metadata"]["resourceVersion"])


def test_the_container_is_as_hard_as_the_manifest_says(place: Place) -> None:
    manifest = pod("one", place.image)
    manifest["spec"]["containers"][0].update(workingDir="/tmp", env=[{"name": "GREETING", "value": "hello there"}])
    ready = place.started(manifest)
    script = """
        cat /proc/self/status; env; echo uid $(id -u); echo at $(pwd); echo nets $(ls /sys/class/net)
        touch /workspace/x 2> /dev/null || echo read-only
        head -c 70000000 /dev/zero > /tmp/big 2> /dev/null || echo full at $(wc -c < /tmp/big)
    """
    said = inside(ready, "sh", "-c", script).splitlines()
    expected = [
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "GREETING=hello there",
        "KUBERNETES_SERVICE_PORT=443",  # a real cluster leaves these even where enableServiceLinks is false
        "uid 65532",
        "at /tmp",
        "nets lo",
        "read-only",
        f"full at {64 * 1024 * 1024}",
    ]
    assert [line for line in expected if line not in said] == []


@pytest.mark.parametrize(("code", "phase", "reason"), [(0, "Succeeded", "Completed"), (3, "Failed", "Error")])
def test_a_pod_that_never_restarts_ends_with_its_command(place: Place, code: int, phase: str, reason: str) -> None:
    place.made(pod("one", place.image, command=["sh", "-c", f"exit {code}"]))
    assert ended(place, "one").items() >= {"exitCode": code, "reason": reason}.items()
    assert place.phase("one") == phase


def test_a_command_that_does_not_exist_fails_the_pod(place: Place) -> None:
    place.made(pod("one", place.image, command=["no-such-program"]))
    assert ended(place, "one")["reason"] == "StartError"
    assert place.phase("one") == "Failed"


def test_a_command_that_eats_all_memory_is_killed_for_it(place: Place) -> None:
    manifest = pod("one", place.image, command=["sh", "-c", "x=x; while :; do x=$x$x; done"])
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"memory": "16Mi"}}
    place.made(manifest)
    assert ended(place, "one").items() >= {"exitCode": 137, "reason": "OOMKilled"}.items()


def test_a_deadline_ends_the_pod_and_says_so(place: Place) -> None:
    """ActiveDeadlineSeconds."""
    place.made(pod("one", place.image, activeDeadlineSeconds=1))
    place.lab.wait_until(lambda: place.phase("one") == "Failed")
    assert place.lab.pod(place.name, "one")["status"]["reason"] == "DeadlineExceeded"


def test_an_image_that_is_not_there_is_waited_for(place: Place) -> None:
    place.made(pod("one", "localhost/hummingbird-lab-none:1"))
    place.lab.wait_until(lambda: state(place, "one").get("waiting", {}).get("reason") == "ImagePullBackOff")
    assert "localhost/hummingbird-lab-none:1" in state(place, "one")["waiting"]["message"]
    assert place.phase("one") == "Pending"
    place.delete("one", gracePeriodSeconds=0)
    assert place.get("one").status_code == 404


def test_an_image_that_runs_as_root_is_refused_by_the_node(place: Place) -> None:
    place.made(pod("one", tiny_image(user="0:0")))
    place.lab.wait_until(lambda: "waiting" in state(place, "one") and "message" in state(place, "one")["waiting"])
    waiting = state(place, "one")["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "image will run as root" in waiting["message"]


def test_a_killed_container_fails_a_pod_and_restarts_in_another(place: Place) -> None:
    place.started(pod("once", place.image))
    place.lab.kill(place.name, "once")
    assert ended(place, "once")["exitCode"] == 137
    assert place.phase("once") == "Failed"
    again = place.started(pod("again", place.image, restartPolicy="Always"))
    place.lab.kill(place.name, "again")

    def restarted() -> bool:
        status = place.lab.pod(place.name, "again")["status"]["containerStatuses"][0]
        return bool(status["restartCount"] == 1 and status["ready"])

    place.lab.wait_until(restarted)
    now = place.lab.pod(place.name, "again")
    assert now["metadata"]["uid"] == again["metadata"]["uid"]
    assert now["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137


def test_an_evicted_pod_fails_with_the_reason(place: Place) -> None:
    place.started(pod("one", place.image))
    place.lab.evict(place.name, "one")
    place.lab.wait_until(lambda: place.phase("one") == "Failed")
    assert place.lab.pod(place.name, "one")["status"]["reason"] == "Evicted"


def test_what_lies_on_disk_outlives_a_restart_and_what_lies_in_the_container_does_not(place: Place) -> None:
    manifest = pod("one", place.image, restartPolicy="Always")
    manifest["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {"sizeLimit": "1Mi"}}]
    manifest["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = False
    ready = place.started(manifest)
    inside(ready, "sh", "-c", "echo a > /tmp/kept; echo b > /workspace/lost")
    place.lab.kill(place.name, "one")
    place.lab.wait_until(
        lambda: (
            [each["restartCount"] for each in place.lab.pod(place.name, "one")["status"]["containerStatuses"]] == [1]
        )
    )
    place.lab.wait_until(lambda: place.lab.ready_pods(place.name))
    assert inside(ready, "sh", "-c", "cat /tmp/kept; ls /workspace").split() == ["a"]


def test_a_graceful_deletion_gives_the_command_time_and_shows_itself(place: Place) -> None:
    stubborn = 'trap "" TERM; while :; do sleep 1; done'
    place.started(pod("slow", place.image, command=["sh", "-c", stubborn], terminationGracePeriodSeconds=60))
    marked = place.delete("slow").json()["metadata"]
    assert (marked["deletionGracePeriodSeconds"], bool(marked["deletionTimestamp"])) == (60, True)
    assert place.get("slow").json()["metadata"]["deletionTimestamp"] == marked["deletionTimestamp"]
    assert place.delete("slow", gracePeriodSeconds=1).status_code == 200
    place.lab.wait_until(lambda: not place.lab.pods(place.name))


def test_a_deletion_without_grace_is_done_when_it_is_answered(place: Place) -> None:
    ready = place.started(pod("one", place.image))
    assert place.delete("one", gracePeriodSeconds=0).status_code == 200
    assert place.get("one").status_code == 404
    # the name is free at once, while the old container is still going
    place.started(pod("one", place.image))
    assert place.lab.pod(place.name, "one")["metadata"]["uid"] != ready["metadata"]["uid"]


def test_a_pool_of_real_pods_becomes_ready_and_its_claims_are_replaced(place: Place) -> None:
    role = {"hummingbird/role": "standby"}
    place.lab.deployment(place.name, deployment("pool", place.image, 2, role))
    place.lab.wait_until(lambda: len(place.lab.ready_pods(place.name)) == 2)
    chosen = place.lab.ready_pods(place.name)[0]["metadata"]
    labels = {"hummingbird/role": "active"}
    claim = {"resourceVersion": chosen["resourceVersion"], "labels": labels, "ownerReferences": None}
    assert place.patch(chosen["name"], {"metadata": claim}).status_code == 200
    place.lab.wait_until(lambda: len(place.lab.ready_pods(place.name)) == 3)
    assert place.list(labelSelector="hummingbird/role=active") == [chosen["name"]]


def test_pods_that_find_no_room_stay_pending_until_there_is_some(image: str) -> None:
    with KubernetesLab() as lab:
        place = Place(lab, "crowded", image)
        lab.hold()
        waiting = place.settled(pod("one", image))
        (condition,) = waiting["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
        lab.release()
        lab.wait_until(lambda: lab.ready_pods("crowded"))
        place.http.close()


def test_a_closed_lab_leaves_no_container_no_port_and_no_thread(image: str) -> None:
    before = set(threading.enumerate())
    with KubernetesLab() as lab:
        place = Place(lab, "brief", image)
        uid = place.started(pod("one", image))["metadata"]["uid"]
        place.made(pod("two", image))  # may be about to start
        place.http.close()
        assert containers(f"name={uid}")
        mine = lab.url
    assert not containers(f"name={uid}")
    assert set(threading.enumerate()) - before == set()
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{mine}/version", verify=False)


def test_what_a_killed_lab_left_is_removed_by_the_next_one(tmp_path: Path, image: str) -> None:
    command = [sys.executable, "-m", "tests.standins.kubernetes.server", "--kubeconfig", str(tmp_path / "config")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        url = victim.stdout.readline().strip()
        token = (tmp_path / "config").read_text().partition('"token": "')[2].partition('"')[0]
        path = f"{url}/api/v1/namespaces/sandboxes/pods"
        headers = {"Authorization": f"Bearer {token}"}
        uid = httpx2.post(path, json=pod("one", image), headers=headers, verify=False).json()["metadata"]["uid"]
        with httpx2.Client(headers=headers, verify=False) as http:
            while http.get(f"{path}/one").json()["status"]["phase"] != "Running":
                pass
        victim.send_signal(signal.SIGKILL)
    assert containers(f"name={uid}")
    left = list(Path(tempfile.gettempdir()).glob(f"hummingbird-kubernetes-*-{victim.pid}-*"))
    assert len(left) == 1
    with KubernetesLab():
        assert not containers(f"name={uid}")
    assert not left[0].exists()


def test_the_containers_of_a_living_lab_are_left_alone(place: Place, image: str) -> None:
    uid = place.started(pod("one", image))["metadata"]["uid"]
    with KubernetesLab():
        assert containers(f"name={uid}")
    assert place.phase("one") == "Running"
