"""Merge requests, checks, access, diffs and branches as the forge reads them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.core.errors import GitLabRequestRefused, GitLabUnavailable, GitLabWriteError
from hummingbird.core.limits import ACCESS_S
from hummingbird.gitlab.access import DEVELOPER
from hummingbird.gitlab.write.api_response import GitLabResponse as Told
from hummingbird.gitlab.write.api_response import parse_time, positive_int
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.gitlab.write.protocol import BranchStatus
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.records import CiJob, Commit, CommitStatus, DiffFile, Member, Pipeline
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.gitlab.write.writer_stage import MR, NOW, asked, forging
from tests.lab.gitlab.written_case import HEAD, PARENT, ROOT, served

MERGED = "f" * 40
AT = "2026-03-02T08:10:00.000Z"
ODD: list[object] = [None, [], "text", 7, True, {}, [1, None, "x"], {"id": {"id": []}}, {"notes": {"a": 1}}, [[]], [{}]]


def run(number: int, sha: str, ref: str = "main", status: str = "success", source: str = "push") -> Pipeline:
    return Pipeline(number, number, 101, sha, ref, source, status, 13, AT, AT)


def job(number: int, name: str, pipeline: int, status: str = "failed", *, bridge: bool = False) -> CiJob:
    return CiJob(number, name, "test", status, pipeline, 13, AT, bridge=bridge)


def commit(sha: str) -> Commit:
    return Commit(sha, "t", "m", "a", "a@example.com", AT)


async def test_a_merge_request_is_read_with_what_its_diff_is_between(forge: GitLabProjectWriter) -> None:
    found = await forge.merge_request(7)
    assert (found.change.head, found.base_sha, found.start_sha) == (HEAD, ROOT, ROOT)
    assert (found.change.source_branch, found.change.target_branch, found.change.state) == ("feature", "main", "opened")
    assert (found.author, found.change.author_id, found.title, found.project) == (
        "guest",
        15,
        "Add widgets",
        "acme/widgets",
    )
    assert found.head_pipeline_id == 9001
    assert found.url.endswith("/acme/widgets/-/merge_requests/7")


@pytest.mark.parametrize("name", ["draft", "work_in_progress"])
async def test_a_draft_is_one_by_either_of_its_names(lab: GitLabLab, forge: GitLabProjectWriter, name: str) -> None:
    lab.world.faults.plan(MR, FaultResponse(200, {"iid": 7, name: True}))
    assert (await forge.merge_request(7)).change.draft


async def test_shas_of_an_older_diff_do_not_go_with_a_newer_head(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    refs = {"base_sha": ROOT, "start_sha": ROOT, "head_sha": PARENT}
    lab.world.faults.plan(MR, FaultResponse(200, {"iid": 7, "sha": HEAD, "diff_refs": refs}))
    found = await forge.merge_request(7)
    assert (found.change.head, found.base_sha, found.start_sha) == (HEAD, "", "")


async def test_the_open_merge_request_whose_head_is_a_commit_is_found(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    assert [each.change.iid for each in await forge.merge_requests_at(HEAD)] == [7]
    assert (await forge.merge_requests_at(HEAD))[0].head_pipeline_id == 9001
    assert list(await forge.merge_requests_at(PARENT)) == []
    assert list(await forge.merge_requests_at("0" * 40)) == []
    lab.run_in_server(lambda world: setattr(world.merge_request, "state", "merged"))
    assert list(await forge.merge_requests_at(HEAD)) == []


@pytest.mark.parametrize("moved", [{"sha": PARENT}, {"state": "closed"}])
async def test_a_merge_request_that_moved_on_meanwhile_is_left_out(
    lab: GitLabLab, forge: GitLabProjectWriter, moved: dict[str, str]
) -> None:
    lab.world.faults.plan(MR, FaultResponse(200, {"iid": 7, "sha": HEAD, "state": "opened", **moved}))
    lab.world.faults.plan(MR, FaultResponse(404, {"message": "404 Not found"}))
    assert list(await forge.merge_requests_at(HEAD)) == []
    assert list(await forge.merge_requests_at(HEAD)) == []


async def test_a_merge_request_of_a_fork_is_found_in_its_target(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.run_in_server(lambda world: setattr(world.merge_request, "source_project_id", 202))
    assert [each.change.iid for each in await forge.merge_requests_at(HEAD)] == [7]


@pytest.mark.parametrize("sha", ["", "../../user", "main", "E" * 40, "a" * 65])
async def test_what_is_no_sha_is_not_asked_for(lab: GitLabLab, forge: GitLabProjectWriter, sha: str) -> None:
    assert list(await forge.merge_requests_at(sha)) == []
    assert list(await forge.checks(sha)) == []
    assert lab.requests == []


async def test_checks_are_jobs_and_external_statuses_the_latest_of_each_name(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    def add(world: GitLabWorld) -> None:
        first = CommitStatus(80001, HEAD, "Konflux / build", "running", 9001, 13, "2026-03-02T08:30:00.000Z")
        world.statuses.append(first)
        world.statuses.append(replace(first, id=80002, status="success", target_url="https://konflux.example/run"))
        world.pipelines.append(run(9000, HEAD, "feature"))
        world.jobs.append(job(69999, "unit", 9000, "success"))

    lab.run_in_server(add)
    found = {check.name: check for check in await forge.checks(HEAD)}
    assert {name: check.status for name, check in found.items()} == {"unit": "failed", "Konflux / build": "success"}
    assert found["Konflux / build"].url == "https://konflux.example/run"
    assert found["unit"].changed_at == parse_time("2026-03-02T08:20:00Z")
    assert found["Konflux / build"].changed_at == parse_time("2026-03-02 08:30:00 UTC")
    assert (found["unit"].pipeline_id, found["unit"].allow_failure) == (9001, False)


async def test_a_merged_results_pipeline_is_asked_for_its_jobs_and_bridges(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    def add(world: GitLabWorld) -> None:
        world.commits[MERGED] = commit(MERGED)
        world.pipelines.append(run(9002, MERGED, "refs/merge-requests/7/merge", "failed", "merge_request_event"))
        world.jobs.append(job(70002, "merged", 9002))
        world.jobs.append(job(70003, "downstream", 9002, "running", bridge=True))

    lab.run_in_server(add)
    assert {check.name for check in await forge.checks(HEAD)} == {"unit"}
    assert {check.name for check in await forge.checks(HEAD, 9001)} == {"unit"}
    found = {check.name: check for check in await forge.checks(HEAD, 9002)}
    assert set(found) == {"unit", "merged", "downstream"}
    assert (found["merged"].pipeline_id, found["downstream"].status) == (9002, "running")


async def test_checks_of_what_is_not_there_are_none(forge: GitLabProjectWriter) -> None:
    assert list(await forge.checks("0" * 40)) == []
    assert [check.name for check in await forge.checks(HEAD, 4711)] == ["unit"]


async def test_checks_are_read_from_all_pages(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.run_in_server(lambda world: world.jobs.extend(job(71000 + at, f"job {at}", 9001) for at in range(250)))
    assert len(await forge.checks(HEAD)) == 251


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2026-03-02T10:00:00Z", NOW),
        ("2026-03-02T10:00:00.500Z", NOW + 0.5),
        ("2026-03-02T11:00:00+01:00", NOW),
        ("2026-03-02 10:00:00 UTC", NOW),
        ("2026-03-02T10:00:00", NOW),
        ("yesterday", 0),
        ("", 0),
        (None, 0),
        (17, 0),
        ("0001-01-01T00:00:00+23:59", 0),
    ],
)
def test_facts_1_a_moment_is_read_in_both_of_gitlabs_forms(written: object, seconds: float) -> None:
    assert parse_time(written) == seconds


async def test_access_is_a_members_level_and_nothing_for_others(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    def spoil(world: GitLabWorld) -> None:
        world.user(12).state = "blocked"
        world.project.members[11] = Member(11, 50, expires_at="2026-03-02")

    lab.run_in_server(spoil)
    assert [await forge.access_level(user) for user in (11, 12, 13, 15, 16, 4711)] == [0, 0, DEVELOPER, 10, 0, 0]


async def test_access_is_remembered_for_a_minute(lab: GitLabLab) -> None:
    clock = [5.0]
    async with forging(lab.url, now=lambda: clock[0]) as bench:
        assert await bench.forge.access_level(13) == DEVELOPER
        lab.run_in_server(lambda world: world.project.members.pop(13))
        clock[0] += ACCESS_S - 1
        assert await bench.forge.access_level(13) == DEVELOPER
        clock[0] += 1
        assert await bench.forge.access_level(13) == 0
    assert asked(lab, "GET", "/members/all/13") == 2


async def test_a_member_of_another_name_grants_nothing(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.world.faults.plan("*/members/all/16", FaultResponse(200, {"id": 13, "state": "active", "access_level": 50}))
    assert await forge.access_level(16) == 0


async def test_facts_2_2_diffs_are_read_from_all_pages_though_no_header_says_so(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    def add(world: GitLabWorld) -> None:
        one: DiffFile = world.merge_request.files[0]
        world.merge_request.files[:] = [replace(one, new_path=f"{at}.py") for at in range(90)]

    lab.run_in_server(add)
    found = await forge.diffs(7)
    assert [each.new_path for each in found] == [f"{at}.py" for at in range(90)]
    assert found[0].text.startswith("@@ -10,4 +10,4 @@")
    assert asked(lab, "GET", "/diffs") == 4  # the last one is empty: three were full


async def test_a_branch_is_as_red_as_its_newest_finished_pipeline(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    assert await forge.branch_status("main") == BranchStatus()

    def add(world: GitLabWorld) -> None:
        world.commits[ROOT] = commit(ROOT)
        world.commits[MERGED] = commit(MERGED)
        world.pipelines += [
            run(9010, PARENT, status="failed"),
            run(9011, ROOT, status="failed"),
            run(9012, MERGED, status="running"),
            run(9013, MERGED, "other", "failed"),
        ]
        world.jobs += [job(70010, "old", 9010), job(70011, "unit", 9011), job(70012, "lint", 9011, "success")]
        world.statuses.append(CommitStatus(80010, ROOT, "Konflux / build", "failed", 9011, 13, AT))

    lab.run_in_server(add)
    found = await forge.branch_status("main")
    assert (found.pipeline_id, found.failed_jobs) == (9011, frozenset({"unit", "Konflux / build"}))
    assert found.url.endswith("/acme/widgets/-/pipelines/9011")


@pytest.mark.parametrize("body", ODD, ids=str)
async def test_no_answer_makes_the_forge_stumble(tmp_path: Path, body: object) -> None:
    reads: list[Callable[[GitLabProjectWriter], Awaitable[object]]] = [
        lambda forge: forge.bot_ids(),
        lambda forge: forge.merge_request(7),
        lambda forge: forge.merge_requests_at(HEAD),
        lambda forge: forge.parents(HEAD),
        lambda forge: forge.checks(HEAD, 9001),
        lambda forge: forge.access_level(13),
        lambda forge: forge.threads(7),
        lambda forge: forge.thread(7, "c" * 40),
        lambda forge: forge.diffs(7),
        lambda forge: forge.compare_commits(HEAD, PARENT),
        lambda forge: forge.branch_status("main"),
    ]
    with served(tmp_path) as lab:
        lab.world.faults.plan("*", FaultResponse(200, body), times=100)
        async with forging(lab.url) as bench:
            for read in reads:
                assert await _outcome(read(bench.forge)) in (0, None, [], frozenset(), BranchStatus(), GitLabWriteError)


async def _outcome(read: Awaitable[object]) -> object:
    try:
        return await read
    except GitLabWriteError:
        return GitLabWriteError


async def test_what_is_no_json_may_be_otherwise_later_and_what_has_another_shape_may_not(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    lab.world.faults.plan(MR, FaultResponse(200, "<html>Sign in</html>"))
    lab.world.faults.plan(MR, FaultResponse(200, {"iid": 8}))
    with pytest.raises(GitLabUnavailable, match="something else than JSON"):
        await forge.merge_request(7)
    with pytest.raises(GitLabRequestRefused, match="instead of merge request 7"):
        await forge.merge_request(7)


def test_facts_2_8_the_next_page_is_a_number_whatever_host_the_link_names() -> None:
    link = '<https://other.example/api/v4/x?per_page=100&page=3>; rel="next", <https://h/x?page=9>; rel="last"'
    assert Told("x", 200, {"Link": link}).next_page(2) == 3
    assert Told("x", 200, {"X-Next-Page": "4", "Link": link}).next_page(2) == 4
    for headers in ({}, {"X-Next-Page": ""}, {"X-Next-Page": "2"}, {"Link": '<http://[:/?page=3>; rel="next"'}):
        assert Told("x", 200, headers).next_page(2) == 0
    assert Told("x", 200, {"Link": '<?cursor=abc>; rel="next"'}).next_page(1) == 0


@pytest.mark.parametrize("value", [True, -1, 1.5, "1.5", "²", "9" * 30, None, [1], "-3"])
def test_what_is_no_number_of_a_record_is_none(value: object) -> None:
    assert positive_int(value) == 0


async def test_no_link_leads_the_token_elsewhere(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    away = {"Link": '<http://127.0.0.1:9/api/v4/stolen?page=2>; rel="next"'}
    lab.world.faults.plan("*/statuses", FaultResponse(200, [{"id": 1, "name": "one"}], away))
    assert [check.name for check in await forge.checks(HEAD)] == ["one"]
    assert [each.query for each in lab.requests] == ["per_page=100&page=1", "per_page=100&page=2"]


async def test_a_commit_tells_of_what_it_was_made(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    assert await forge.parents(HEAD) == {PARENT}
    assert await forge.parents("0" * 40) == frozenset()
    before = len(lab.world.requests)
    assert await forge.parents("main") == frozenset()
    assert len(lab.world.requests) == before


@pytest.mark.parametrize(
    ("ref", "train"), [("refs/merge-requests/7/train", True), ("refs/merge-requests/7/merge", False)]
)
async def test_a_pipeline_of_a_merge_train_is_told_by_its_ref(
    lab: GitLabLab, forge: GitLabProjectWriter, ref: str, train: bool
) -> None:
    answer = FaultResponse(200, {"iid": 7, "sha": HEAD, "head_pipeline": {"id": 9001, "ref": ref}})
    lab.world.faults.plan("*/merge_requests/7", answer)
    found = await forge.merge_request(7)
    assert (found.head_pipeline_id, found.in_train) == (9001, train)
