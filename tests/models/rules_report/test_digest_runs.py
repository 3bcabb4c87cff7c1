"""`digest` investigates through the real loop, with the tools of a small forge."""

import pytest

from hummingbird.core.journal import EndReason
from tests.models.rules_report.forge import OTHER_NAMES, Forge, listed
from tests.models.rules_report.play import play
from tests.models.rules_report.samples import COMPILE, NETWORK, TEST, log


def forge_with(sample: str, stem: str = "engine", job: str = "build", number: int = 901) -> Forge:
    changed = (f"src/{stem}.c", "README.md")
    return Forge(
        [listed(number, job), listed(number - 1, "lint", "success")], {number: log(sample, stem)}, changed=changed
    )


@pytest.mark.parametrize(
    ("sample", "verdict", "line"),
    [
        (COMPILE, "code", "4: src/engine.c:42:5: error: 'throttle' undeclared (first use in this function)"),
        (TEST, "test", "7: E       AssertionError: assert 6 == 9"),
        (NETWORK, "infrastructure", "[Could not resolve host: mirror.example]"),
    ],
)
async def test_it_finds_the_failed_job_by_itself_and_says_what_is_to_blame(
    sample: str, verdict: str, line: str
) -> None:
    forge = forge_with(sample)
    played = await play(forge.order, forge.tools())
    assert played.outcome.reason is EndReason.COMPLETED
    assert played.text.split("\n")[2].startswith(f"**Verdict: {verdict}**")
    assert line in played.text
    assert "[`build`](https://gitlab.example/acme/rocket/-/jobs/901)" in played.text
    assert "No language model took part" in played.text
    assert forge.shape == ["change", "diff", "jobs", "log"]
    assert played.refused == []
    assert played.outcome.bill.cost_usd == 0


async def test_a_failure_in_a_file_that_the_merge_request_changes_is_laid_at_its_door() -> None:
    forge = forge_with(COMPILE)
    played = await play(forge.order, forge.tools())
    assert "likely. The failure names `src/engine.c`, which this merge request changes." in played.text

    elsewhere = forge_with(COMPILE)
    elsewhere.changed = ("docs/other.md",)
    played = await play(elsewhere.order, elsewhere.tools())
    assert "rules cannot tell" in played.text


async def test_renaming_tools_jobs_files_and_ids_changes_neither_the_plan_nor_the_verdict() -> None:
    one = Forge([listed(901, "build")], {901: log(COMPILE, "engine")}, changed=("src/engine.c",))
    number, project = 77_000_123, "group/sub/thing"
    other = Forge(
        [listed(number, "übersetzen: [arm64]", host="https://forge.test", project=project, pipeline=88_001)],
        {number: log(COMPILE, "zzz_quux")},
        names=OTHER_NAMES,
        project=project,
        iid=12_345,
        pipeline=88_001,
        changed=("src/zzz_quux.c",),
    )
    first, second = await play(one.order, one.tools()), await play(other.order, other.tools())
    assert one.shape == other.shape
    verdicts = [played.text.split("\n")[2] for played in (first, second)]
    assert verdicts[0].replace("`build`", "JOB").replace("src/engine.c", "FILE") == verdicts[1].replace(
        "`übersetzen: [arm64]`", "JOB"
    ).replace("src/zzz_quux.c", "FILE")
    assert second.refused == []


async def test_a_log_that_cannot_be_read_is_named_with_the_reason() -> None:
    forge = forge_with(COMPILE)
    forge.jobs.append(listed(902, "deploy", stage="deploy"))
    forge.logs = {**forge.logs, 902: ConnectionError("the trace is gone")}
    played = await play(forge.order, forge.tools())
    unread = played.text.split("### What could not be read")[1]
    assert "`gitlab_get_job_log` `deploy`" in unread
    assert "the trace is gone" in unread
    assert played.text.split("\n")[2].startswith("**Verdict: code**")
    assert [arguments["job_id"] for name, arguments in forge.calls if name == "gitlab_get_job_log"] == [901, 902]


async def test_at_most_eight_logs_are_read_and_the_others_are_named() -> None:
    jobs = [listed(number, f"unit {number}") for number in range(1000, 1012)]
    forge = Forge(jobs, {number: log(TEST, f"part{number}") for number in range(1000, 1012)})
    played = await play(forge.order, forge.tools())
    assert forge.shape.count("log") == 8
    assert "- not read: `unit 1008`, `unit 1009`, `unit 1010`, `unit 1011`" in played.text
    assert "12 failures" in played.text
    assert "### 9." not in played.text


async def test_first_causes_come_before_what_they_drag_along() -> None:
    jobs = [
        listed(30, "publish", stage="publish", status="skipped"),
        listed(20, "collect", stage="test", needs=["compile"]),
        listed(10, "compile", stage="build"),
    ]
    forge = Forge(jobs, {10: log(COMPILE, "engine"), 20: log(NETWORK, "engine")})
    played = await play(forge.order, forge.tools())
    assert [arguments["job_id"] for name, arguments in forge.calls if name == "gitlab_get_job_log"] == [10, 20]
    headings = [line for line in played.text.split("\n") if line.startswith("###")]
    assert headings[0].startswith("### 1. [`compile`]")
    assert headings[1].startswith("### 2. [`collect`]")
    assert (
        "Failed or did not run because of it: `collect`, `publish`." in played.text
        or "Failed or did not run because of it: `publish`, `collect`." in played.text
    )


async def test_the_same_failure_in_several_jobs_is_told_once() -> None:
    jobs = [listed(number, f"unit {number}") for number in (1, 2, 3)]
    forge = Forge(jobs, dict.fromkeys((1, 2, 3), log(NETWORK, "engine")))
    played = await play(forge.order, forge.tools())
    assert played.text.count("Curl error (6)") == 1
    assert "The same failure: `unit 2`, `unit 3`." in played.text


async def test_the_word_of_the_runner_counts_where_the_log_says_nothing() -> None:
    forge = Forge([listed(5, "build", failure_reason="runner_system_failure")], {5: "Preparing\n"})
    played = await play(forge.order, forge.tools())
    assert played.text.split("\n")[2].startswith("**Verdict: infrastructure**")
    assert "Reported as `runner_system_failure`" in played.text
    assert "Rule `gitlab-runner-system-failure`" in played.text


async def test_a_pipeline_without_a_failure_is_not_given_one() -> None:
    forge = Forge([listed(5, "build", "success")], {})
    played = await play(forge.order, forge.tools())
    assert "**Verdict: unknown.** Nothing that failed was found" in played.text
    assert forge.shape == ["change", "diff", "jobs"]
