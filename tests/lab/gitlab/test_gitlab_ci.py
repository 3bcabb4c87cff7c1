"""Reading pipelines, jobs, traces, test reports and commit statuses."""

import dataclasses
import socket
from pathlib import Path

import pytest

from hummingbird.lab.gitlab.read.ci import log_pieces
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.lab.gitlab.asking import HEAD, MERGED, PROJECT, TINY, Web

LOG = (TINY.folder / "logs/unit.log").read_bytes()
STATUSES = f"{PROJECT}/repository/commits/{HEAD}/statuses"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [9003, 9002, 9001, 8000]),
        ("ref=main", [8000]),
        ("ref=feature/faster", [9003]),
        (f"sha={HEAD}", [9003, 9001]),
        ("status=success", [8000]),
        ("source=merge_request_event", [9002, 9001]),
        ("username=grace", [8000]),
        ("updated_after=2026-03-02T08:30:00Z", [9003, 9002]),
        ("updated_before=2026-03-01T00:00:00Z", [8000]),
        ("order_by=updated_at&sort=asc", [8000, 9001, 9002, 9003]),
        ("order_by=status", [8000, 9003, 9002, 9001]),
        ("colour=red", [9003, 9002, 9001, 8000]),
    ],
)
def test_pipelines_are_filtered_and_ordered(web: Web, query: str, found: list[int]) -> None:
    assert web.ids(f"{PROJECT}/pipelines?{query}") == found


@pytest.mark.parametrize("query", ["status=odd", "source=odd", "order_by=odd"])
def test_facts_2_8_values_out_of_a_fixed_set_are_checked(web: Web, query: str) -> None:
    answer = web.get(f"{PROJECT}/pipelines?{query}")
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": f"{query.partition('=')[0]} does not have a valid value"},
    )


def test_facts_1_1_a_merge_request_s_pipeline_runs_on_its_own_ref(web: Web) -> None:
    plain, merged = web.json(f"{PROJECT}/pipelines/9001"), web.json(f"{PROJECT}/pipelines/9002")
    assert (plain["ref"], merged["ref"]) == ("refs/merge-requests/7/head", "refs/merge-requests/7/merge")
    assert (plain["sha"], merged["sha"]) == (HEAD, MERGED)
    assert (plain["duration"], plain["queued_duration"]) == (540, 60)
    assert plain["detailed_status"]["group"] == "failed"


def test_pipelines_of_other_projects_are_not_found(web: Web) -> None:
    assert web.get(f"{PROJECT}/pipelines/7500").json() == {"message": "404 Not found"}
    assert web.get("/projects/202/pipelines/7500").status_code == 200


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [70003, 70002, 70001]),
        ("?include_retried=true", [70003, 70002, 70001, 70000]),
        ("?scope[]=failed&scope[]=success", [70002, 70001]),
        ("?scope=failed", [70001]),
    ],
)
def test_facts_1_1_jobs_of_a_pipeline_are_native_ones_and_the_latest(web: Web, query: str, found: list[int]) -> None:
    assert web.ids(f"{PROJECT}/pipelines/9001/jobs{query}") == found
    assert web.ids(f"{PROJECT}/pipelines/9003/jobs") == []


def test_bridges_are_listed_apart(web: Web) -> None:
    (only,) = web.json(f"{PROJECT}/pipelines/9001/bridges")
    assert (only["id"], only["downstream_pipeline"]["id"]) == (70004, 9100)
    assert "runner" not in only


def test_a_job_is_shown_with_its_pipeline_commit_and_reason(web: Web) -> None:
    failed, passed = web.json(f"{PROJECT}/jobs/70001"), web.json(f"{PROJECT}/jobs/70002")
    assert (failed["failure_reason"], failed["duration"], failed["pipeline"]["id"]) == ("script_failure", 210.0, 9001)
    assert failed["commit"]["id"] == HEAD
    assert "failure_reason" not in passed
    assert failed["web_url"] == f"{web.lab.url}/acme/widgets/-/jobs/70001"


def test_jobs_of_a_project_are_of_all_its_pipelines(web: Web) -> None:
    assert web.ids(f"{PROJECT}/jobs?scope=failed") == [70010, 70001, 70000]
    assert web.get(f"{PROJECT}/jobs?scope=odd").json() == {"error": "scope does not have a valid value"}


def test_facts_2_7_a_trace_is_the_log_byte_for_byte(web: Web) -> None:
    answer = web.get(f"{PROJECT}/jobs/70001/trace")
    assert answer.content == LOG
    assert answer.headers["content-type"].startswith("text/plain")


def test_facts_2_7_no_log_is_an_empty_trace_and_no_job_is_not_found(web: Web) -> None:
    empty = web.get(f"{PROJECT}/jobs/70003/trace")
    assert (empty.status_code, empty.content) == (200, b"")
    assert web.get(f"{PROJECT}/jobs/1/trace").json() == {"message": "404 Not found"}


def test_facts_2_7_a_debug_trace_needs_a_developer(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.jobs[0], "debug_trace", True))
    assert web.get(f"{PROJECT}/jobs/70001/trace").json() == {"message": "403 Forbidden"}
    assert web.as_other(web.lab.write_token).get(f"{PROJECT}/jobs/70001/trace").content == LOG


def test_facts_2_7_a_trace_arrives_in_odd_pieces(lab: GitLabLab) -> None:
    """On the wire: the first chunks are of one, two, three and five bytes."""
    port = int(lab.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        head = ["Host: x", f"PRIVATE-TOKEN: {lab.read_token}", "Connection: close", "", ""]
        ask = "\r\n".join([f"GET /api/v4{PROJECT}/jobs/70001/trace HTTP/1.1", *head])
        wire.sendall(ask.encode())
        sent = b"".join(iter(lambda: wire.recv(65536), b""))
    chunks = sent.split(b"\r\n\r\n", 1)[1]
    assert chunks.startswith(b"1\r\n" + LOG[:1] + b"\r\n2\r\n" + LOG[1:3] + b"\r\n3\r\n" + LOG[3:6] + b"\r\n5\r\n")


def test_facts_7_characters_and_colours_are_torn_apart(tmp_path: Path) -> None:
    coloured, plain = tmp_path / "coloured.log", tmp_path / "plain.log"
    coloured.write_bytes("\x1b[31mFAILED\x1b[0m ☕ naïve\n".encode() * 20_000)
    plain.write_bytes("naïve ☕\n".encode() * 20_000)
    for log in (coloured, plain):
        parts = list(log_pieces(log))
        assert b"".join(parts) == log.read_bytes()
        assert max(map(len, parts)) < 200_000

    def torn(log: Path) -> list[bytes]:
        """The large ones, each of which ends where something goes on."""
        return [part for part in log_pieces(log) if len(part) > 10_000][:-1]

    assert {part[-1:] for part in torn(coloured)} == {b"\x1b"}
    assert torn(plain)
    assert not [part for part in torn(plain) if part.decode(errors="ignore").encode().endswith(part[-3:])]


def test_facts_2_7_a_large_log_is_never_held(web: Web, tmp_path: Path) -> None:
    log = tmp_path / "large.log"
    line = "\x1b[32mok\x1b[0m é\n".encode()
    with log.open("wb") as file:
        for _ in range(400):
            file.write(line * 4_096)
    web.lab.run_in_server(lambda world: setattr(world.jobs[0], "log", log))
    sent = {"PRIVATE-TOKEN": web.lab.read_token}
    with web.client.stream("GET", f"{PROJECT}/jobs/70001/trace", headers=sent) as answer:
        assert sum(map(len, answer.iter_bytes())) == log.stat().st_size
    assert max(map(len, log_pieces(log))) < 200_000


def test_test_reports_and_their_summary(web: Web) -> None:
    whole = web.json(f"{PROJECT}/pipelines/9001/test_report")
    assert whole["test_suites"][0]["test_cases"][0]["system_output"] == "assert -1 == 3"
    short = web.json(f"{PROJECT}/pipelines/9001/test_report_summary")
    assert short["total"] == {
        "time": 0.2,
        "count": 2,
        "success": 1,
        "failed": 1,
        "skipped": 0,
        "error": 0,
        "suite_error": None,
    }
    assert short["test_suites"][0]["name"] == "unit"
    assert 70001 in short["test_suites"][0]["build_ids"]
    assert web.json(f"{PROJECT}/pipelines/8000/test_report")["total_count"] == 0


def test_facts_2_5_statuses_are_the_latest_by_id_of_jobs_and_external_ones(web: Web) -> None:
    rows = web.json(STATUSES)
    assert [each["id"] for each in rows] == [70001, 70002, 70003, 70004, 80002, 80003]
    native, external = rows[0], rows[4]
    assert native["target_url"].endswith("/-/jobs/70001")
    assert external["target_url"] == "http://konflux.example.invalid/ns/acme/pipelinerun/widgets-1"
    assert (external["pipeline_id"], external["author"]["username"]) == (9003, "konflux-bot")
    for each in (native, external):
        assert not {"stage", "duration", "failure_reason"} & set(each)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=unit&stage=build", []),
        ("all=true", [70000, 70001, 70002, 70003, 70004, 80001, 80002, 80003]),
        ("pipeline_id=9003", [80002, 80003]),
        ("ref=feature/faster", [80002, 80003]),
        ("name=unit", [70001]),
        ("stage=external", [80002, 80003]),
        ("sort=desc&per_page=2", [80003, 80002]),
        ("order_by=pipeline_id&sort=desc&per_page=1", [80003]),
    ],
)
def test_facts_2_5_statuses_are_filtered(web: Web, query: str, found: list[int]) -> None:
    assert web.ids(f"{STATUSES}?{query}") == found


def test_facts_2_5_a_merged_result_s_jobs_are_under_the_merge_commit(web: Web) -> None:
    assert web.ids(f"{PROJECT}/repository/commits/{MERGED}/statuses") == [70010]
    assert 70010 not in web.ids(f"{STATUSES}?all=true")


def test_facts_2_5_a_commit_is_named_by_its_branch_too(web: Web) -> None:
    branch = f"{PROJECT}/repository/commits/feature%2Ffaster/statuses"
    assert web.ids(branch) == web.ids(STATUSES)


def test_facts_2_5_an_unknown_commit_is_not_found(web: Web) -> None:
    answer = web.get(f"{PROJECT}/repository/commits/{'9' * 40}/statuses")
    assert (answer.status_code, answer.json()) == (404, {"message": "404 Commit Not Found"})


def test_facts_2_5_private_pipelines_need_a_reporter(web: Web) -> None:
    def hide(world: GitLabWorld) -> None:
        world.project.public_jobs, world.project.visibility = False, "internal"
        world.project.members[21] = dataclasses.replace(world.project.members[21], access_level=10)

    web.lab.run_in_server(hide)
    for path in (STATUSES, f"{PROJECT}/pipelines", f"{PROJECT}/jobs/70001/trace"):
        assert web.get(path).json() == {"message": "403 Forbidden"}
    for path in ("", "/changes"):
        shown = web.json(f"{PROJECT}/merge_requests/7{path}")
        assert (shown["pipeline"], shown["head_pipeline"]) == (None, None)
