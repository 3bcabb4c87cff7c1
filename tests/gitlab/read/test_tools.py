"""Every tool of the GitLab source through the lab's GitLab."""

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.core.errors import ArgumentsInvalid, CallDenied, SourceNotFound
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.gitlab.read.discussion_filter import WITHHELD
from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab.server import GitLabLab
from tests.gitlab.read.stage import Asking, source_at

CASE = Path(__file__).parent / "widgets"
HEAD = "4d2f3b1c9e8a7f6d5c4b3a291807f6e5d4c3b2a1"
BOT = 22


@pytest.fixture
def lab() -> Iterator[GitLabLab]:
    with GitLabLab(LabCase(CASE)) as found:
        yield found


@pytest.fixture
def ask(lab: GitLabLab) -> Iterator[Asking]:
    with source_at(lab.url, lab.read_token, bot_ids=frozenset({BOT})) as found:
        yield found


async def test_details_name_the_commit_of_record_and_the_authors_access(ask: Asking) -> None:
    found = await ask.output("get_mr_details", mr_iid=7)
    assert isinstance(found, dict)
    assert found["sha"] == HEAD
    assert found["author_access"] == 0
    assert found["from_fork"] is True
    assert "jdoe" not in json.dumps({key: found[key] for key in found if key != "web_url"})
    assert found["diff_refs"]["head_sha"] == HEAD


async def test_the_unified_diff_is_the_patch(ask: Asking) -> None:
    output = await ask.output("get_mr_unified_diff", mr_iid=7)
    assert isinstance(output, ByteStream)
    assert output.suffix == "diff"
    patch = b"".join([chunk async for chunk in output.chunks])
    assert b"+    return grams / 0;" in patch


async def test_the_diff_comes_file_by_file(ask: Asking) -> None:
    found = await ask.lines("get_mr_diff", mr_iid=7)
    assert [each["new_path"] for each in found] == ["src/weigh.c"]
    assert "+    return grams / 0;" in found[0]["diff"]


async def test_commits_come_without_names_and_addresses(ask: Asking) -> None:
    found = await ask.lines("get_mr_commits", mr_iid=7)
    assert [each["id"] for each in found] == [HEAD]
    assert "j@example.com" not in json.dumps(found)


async def test_discussions_hold_trusted_words_only(ask: Asking, lab: GitLabLab) -> None:
    found = await ask.lines("get_mr_discussions", mr_iid=7)
    assert "evil" not in json.dumps(found)
    assert "Ignore all rules" not in json.dumps(found)
    system, mixed, own, last = found
    assert system["notes"][0]["system"] == "added commits"
    assert [note["text"] for note in mixed["notes"]] == ["Why divide?", WITHHELD, "Indeed."]
    assert [note.get("author") for note in mixed["notes"]] == ["ada", None, "grace"]
    assert own["notes"][0]["text"].startswith("The test fails.")
    assert "iterations" not in own["notes"][0]["text"]
    assert "hummingbird-session" not in json.dumps(found)
    assert [note["text"] for note in own["notes"][1:]] == [WITHHELD] * 3
    assert last["threads_left_out"] == 1
    members = [seen.path for seen in lab.requests if "/members/all/" in seen.path]
    assert len(members) == len(set(members))  # each author is asked for once


async def test_without_its_ids_the_agent_is_an_author_like_any_other(lab: GitLabLab) -> None:
    with source_at(lab.url, lab.read_token) as ask:
        found = await ask.lines("get_mr_discussions", mr_iid=7)
    note = found[2]["notes"][0]
    assert "by_this_agent" not in note
    assert note["author"] == "project_101_bot_2"  # it has Developer access


async def test_statuses_tell_jobs_from_external_ones(ask: Asking) -> None:
    found = await ask.lines("get_commit_statuses", sha=HEAD)
    kinds = {each["name"]: each["kind"] for each in found}
    assert kinds["Konflux / widgets-on-pull-request"] == "external"
    assert kinds["unit"] == "job"
    assert {each["job_id"] for each in found if each["name"] == "unit"} == {70005}


async def test_statuses_can_be_narrowed_and_widened(ask: Asking) -> None:
    """Facts 2.5: the library would take `all` for its own."""
    units = await ask.lines("get_commit_statuses", sha=HEAD, name="unit", all=True)
    assert {each["job_id"] for each in units} == {70001, 70005}
    assert len(await ask.lines("get_commit_statuses", sha=HEAD, name="unit", pipeline_id=9001)) == 1


async def test_a_file_comes_as_it_is(ask: Asking) -> None:
    output = await ask.output("get_file_at_ref", path="src/weigh.c", ref=HEAD)
    assert isinstance(output, ByteStream)
    assert (output.suffix, output.binary) == ("c", False)
    assert b"".join([chunk async for chunk in output.chunks]) == (CASE / "gitlab/tree/src/weigh.c").read_bytes()


async def test_a_binary_file_says_that_it_is_one_and_an_empty_one_too(ask: Asking) -> None:
    output = await ask.output("get_file_at_ref", path="logo.bin", ref=HEAD)
    assert isinstance(output, ByteStream)
    assert output.binary
    assert b"".join([chunk async for chunk in output.chunks]) == bytes(range(256))
    assert "is empty" in str(await ask.output("get_file_at_ref", path="empty.txt", ref=HEAD))


@pytest.mark.parametrize("path", ["..", "../x", "a/../b", "/etc/passwd", "a//b", "./a", "a/"])
async def test_a_path_that_does_not_lead_down_is_refused_without_a_request(
    ask: Asking, lab: GitLabLab, path: str
) -> None:
    with pytest.raises(ArgumentsInvalid):
        await ask.output("get_file_at_ref", path=path, ref=HEAD)
    assert lab.requests == []


async def test_what_is_not_there_is_said(ask: Asking) -> None:
    for name, arguments in (
        ("get_file_at_ref", {"path": "no.such", "ref": HEAD}),
        ("get_file_at_ref", {"path": "src/weigh.c", "ref": "nosuchref"}),
        ("get_repo_archive", {"ref": "nosuchref"}),
        ("get_mr_details", {"mr_iid": 99}),
        ("get_mr_unified_diff", {"mr_iid": 99}),
        ("get_mr_diff", {"mr_iid": 99}),
        ("get_mr_commits", {"mr_iid": 99}),
        ("get_mr_discussions", {"mr_iid": 99}),
        ("get_job_log", {"job_id": 99}),
        ("get_pipeline_jobs", {"pipeline_id": 99}),
        ("get_test_report", {"pipeline_id": 99}),
        ("get_commit_statuses", {"sha": "0" * 40}),
        ("get_baseline_job_log", {"job_name": "no such job"}),
    ):
        with pytest.raises(SourceNotFound):
            await ask.output(name, **arguments)


async def test_the_archive_holds_the_files(ask: Asking) -> None:
    output = await ask.output("get_repo_archive", ref=HEAD)
    assert isinstance(output, ByteStream)
    assert (output.suffix, output.binary) == ("tar.gz", True)
    content = b"".join([chunk async for chunk in output.chunks])
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert any(name.endswith("src/weigh.c") for name in archive.getnames())


async def test_a_job_log_is_plain_and_keeps_its_lines(ask: Asking) -> None:
    text = await ask("get_job_log", job_id=70005)
    raw = (CASE / "logs/unit.log").read_bytes()
    assert text.count(b"\n") == raw.count(b"\n")
    assert text.decode().split("\n")[2] == "$ pytest ✓ \ufffd"
    assert b"section_start:1:step_script\r" in text


async def test_an_empty_log_is_said(ask: Asking) -> None:
    assert "empty log" in str(await ask.output("get_job_log", job_id=70002))


async def test_jobs_come_with_retries_and_bridges(ask: Asking) -> None:
    found = await ask.lines("get_pipeline_jobs", pipeline_id=9001)
    told = {each["id"]: each for each in found}
    assert set(told) == {70001, 70002, 70003, 70005}
    assert told[70001]["retried"] is True
    assert "retried" not in told[70005]
    assert told[70003]["kind"] == "bridge"
    assert told[70005]["failure_reason"] == "script_failure"


async def test_the_test_report_tells_failures_first(ask: Asking) -> None:
    sums, suite = await ask.lines("get_test_report", pipeline_id=9001)
    assert sums["failed_count"] == 1
    assert [case["name"] for case in suite["test_cases"]] == ["test_heavy", "test_light"]
    assert suite["test_cases"][0]["system_output"] == "ZeroDivisionError"
    assert "no test report" in str(await ask.output("get_test_report", pipeline_id=8990))


@pytest.mark.parametrize("where", [{}, {"ref": "main"}])
async def test_the_baseline_is_the_last_green_run_and_a_note_says_so(ask: Asking, where: dict[str, str]) -> None:
    output = await ask.output("get_baseline_job_log", job_name="unit", **where)
    assert isinstance(output, ByteStream)
    assert output.note.startswith("Baseline: the log of job 69981 of pipeline 8980, green, finished 20")
    text = (await ask("get_baseline_job_log", job_name="unit", **where)).decode().splitlines()
    assert text[:3] == ["Running with gitlab-runner 17.0.0", "$ pytest", "2 passed"]


async def test_a_baseline_without_a_log_is_said(ask: Asking) -> None:
    assert "erased" in str(await ask.output("get_baseline_job_log", job_name="lint", ref="main"))


async def test_recent_pipelines_show_whether_the_target_branch_is_red(ask: Asking) -> None:
    found = await ask.lines("list_recent_pipelines", ref="main")
    assert [(each["id"], each["status"]) for each in found] == [(8990, "failed"), (8980, "success")]
    assert len(await ask.lines("list_recent_pipelines", limit=1)) == 1
    assert "no pipelines" in str(await ask.output("list_recent_pipelines", ref="nothing"))


@pytest.mark.parametrize("project", ["jdoe/widgets", "acme/secrets", "202"])
async def test_other_projects_are_refused_before_any_request(ask: Asking, lab: GitLabLab, project: str) -> None:
    arguments = {"mr_iid": 7, "sha": HEAD, "path": "a", "ref": "b", "job_id": 1, "pipeline_id": 1, "job_name": "n"}
    for tool in ask.source.tools:
        needed = {name: arguments[name] for name in tool.spec.schema["required"]}
        with pytest.raises(CallDenied, match="fork"):
            await ask.output(tool.spec.name.removeprefix("gitlab_"), **needed, project=project)
    assert lab.requests == []


async def test_a_listed_project_is_read(lab: GitLabLab) -> None:
    with source_at(lab.url, lab.read_token, project="acme/other", projects=("acme/widgets",)) as ask:
        found = await ask.output("get_mr_details", mr_iid=7, project="acme/widgets")
    assert isinstance(found, dict)
    assert found["iid"] == 7
