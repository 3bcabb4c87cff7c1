"""Lists of the cluster and of the archive as one, through the stand-ins of both; and all that may be missing."""

import json
import random
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.agent.tools.preview import create_evidence_preview
from hummingbird.core.errors import ArgumentsInvalid, CredentialRefused, SourceRefused, SourceUnavailable
from hummingbird.core.limits import KONFLUX_PAGE, PREVIEW_BYTES, SOURCE_ATTEMPTS
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.lab.fault_injection import BreakOff, DropConnection, FaultResponse, Redirect, StreamedBody, Truncate
from hummingbird.lab.konflux.kubearchive import QUERY_TIMEOUT, too_many_requests
from tests.konflux.stage import BUILD_LABEL, DONE, PODS, RUNS, SHA, TEST_LABEL, Raw, before, konflux, parted, thing
from tests.standins.konflux_lab import KonfluxLab

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[KonfluxLab]:
    with konflux(tmp_path / "case") as running:
        yield running


async def test_builds_and_tests_of_both_servers_are_one_list_and_the_live_copy_is_preferred(
    lab: KonfluxLab, tmp_path: Path
) -> None:
    lab.add(thing("PipelineRun", "build", status={"conditions": DONE}))
    lab.add(thing("PipelineRun", "test", TEST_LABEL))
    lab.add(thing("PipelineRun", "stranger", value="0" * 40))
    lab.add(thing("PipelineRun", "build", status={"conditions": []}), archived=True)
    lab.add(thing("PipelineRun", "older"), archived=True)
    lab.add(thing("PipelineRun", "older-test", TEST_LABEL), archived=True)
    async with before(lab, tmp_path) as asked:
        lines = await asked.lines("list_pipelineruns", sha=SHA)
    assert [line["metadata"]["name"] for line in lines] == ["build", "test", "older", "older-test"]
    assert lines[0]["status"]["conditions"] == DONE
    assert all("managedFields" not in line["metadata"] for line in lines)


async def test_a_run_with_both_labels_is_listed_once(lab: KonfluxLab, tmp_path: Path) -> None:
    both = thing("PipelineRun", "both")
    both["metadata"]["labels"][TEST_LABEL] = SHA
    lab.add(both)
    async with before(lab, tmp_path) as asked:
        assert await asked.names("list_pipelineruns", sha=SHA) == ["both"]


async def test_tasks_are_found_by_their_run_and_pods_by_run_or_task(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add(thing("TaskRun", "task", "tekton.dev/pipelineRun", "run"))
    lab.add(thing("Pod", "pod-of-run", "tekton.dev/pipelineRun", "run"))
    lab.add(thing("Pod", "pod-of-task", "tekton.dev/taskRun", "task"), archived=True)
    async with before(lab, tmp_path) as asked:
        assert await asked.names("list_taskruns", pipelinerun="run") == ["task"]
        assert await asked.names("list_pods", pipelinerun="run") == ["pod-of-run"]
        pods = await asked.lines("list_pods", taskrun="task")
        (live,) = await asked.lines("list_pods", pipelinerun="run")
    assert [pod["metadata"]["name"] for pod in pods] == ["pod-of-task"]
    assert (live["kind"], live["apiVersion"]) == ("Pod", "v1")  # the cluster leaves it out


@pytest.mark.parametrize("given", [{}, {"sha": SHA, "pipelinerun": "run"}])
async def test_exactly_one_of_several_ways_to_choose_must_be_given(
    lab: KonfluxLab, tmp_path: Path, given: dict[str, str]
) -> None:
    async with before(lab, tmp_path) as asked:
        with pytest.raises(ArgumentsInvalid, match="exactly one of taskrun, pipelinerun, sha"):
            await asked("list_pods", **given)


async def test_pages_are_followed_on_both_servers(lab: KonfluxLab, tmp_path: Path) -> None:
    """Facts 4: the archive's token holds spaces, plus and equals signs; a full last page leads to an empty one."""
    lab.add_many("PipelineRun", 2 * KONFLUX_PAGE, thing("PipelineRun", "live"))
    lab.add_many("PipelineRun", 2 * KONFLUX_PAGE, thing("PipelineRun", "old"), archived=True)
    async with before(lab, tmp_path) as asked:
        names = await asked.names("list_pipelineruns", sha=SHA)
    assert len(set(names)) == len(names) == 4 * KONFLUX_PAGE
    assert all("limit=100" in request.query for request in lab.requests)
    assert all(request.headers["authorization"] == f"Bearer {lab.token}" for request in lab.requests)


@pytest.mark.thorough
async def test_nothing_at_all_is_said_and_a_shortened_commit_is_blamed(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.world.old_archive = True  # items is null there
    async with before(lab, tmp_path) as asked:
        (told,) = await asked.lines("list_pipelineruns", sha=SHA)
        (short,) = await asked.lines("list_pipelineruns", sha=SHA[:8])
    assert "neither in the cluster nor in KubeArchive" in told["nothing_found"]
    assert "shortened" not in told["nothing_found"]
    assert "give all its characters" in short["nothing_found"]


@pytest.mark.thorough
async def test_without_an_archive_the_cluster_is_asked_alone(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add(thing("PipelineRun", "build"))
    async with before(lab, tmp_path, archive=False) as asked:
        assert await asked.names("list_pipelineruns", sha=SHA) == ["build"]
        (told,) = await asked.lines("list_pipelineruns", sha="0" * 40)
    assert "no archive is configured" in told["nothing_found"]
    assert {request.server for request in lab.requests} == {"cluster"}


@pytest.mark.thorough
@pytest.mark.parametrize("fault", [Truncate(30_000), BreakOff(30_000)], ids=["connection", "json"])
async def test_a_truncated_page_keeps_what_came_and_says_so(
    lab: KonfluxLab, tmp_path: Path, fault: Truncate | BreakOff
) -> None:
    """Facts 4: an error of the archive's database is HTTP 200 with half a list."""
    lab.add(thing("PipelineRun", "live"))
    for number in range(9):
        lab.add(thing("PipelineRun", f"old-{number}", spec={"x": noise(number, 8_000)}), archived=True)
    lab.archive_faults.plan(RUNS, fault, query="*pipelinesascode*")
    async with before(lab, tmp_path) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert names[0] == "live"
    assert 2 <= len(names) < 10
    assert gap.startswith("KubeArchive, pipelineruns: ")
    assert gap.endswith("The rest of the list is missing.")


def noise(seed: int, length: int) -> str:
    """What gzip cannot pack much."""
    return random.Random(seed).randbytes(length // 2).hex()


@pytest.mark.thorough
async def test_a_truncated_page_whose_token_came_first_does_not_end_the_list(lab: KonfluxLab, tmp_path: Path) -> None:
    """Pods: the cluster writes the metadata before the items."""
    for number in range(KONFLUX_PAGE + 5):
        lab.add(thing("Pod", f"pod-{number:05d}", spec={"x": noise(number, 2_000)}))
    lab.cluster_faults.plan(PODS, Truncate(40_000), query="*pipelinesascode*")
    async with before(lab, tmp_path, archive=False) as asked:
        names, gap = parted(await asked.lines("list_pods", sha=SHA))
    assert names[-5:] == [f"pod-{index:05d}" for index in range(KONFLUX_PAGE, KONFLUX_PAGE + 5)]
    assert 10 < len(names) < KONFLUX_PAGE
    assert gap.endswith("The rest of that page is missing.")


EXPIRED = next(
    each["body"]
    for each in json.loads((FIXTURES / "tekton" / "k8s_status_errors.json").read_text())
    if each["code"] == 410
)


@pytest.mark.thorough
async def test_an_expired_token_is_followed_by_the_fresh_one(lab: KonfluxLab, tmp_path: Path) -> None:
    """Facts 4: 410 carries a token that leads on, inconsistently. The history is compacted once the first page came."""
    lab.add_many("PipelineRun", 2 * KONFLUX_PAGE, thing("PipelineRun", "live"))
    async with before(lab, tmp_path, archive=False) as asked:
        output = await asked("list_pipelineruns", sha=SHA)
        lab.expire_tokens()
        lines = [json.loads(line) async for line in output.chunks]  # type: ignore[union-attr]  # a stream
    names, gap = parted(lines)
    assert len(set(names)) == 2 * KONFLUX_PAGE
    assert "It was read on and may be inconsistent" in gap


@pytest.mark.thorough
async def test_an_expired_token_without_a_fresh_one_ends_the_list_and_is_said(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add_many("PipelineRun", 2 * KONFLUX_PAGE, thing("PipelineRun", "live"))
    lab.cluster_faults.plan(RUNS, FaultResponse(410, {**EXPIRED, "metadata": {}}), query="*continue=*")
    async with before(lab, tmp_path, archive=False) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert len(names) == KONFLUX_PAGE
    assert gap.endswith("The rest of it is missing.")


async def test_a_list_that_leads_in_a_circle_ends(lab: KonfluxLab, tmp_path: Path) -> None:
    page = {"items": [thing("PipelineRun", "one")], "metadata": {"continue": "again"}}
    lab.cluster_faults.plan(RUNS, FaultResponse(200, page), times=2, query="*pipelinesascode*")
    async with before(lab, tmp_path, archive=False) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert names == ["one"]
    assert "leads in a circle" in gap


@pytest.mark.thorough
async def test_a_server_that_fails_leaves_what_the_other_has(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add(thing("PipelineRun", "live"))
    lab.add(thing("PipelineRun", "old"), archived=True)
    async with before(lab, tmp_path) as asked:
        lab.cluster_faults.plan(RUNS, DropConnection(), times=SOURCE_ATTEMPTS)
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
        assert names == ["old"]
        assert gap.startswith("No pipelineruns of builds and no pipelineruns of tests could be read from the cluster: ")
        lab.archive_faults.plan(RUNS, QUERY_TIMEOUT, times=SOURCE_ATTEMPTS)
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
        assert names == ["live"]
        assert gap.startswith("No pipelineruns of builds and no pipelineruns of tests could be read from KubeArchive: ")


@pytest.mark.thorough
async def test_a_server_that_is_busy_is_asked_again(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add(thing("PipelineRun", "old"), archived=True)
    lab.archive_faults.plan(RUNS, too_many_requests(), times=2)
    async with before(lab, tmp_path) as asked:
        assert await asked.names("list_pipelineruns", sha=SHA) == ["old"]


@pytest.mark.thorough
async def test_when_both_servers_are_down_the_call_fails(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.cluster_faults.plan(RUNS, FaultResponse(503, "no"), times=SOURCE_ATTEMPTS)
    lab.archive_faults.plan(RUNS, QUERY_TIMEOUT, times=SOURCE_ATTEMPTS)
    async with before(lab, tmp_path) as asked:
        with pytest.raises(SourceUnavailable, match=r"503.*504"):
            await asked("list_pipelineruns", sha=SHA)


@pytest.mark.thorough
async def test_a_token_that_is_refused_is_the_operators_to_renew(lab: KonfluxLab, tmp_path: Path) -> None:
    """Facts 4: the archive says 401 to a bad token, the cluster too."""
    lab.revoke_token()
    async with before(lab, tmp_path) as asked:
        with pytest.raises(
            CredentialRefused, match=r"The cluster does not let us.*KubeArchive does not let us"
        ) as told:
            await asked("list_pipelineruns", sha=SHA)
    assert lab.token not in str(told.value)


@pytest.mark.thorough
async def test_a_token_that_may_not_list_is_told_what_to_grant(lab: KonfluxLab, tmp_path: Path) -> None:
    """Facts 4: the cluster says 403, the archive 401."""
    lab.restrict_token({"pods": ("get", "list")})
    async with before(lab, tmp_path) as asked:
        with pytest.raises(CredentialRefused, match=r"\(403 Forbidden\).*grant get and list"):
            await asked("list_pipelineruns", sha=SHA)


@pytest.mark.thorough
async def test_a_kubeconfig_without_a_token_is_refused_by_the_archive_in_its_own_way(
    lab: KonfluxLab, tmp_path: Path
) -> None:
    """Facts 4: no header is 400 there."""
    file = tmp_path / "bare"
    written = json.loads(lab.write_kubeconfig(tmp_path / "full").read_text())
    file.write_text(json.dumps({**written, "users": [{"name": each["name"], "user": {}} for each in written["users"]]}))
    async with before(lab, tmp_path, kubeconfig=str(file)) as asked:
        with pytest.raises(CredentialRefused, match="KubeArchive does not let us read"):
            await asked("list_pipelineruns", sha=SHA)


@pytest.mark.thorough
async def test_a_redirect_to_another_host_is_not_followed(lab: KonfluxLab, tmp_path: Path) -> None:
    """The token would go there."""
    lab.cluster_faults.plan(RUNS, Redirect(f"{lab.archive_url}/elsewhere"), times=2)
    async with before(lab, tmp_path, archive=False) as asked:
        with pytest.raises(SourceRefused, match="redirects to another host"):
            await asked("list_pipelineruns", sha=SHA)
    assert {request.server for request in lab.requests} == {"cluster"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "body",
    [b"<html>log in</html>", b'{"items":[' + b"[" * 100_000, b'{"items":[{"a":"\xff', b'{"kind":"Status"}', b""],
)
async def test_an_answer_that_is_no_list_is_a_gap_or_fails_the_call(
    lab: KonfluxLab, tmp_path: Path, body: bytes
) -> None:
    lab.add(thing("PipelineRun", "old"), archived=True)
    lab.cluster_faults.plan(RUNS, FaultResponse(200, body), times=2)
    async with before(lab, tmp_path) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert names == ["old"]
    assert "No pipelineruns of builds" in gap
    assert "No pipelineruns of tests" in gap


@pytest.mark.thorough
async def test_a_test_that_reports_a_failure_is_pointed_out_in_its_line(lab: KonfluxLab, tmp_path: Path) -> None:
    results = [{"name": "TEST_OUTPUT", "value": '{"result":"FAILURE","failures":1}'}]
    lab.add(thing("PipelineRun", "test", TEST_LABEL, status={"conditions": DONE, "results": results}))
    async with before(lab, tmp_path) as asked:
        (line,) = await asked.lines("list_pipelineruns", sha=SHA)
    assert "counts as failed" in line["hummingbird_note"]


def packed_list(items: int, size: int) -> Iterator[bytes]:
    """A list of large items, packed as it is sent; it would be far larger unpacked."""
    packing = zlib.compressobj(1, wbits=31)
    yield packing.compress(b'{"metadata":{},"items":[')
    for index in range(items):
        item = {
            "metadata": {"uid": f"u{index}", "name": f"n{index}"},
            "spec": {f"k{n}": "x" * 90 for n in range(size // 100)},
        }
        yield packing.compress((b"," if index else b"") + json.dumps(item).encode())
    yield packing.compress(b"]}") + packing.flush()


@pytest.mark.thorough
async def test_a_huge_packed_page_is_never_held(lab: KonfluxLab, tmp_path: Path) -> None:
    """15 MB of items of 100 KB each, which pack to a few hundred KB."""
    count, size = 150, 100_000
    body = StreamedBody(
        lambda: packed_list(count, size), {"content-type": "application/json", "content-encoding": "gzip"}
    )
    lab.cluster_faults.plan(RUNS, body, query="*pipelinesascode*")
    came = 0
    async with before(lab, tmp_path, archive=False) as asked:
        output = await asked("list_pipelineruns", sha=SHA)
        tracemalloc.start()
        try:
            async for line in output.chunks:  # type: ignore[union-attr]  # known to be a stream here
                came += len(line)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert came > count * size * 0.9
    assert peak < 8 * 1024 * 1024


@pytest.mark.thorough
async def test_the_preview_reads_such_a_list_its_last_line_included(lab: KonfluxLab, tmp_path: Path) -> None:
    """What failed is shown, and that something is missing does not hide it."""
    for name in ("pipelinerun_build_failed", "pipelinerun_test_succeeded"):
        run: Raw = json.loads((FIXTURES / "evidence" / "tekton" / f"{name}.json").read_text())
        run["metadata"]["namespace"] = "acme-tenant"
        label = BUILD_LABEL if "build" in name else TEST_LABEL
        run["metadata"]["labels"][label] = SHA
        lab.add(run)
    lab.archive_faults.plan(RUNS, QUERY_TIMEOUT, times=SOURCE_ATTEMPTS)
    async with before(lab, tmp_path) as asked:
        content = await asked.content("list_pipelineruns", sha=SHA)
    assert b'{"incomplete":' in content.splitlines()[-1]
    preview = create_evidence_preview("jsonl")
    for at in range(0, len(content), 4_096):
        preview.feed(content[at : at + 4_096])
    shown = preview.text(PREVIEW_BYTES)
    assert "Incomplete: No pipelineruns of builds and no" in shown
    assert "testrepo-d69b0-on-pull-request-8pblb" in shown


@pytest.mark.thorough
async def test_a_list_that_nobody_reads_to_its_end_is_closed(lab: KonfluxLab, tmp_path: Path) -> None:
    """Warnings are errors here: a connection that stays open would be one."""
    lab.add_many("PipelineRun", 3 * KONFLUX_PAGE, thing("PipelineRun", "live", spec={"x": noise(1, 5_000)}))
    async with before(lab, tmp_path) as asked:
        output = await asked("list_pipelineruns", sha=SHA)
        assert isinstance(output, ByteStream)
        assert b'"live-00000"' in await anext(output.chunks)
        await output.chunks.aclose()  # type: ignore[attr-defined]  # a look inside a library
        assert len(await asked.names("list_pipelineruns", sha=SHA)) == 3 * KONFLUX_PAGE
    assert sum("continue" in request.query for request in lab.requests) < 5
