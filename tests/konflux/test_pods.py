"""One pod, and its logs: the archive's before the cluster's, all containers with headers, gaps said in place."""

from pathlib import Path

import pytest

from hummingbird.core.errors import CredentialRefused, SourceNotFound, SourceRefused, SourceUnavailable
from hummingbird.core.limits import SOURCE_ATTEMPTS
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.konflux.source import PodLogs
from hummingbird.lab.fault_injection import FaultResponse, Truncate
from tests.konflux.stage import Raw, before, konflux, thing

LOGS = {"p": {"prepare": b"ready\n", "step-clone": b"cloned\n", "step-test": b"FAILED one test"}}
SPEC: Raw = {
    "nodeName": "node",
    "initContainers": [{"name": "prepare"}],
    "containers": [{"name": "step-clone"}, {"name": "step-test"}],
}


def pod(name: str = "p", status: Raw | None = None) -> Raw:
    return thing("Pod", name, spec=SPEC, status=status or {})


async def test_a_pod_comes_from_the_cluster_or_else_from_the_archive(tmp_path: Path) -> None:
    with konflux(tmp_path / "case") as lab:
        lab.add(pod("both", status={"phase": "Running"}))
        lab.add(pod("both", status={"phase": "Failed"}), archived=True)
        lab.add(pod("old"), archived=True)
        async with before(lab, tmp_path) as asked:
            both, old = await asked("get_pod", pod="both"), await asked("get_pod", pod="old")
            with pytest.raises(SourceNotFound, match=r"The cluster has no pod lost.*KubeArchive has no pod lost"):
                await asked("get_pod", pod="lost")
    assert isinstance(both, dict)
    assert isinstance(old, dict)
    assert (both["status"]["phase"], both["kind"], old["metadata"]["name"]) == ("Running", "Pod", "old")
    assert "managedFields" not in both["metadata"]
    assert "incomplete" not in both
    assert "incomplete" not in old


async def test_an_archived_pod_says_when_the_cluster_could_not_be_asked(tmp_path: Path) -> None:
    with konflux(tmp_path / "case") as lab:
        lab.add(pod(), archived=True)
        lab.cluster_faults.plan("*/pods/p", FaultResponse(503, "no"), times=SOURCE_ATTEMPTS)
        async with before(lab, tmp_path) as asked:
            found = await asked("get_pod", pod="p")
    assert isinstance(found, dict)
    assert found["incomplete"].endswith("This is the archived copy, which may be older.")


@pytest.mark.thorough
async def test_where_one_server_has_nothing_and_the_other_is_down_nobody_says_there_is_nothing(
    tmp_path: Path,
) -> None:
    with konflux(tmp_path / "case") as lab:
        lab.archive_faults.plan("*/pods/p", FaultResponse(504, {"message": "query timeout"}), times=SOURCE_ATTEMPTS)
        async with before(lab, tmp_path) as asked:
            with pytest.raises(SourceUnavailable, match="has no pod p"):
                await asked("get_pod", pod="p")


@pytest.mark.thorough
async def test_all_logs_come_with_headers_in_the_order_of_the_pod(tmp_path: Path) -> None:
    with konflux(tmp_path / "case", logs=LOGS) as lab:
        lab.add(pod())
        async with before(lab, tmp_path) as asked:
            whole = await asked.content("get_pod_log", pod="p")
            one = await asked.content("get_pod_log", pod="p", container="step-test")
    assert whole == (b"=== prepare ===\nready\n=== step-clone ===\ncloned\n=== step-test ===\nFAILED one test\n")
    assert one == b"FAILED one test"


@pytest.mark.thorough
async def test_the_archives_log_is_preferred_and_the_clusters_fills_its_gaps(tmp_path: Path) -> None:
    archived = {"p": {"step-clone": b"archived\n"}}
    with konflux(tmp_path / "case", logs=LOGS, archived_logs=archived) as lab:
        lab.add(pod())
        lab.add(pod(), archived=True)
        async with before(lab, tmp_path) as asked:
            whole = await asked.content("get_pod_log", pod="p")
    assert b"=== prepare ===\nready\n=== step-clone ===\narchived\n=== step-test ===\nFAILED" in whole


@pytest.mark.thorough
async def test_a_log_that_is_missing_or_empty_is_said_in_its_place(tmp_path: Path) -> None:
    """Facts 4: a container that waits has no log, 400; the archive may have logs of some containers alone."""
    waiting = [{"name": "step-test", "state": {"waiting": {"reason": "PodInitializing"}}}]
    with konflux(tmp_path / "case", logs={"p": {"prepare": b"ready\n"}}) as lab:
        lab.add(pod(status={"phase": "Running", "containerStatuses": waiting}))
        async with before(lab, tmp_path) as asked:
            whole = (await asked.content("get_pod_log", pod="p")).decode()
            with pytest.raises(
                SourceRefused, match=r"400 BadRequest\)\. Is there such a container in the pod, and has"
            ):
                await asked("get_pod_log", pod="p", container="step-test")
    _, prepare, clone, test = whole.split("=== ")
    assert prepare == "prepare ===\nready\n"
    assert clone == "step-clone ===\n[The log is empty.]\n"
    assert test.startswith("step-test ===\n[No log of step-test: ")
    assert "has it begun?" in test


@pytest.mark.thorough
async def test_a_log_that_breaks_off_says_so_and_the_next_one_still_comes(tmp_path: Path) -> None:
    long = {"p": {"prepare": b"a line\n" * 20_000, "step-clone": b"cloned\n", "step-test": b"tested\n"}}
    with konflux(tmp_path / "case", logs=long) as lab:
        lab.add(pod())
        lab.cluster_faults.plan("*/p/log", Truncate(70_000))
        async with before(lab, tmp_path, archive=False) as asked:
            whole = (await asked.content("get_pod_log", pod="p")).decode()
    assert whole.count("a line\n") == 10_000
    assert "\n[The log breaks off here. The source's answer broke off" in whole
    assert whole.endswith("=== step-clone ===\ncloned\n=== step-test ===\ntested\n")


@pytest.mark.thorough
async def test_a_server_that_is_down_is_not_asked_for_every_container(tmp_path: Path) -> None:
    with konflux(tmp_path / "case", logs=LOGS) as lab:
        lab.add(pod())
        lab.archive_faults.plan("*/log", FaultResponse(503, "no"), times=SOURCE_ATTEMPTS)
        async with before(lab, tmp_path) as asked:
            whole = await asked.content("get_pod_log", pod="p")
        asked_for = [each for each in lab.requests if each.server == "archive" and each.path.endswith("/log")]
    assert b"FAILED one test" in whole
    assert len(asked_for) == SOURCE_ATTEMPTS


@pytest.mark.thorough
async def test_a_pod_that_nobody_knows_has_no_log(tmp_path: Path) -> None:
    with konflux(tmp_path / "case") as lab:
        async with before(lab, tmp_path) as asked:
            for container in ({}, {"container": "step-test"}):
                with pytest.raises(SourceNotFound):
                    await asked("get_pod_log", pod="lost", **container)


@pytest.mark.thorough
async def test_a_token_that_may_not_read_logs_is_the_operators(tmp_path: Path) -> None:
    with konflux(tmp_path / "case", logs=LOGS) as lab:
        lab.add(pod())
        lab.restrict_token({"pods": ("get", "list")})
        async with before(lab, tmp_path) as asked:
            with pytest.raises(CredentialRefused, match="grant get and list"):
                await asked("get_pod_log", pod="p", container="step-test")


@pytest.mark.thorough
async def test_a_log_is_given_as_a_terminal_got_it_and_called_so(tmp_path: Path) -> None:
    with konflux(tmp_path / "case", logs={"p": {"step-test": b"\x1b[31mred\x1b[0m"}}) as lab:
        lab.add(pod())
        async with before(lab, tmp_path) as asked:
            for named in ({"container": "step-test"}, {}):
                output = await asked("get_pod_log", pod="p", **named)
                assert isinstance(output, ByteStream)
                assert output.terminal
                assert b"\x1b[31mred" in b"".join([chunk async for chunk in output.chunks])


async def test_more_containers_than_a_pod_has_are_not_all_asked_for() -> None:
    listed = {"spec": {"containers": [{"name": f"c{number}"} for number in range(1_000)]}}
    whole = b"".join([chunk async for chunk in PodLogs([], "p").stream_all(listed)])
    assert whole.count(b"=== c") == 200
    assert whole.endswith(b"[800 more containers were not asked for: name one.]\n")
