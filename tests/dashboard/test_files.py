"""What a session's sandbox held, for whoever looks: in every kind of sandbox that runs can be in."""

from pathlib import Path

import httpx2
import pytest

from tests.dashboard.test_hostile import SESSION, planted, saved
from tests.journeys.service.stage import Stage, staged
from tests.sandboxes.kube import LabStage, beside, given_lab, given_lab_stage, pool_of  # noqa: F401 - a fixture


def web(stage: Stage) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60)


@pytest.mark.thorough
async def test_files_are_seen_with_a_pool_and_no_pod_is_left_in_use(lab_stage: LabStage, tmp_path: Path) -> None:
    await beside(lambda: pool_of(lab_stage, 2))
    sandbox = {"backend": "k8spool", "image": lab_stage.image, "namespace": lab_stage.namespace}
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.configure({"sandbox": sandbox}, {"analyze-failures": {}})
        stage.environment["KUBECONFIG"] = str(lab_stage.kubeconfig)
        if lab_stage.site.kubectl:
            stage.environment["PATH"] = f"{Path(lab_stage.site.kubectl).parent}:{stage.environment['PATH']}"
        await stage.serve()
        await planted(stage)
        saved(stage, note=b"found it\n")
        async with web(stage) as client:
            page = await client.get(f"/sessions/{SESSION}/files")
            assert (page.status_code, "note" in page.text) == (200, True), page.text
            file = await client.get(f"/sessions/{SESSION}/file", params={"path": "note"})
            assert (file.status_code, file.content) == (200, b"found it\n")
    active = [pod for pod in lab_stage.pods() if pod["metadata"]["labels"].get("hummingbird/role") == "active"]
    assert [pod for pod in active if "deletionTimestamp" not in pod["metadata"]] == []


async def test_a_file_is_given_away_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.app.dashboard.FILE_BYTES", 10)
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage)
        saved(stage, just=b"0123456789", more=b"0123456789a")
        async with web(stage) as client:
            whole = await client.get(f"/sessions/{SESSION}/file", params={"path": "just"})
            assert (whole.status_code, whole.content) == (200, b"0123456789")
            refused = await client.get(f"/sessions/{SESSION}/file", params={"path": "more"})
            assert refused.status_code == 404
            assert "larger than 10 bytes" in refused.text


@pytest.mark.thorough
async def test_a_list_of_files_that_is_cut_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.app.dashboard.FILES_SHOWN", 2)
    async with staged("failing-test", tmp_path) as stage:
        await planted(stage)
        async with web(stage) as client:
            saved(stage, one=b"", two=b"")
            assert "There are more" not in (await client.get(f"/sessions/{SESSION}/files")).text
            saved(stage, one=b"", two=b"", three=b"")
            page = (await client.get(f"/sessions/{SESSION}/files")).text
            assert "There are more than these 2" in page
            assert page.count("/file?path=") == 2
