"""Every case is whole and agrees with itself: ids, shas, times, diff, logs, and what it says the answer is."""

import json
import re
from pathlib import Path

import pytest

from hummingbird.evidence import preview
from hummingbird.lab.case import find_case
from tests.lab.cases.reading import (
    CASES,
    Expected,
    changes,
    expected,
    failures_in,
    notes,
    part,
    people_named,
    plain_lines,
    portable,
)

PREVIEW_BYTES = 4_608
WHOLE_BYTES = 400_000
SHA = re.compile(r"[0-9a-f]{40}")
VERDICTS = {"code", "test", "flaky", "infrastructure"}
STATUSES = {"created", "pending", "running", "success", "failed", "canceled", "skipped", "manual"}
PARTS = ("project", "users", "merge_request", "commits", "pipelines", "jobs", "discussions")
TOLD = [each for name in CASES for each in expected(name)]
told = pytest.mark.parametrize("told", TOLD, ids=lambda each: f"{each.case.name}: {each.job}")
every = pytest.mark.parametrize("name", CASES)
HOSTS = {"gitlab.com", "github.com", "docs.gitlab.com", "docs.gradle.org", "help.gradle.org", "10.33.0.1"}
ITS_OWN_HOSTS = {"registry-timeout": {"releases.hashicorp.com"}}
WRITTEN_HERE = {".json", ".md", ".patch"}


def test_the_cases_cover_what_goes_wrong() -> None:
    wanted = {"compiler-error", "failing-test", "flaky-test", "runner-lost", "network", "disk-full", "hostile"}
    wanted |= {"konflux-build-and-test", "merge-request-review", "odd-corners", "registry-timeout", "out-of-memory"}
    assert wanted <= set(CASES)
    found = {find_case(name).description["expected"].get("verdict") for name in CASES}
    assert found >= VERDICTS


@every
def test_a_case_has_all_parts(name: str) -> None:
    case = find_case(name)
    for wanted in PARTS:
        assert part(case, wanted) is not None, wanted
    assert (case.folder / "gitlab/diff.patch").is_file()
    about = case.description
    assert set(about) == {"title", "shows", "kind", "now", "event", "expected"}
    assert about["kind"] == about["event"]["kind"]
    assert len(about["shows"]) > 100


@every
def test_its_event_is_about_something_in_it(name: str) -> None:
    case = find_case(name)
    event = case.description["event"]
    if event["kind"] == "merge_request":
        assert event["action"] == "open"
        assert part(case, "merge_request")["state"] == "opened"
    else:
        [pipeline] = [each for each in part(case, "pipelines") if each["id"] == event["pipeline"]]
        assert pipeline["status"] == "failed"
        assert pipeline["merge_request"]


@every
def test_everybody_who_is_mentioned_is_there(name: str) -> None:
    case = find_case(name)
    people = part(case, "users")
    known = [each["username"] for each in people]
    assert len(set(known)) == len(known) == len({each["id"] for each in people})
    assert set(people_named(case)) <= set(known)
    assert sorted(each["token"] for each in people if "token" in each) == ["read", "write"]
    assert {each["access_level"] for each in people} <= {None, 10, 20, 30, 40, 50}


@every
def test_ids_are_given_once_and_refer_to_each_other(name: str) -> None:
    case = find_case(name)
    pipelines = [each["id"] for each in part(case, "pipelines")]
    work = [*part(case, "jobs"), *part(case, "statuses", [])]
    threads = [each["id"] for each in part(case, "discussions")]
    for ids in (pipelines, [each["id"] for each in work], threads, [each["id"] for each in notes(case)]):
        assert len(set(ids)) == len(ids)
    assert {each["pipeline"] for each in work} <= set(pipelines)
    assert all(SHA.fullmatch(each) for each in threads)
    assert {int(each) for each in part(case, "test_reports", {})} <= set(pipelines)


@every
def test_its_shas_agree(name: str) -> None:
    case = find_case(name)
    request, commits = part(case, "merge_request"), part(case, "commits")
    assert [each["id"] for each in commits[:1]] == ([request["sha"]] if request["sha"] else [])
    shas = [request["base_sha"], request["start_sha"], *(each["id"] for each in commits)]
    shas += [each["sha"] for each in part(case, "pipelines")]
    assert all(SHA.fullmatch(each) for each in shas if each)
    of_pipeline = {each["id"]: each["sha"] for each in part(case, "pipelines")}
    assert all(each["sha"] == request["sha"] == of_pipeline[each["pipeline"]] for each in part(case, "statuses", []))
    for pipeline in (each for each in part(case, "pipelines") if each["merge_request"]):
        kind = "head" if pipeline["sha"] == request["sha"] else "merge"
        assert pipeline["ref"] == f"refs/merge-requests/{request['iid']}/{kind}"
        assert pipeline["source"] == "merge_request_event"


@every
def test_its_times_are_in_order(name: str) -> None:
    case = find_case(name)
    now, request = case.description["now"], part(case, "merge_request")
    runs = [*part(case, "pipelines"), *part(case, "jobs"), *part(case, "statuses", [])]
    for run in runs:
        times = [run["created_at"], run.get("started_at"), run["finished_at"], now]
        assert [each for each in times if each] == sorted(each for each in times if each), run
    commits = [each["created_at"] for each in part(case, "commits")]
    assert commits == sorted(commits, reverse=True)
    assert request["created_at"] <= request["updated_at"] <= now
    threads = [each["notes"] for each in part(case, "discussions")]
    for said in [[each[0] for each in threads], *threads]:
        assert [each["created_at"] for each in said] == sorted(each["created_at"] for each in said)


@every
def test_a_pipeline_fails_exactly_when_something_in_it_does(name: str) -> None:
    case = find_case(name)
    for pipeline in part(case, "pipelines"):
        assert (pipeline["status"] == "failed") == bool(failures_in(case, pipeline["id"])), pipeline["id"]
    for job in part(case, "jobs"):
        assert job["status"] in STATUSES
        assert (job["failure_reason"] is not None) == (job["status"] == "failed"), job["name"]


@every
def test_a_failure_can_be_compared_with_the_target_branch(name: str) -> None:
    case = find_case(name)
    if case.description["kind"] == "pipeline":
        target = part(case, "merge_request")["target_branch"]
        assert any(each["ref"] == target for each in part(case, "pipelines"))


@every
def test_threads_have_notes_of_one_kind(name: str) -> None:
    for thread in part(find_case(name), "discussions"):
        kinds = {(each["type"], each["internal"]) for each in thread["notes"]}
        assert len(kinds) == 1
        assert thread["individual_note"] == (kinds == {(None, False)} and len(thread["notes"]) == 1)


@every
def test_its_diff_fits_its_files(name: str) -> None:
    case = find_case(name)
    tree = case.folder / "gitlab/tree"
    for change in changes(case):
        assert change.added or change.removed, change.path
        file = tree / change.path
        if change.deleted or not portable(change.path):
            assert not file.exists()
            continue
        lines = file.read_text(encoding="utf-8").split("\n")
        assert {number: lines[number - 1] for number in change.after} == change.after
        assert not change.new or len(change.after) == len(lines) - 1


@every
def test_notes_on_lines_name_lines_of_the_diff(name: str) -> None:
    case = find_case(name)
    request, after = part(case, "merge_request"), {each.path: each.after for each in changes(case)}
    for note in notes(case):
        assert ("position" in note) == (note["type"] == "DiffNote")
        if place := note.get("position"):
            assert place["new_line"] in after[place["new_path"]]
            assert [place[f"{each}_sha"] for each in ("base", "start")] == [request["base_sha"], request["start_sha"]]
            assert place["head_sha"] == request["sha"]


@every
def test_a_finding_is_on_an_added_line(name: str) -> None:
    case = find_case(name)
    added = {each.path: each.added for each in changes(case)}
    for finding in case.description["expected"].get("findings", []):
        assert finding["line"] in added[finding["path"]]


@every
def test_every_log_is_used_and_its_origin_told(name: str) -> None:
    case = find_case(name)
    used = {job["log"] for job in part(case, "jobs") if job["log"]}
    there = {str(file.relative_to(case.folder)) for file in case.folder.glob("*.log")}
    there |= {str(file.relative_to(case.folder)) for file in case.list_files("logs")}
    assert used == there
    sources = case.read_text("SOURCES.md")
    for log in [
        *there,
        *(file.name for folder in ("konflux", "testing_farm") for file in case.list_files(folder, "*.log")),
    ]:
        assert log in sources, log


@every
def test_test_reports_count_right(name: str) -> None:
    for report in part(find_case(name), "test_reports", {}).values():
        for counted in [report, *report["test_suites"]]:
            tests = [each for suite in counted.get("test_suites", [counted]) for each in suite["test_cases"]]
            assert counted["total_count"] == len(tests)
            for status in ("success", "failed", "skipped", "error"):
                assert counted[f"{status}_count"] == sum(each["status"] == status for each in tests)


def test_the_failing_test_is_the_one_of_the_report() -> None:
    [told] = expected("failing-test")
    report = part(told.case, "test_reports")[str(told.case.description["event"]["pipeline"])]
    [failed] = [each["name"] for each in report["test_suites"][0]["test_cases"] if each["status"] == "failed"]
    assert any(failed in line for line in told.evidence)
    assert f"{report['total_count']} tests completed, {report['failed_count']} failed" in told.evidence


@every
def test_the_answer_is_one_that_can_be_given(name: str) -> None:
    case = find_case(name)
    answer = case.description["expected"]
    failed = set(failures_in(case, case.description["event"].get("pipeline", 0)))
    if case.description["kind"] == "pipeline":
        for each in [answer, *answer.get("also", [])]:
            assert each["verdict"] in VERDICTS
            assert isinstance(each["caused_by_change"], bool)
            assert each["job"] in failed
            assert each["evidence"]


@told
def test_the_evidence_stands_in_the_log(told: Expected) -> None:
    lines = plain_lines(told.text)
    for wanted in told.evidence:
        assert any(wanted in line for line in lines), wanted


@told
def test_the_evidence_is_found_within_a_preview(told: Expected) -> None:
    shown = preview(told.text, PREVIEW_BYTES)
    assert len(shown.encode()) <= PREVIEW_BYTES
    assert any(each.strip() in shown for each in told.evidence), shown


def test_the_green_log_helps_to_find_the_failing_test() -> None:
    [told] = expected("failing-test")
    [green] = [each["log"] for each in part(told.case, "jobs") if each["status"] == "success"]
    shown = preview(told.text, PREVIEW_BYTES, baseline=(told.case.folder / green).read_text(encoding="utf-8"))
    assert all(each.strip() in shown for each in told.evidence)


@every
def test_a_case_is_small(name: str) -> None:
    assert sum(file.stat().st_size for file in find_case(name).list_files(".")) < WHOLE_BYTES


@every
def test_hosts_are_public_or_invented(name: str) -> None:
    known = HOSTS | ITS_OWN_HOSTS.get(name, set())
    for file in find_case(name).list_files("."):
        text = file.read_text(encoding="utf-8", errors="replace")
        found = {host for host in re.findall(r"https?://([\w.-]+\w)", text) if not host.endswith("example.invalid")}
        assert found <= known, file.name


@every
def test_nobody_real_is_addressed(name: str) -> None:
    for file in (each for each in find_case(name).list_files(".") if _is_ours(each)):
        found = re.findall(r"[\w.+-]+@([\w-]+\.[\w.-]+\w)", file.read_text(encoding="utf-8"))
        assert set(found) <= {"example.invalid"}, file.name


def _is_ours(file: Path) -> bool:
    return file.suffix in WRITTEN_HERE and not file.name.startswith("SOURCES")


@every
def test_json_is_written_once_for_each_key(name: str) -> None:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len({key for key, _ in pairs}) == len(pairs), pairs
        return dict(pairs)

    for file in find_case(name).list_files(".", "*.json"):
        assert json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=once) is not None
