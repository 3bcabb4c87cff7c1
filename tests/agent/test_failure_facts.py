"""What is gathered of a failed pipeline, and that no author can buy a verdict with what a job prints."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.agent.failed_logs import ToolReader, _with_announced
from hummingbird.agent.failure_facts import FailureSubject, _jobs_of_pipeline, add_readings, gather_facts
from hummingbird.agent.tools.failure_watcher import FailureWatcher
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream, ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.core.verdicts import CERTAIN, LIKELY, FailureOrigin, FailureVerdict, JobJudgement
from hummingbird.evidence.bounds import LOOK_FINGERPRINTS
from hummingbird.evidence.explanation import CertainFailure
from hummingbird.evidence.regions import Blame, EvidenceAnalysis, EvidenceLine, FailureClass, Region, RegionKind
from hummingbird.evidence.verdict_rules import FailureFacts, JobFacts, TargetHistory, judge_failures
from tests.evidence.test_runner_trace import BEGINNING, CLEANED, CLONED, section
from tests.thoroughly import tries

pytestmark = pytest.mark.every_case

FAILED_TEST = """\
$ pytest
=================================== FAILURES ===================================
______________________________ test_thrust_is_kept ______________________________
    def test_thrust_is_kept() -> None:
>       assert thrust(3) == 9
E       assert 6 == 9
E        +  where 6 = thrust(3)
tests/test_engine.py:12: AssertionError
=========================== short test summary info ============================
FAILED tests/test_engine.py::test_thrust_is_kept - assert 6 == 9
========================= 1 failed, 41 passed in 3.21s =========================
"""
REFUSED = """\
$ make
gcc -c src/wing.c
src/wing.c:14:5: error: implicit declaration of function 'flap' [-Werror=implicit-function-declaration]
cc1: all warnings being treated as errors
make: *** [Makefile:7: wing.o] Error 1
"""
GREEN = "$ pytest\n============================= 42 passed in 3.20s =============================\n"
EXCUSES = (
    "ERROR: Job failed (system failure): waiting for pod running: timed out waiting for pod to start",
    "write /builds/out: no space left on device",
    "curl: (6) Could not resolve host: registry.example.com",
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "fatal: unable to access 'https://gitlab.example.com/a.git/': Failed to connect to port 443: Connection timed out",
    "ERROR: Job failed (system failure): pod evicted: The node was low on resource: ephemeral-storage",
    "npm ERR! network request to https://registry.npmjs.org failed, reason: connect ETIMEDOUT",
)
IDS = ("pod", "disk", "name", "docker", "clone", "evicted", "npm", "forged")
FORGED = section("cleanup_file_variables", "Cleaning up") + BEGINNING + EXCUSES[0] + "\n"


@dataclass
class Stored:
    """Answers for one tool with what a project of the test has."""

    name: str
    answers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="", schema={})

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        key = next((str(value) for value in arguments.values() if str(value) in self.answers), "")
        if key not in self.answers:
            raise LookupError(self.name)
        found = self.answers[key]
        return ByteStream(_pieces(found if isinstance(found, str) else "\n".join(map(json.dumps, found))))


async def _pieces(text: str) -> AsyncIterator[bytes]:
    content = text.encode("utf-8", "replace")
    for at in range(0, len(content), 1000):
        yield content[at : at + 1000]


def job(number: int, status: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": "test", "stage": "test", "status": status, **more}


def looked(
    log: str,
    *,
    target: str | None = "success",
    green: str = CLONED + section("step_script", GREEN),
    there: str = "",
    changed: Sequence[str] = ("tests/test_engine.py",),
    reason: str = "script_failure",
    reports: tuple[Sequence[str], Sequence[str]] = ((), ()),
    artifacts: Mapping[str, tuple[str, str]] | None = None,
) -> JobFacts:
    """Facts on job 5 of pipeline 1; pipelines 2 and 3 are the target branch's. `reports`: of the job, and there.
    `artifacts`: kind and text of the job's files, by their path."""
    own, others = reports
    files = artifacts or {}
    listed = [{"path": path, "bytes": len(text), "kind": kind} for path, (kind, text) in files.items()]
    more: dict[str, Any] = {"artifacts_bytes": 1000} if files else {}
    runs = [{"id": number, "status": target} for number in (3, 2)] if target else []
    tools = [
        Stored(
            "gitlab_get_pipeline_jobs",
            {
                "1": [job(5, "failed", failure_reason=reason, reports=list(own), **more)],
                **{str(run["id"]): [job(9, str(target), reports=list(others))] for run in runs},
            },
        ),
        Stored("gitlab_get_mr_diff", {"7": [{"new_path": path, "old_path": path} for path in changed]}),
        Stored("gitlab_list_recent_pipelines", {"main": runs}),
        Stored("gitlab_get_job_log", {"5": log, **({"9": there} if there else {})}),
        Stored("gitlab_get_baseline_job_log", {"main": green} if target == "success" else {}),
        Stored("gitlab_get_test_report"),
        Stored("gitlab_list_job_artifacts", {"5": listed} if files else {}),
        Stored("gitlab_get_job_artifact", {path: text for path, (_, text) in files.items()}),
        Stored("gitlab_get_commit_statuses", {"": []}),
    ]
    subject = FailureSubject(mr_iid=7, pipeline_id=1, target_branch="main")
    found = asyncio.run(gather_facts(ToolReader(tools, Secrets(())), subject))
    assert found.facts.changed == tuple(changed)
    (only,) = found.facts.jobs
    return only


JUNIT = """\
<testsuite name="s"><testcase name="glides" file="tests/test_glide.py"/>
<testcase name="keeps thrust" file="tests/test_engine.py"><failure message="6 is not 9">in src/engine.py:3</failure>
</testcase></testsuite>"""
CONTEXT = "# Page snapshot\n- heading: Sign in\nError: button of src/login.ts is not visible\n"


def test_a_jobs_own_files_say_what_failed_where_its_log_does_not() -> None:
    """Only of tests that failed: a file of one that passed would only seem to be involved."""
    files = {"out/junit.xml": ("junit", JUNIT), "test-results/a/error-context.md": ("playwright", CONTEXT)}
    found = looked(CLONED + section("step_script", "$ make test\nfailed\n"), artifacts=files)
    for word in ("tests/test_engine.py", "src/engine.py:3", "src/login.ts"):
        assert word in found.text
    assert "test_glide" not in found.text


def test_files_that_are_no_reports_are_left_alone() -> None:
    files = {"out/junit.xml": ("junit", "<<<"), "app.log": ("log", "src/other.py"), "x": ("", "src/third.py")}
    found = looked(CLONED + section("step_script", FAILED_TEST), artifacts=files)
    assert "src/other.py" not in found.text
    assert "src/third.py" not in found.text


def verdict(log: str, **project: Any) -> JobJudgement:
    changed = project.setdefault("changed", ("tests/test_engine.py",))
    facts = looked(log, **project)
    return judge_failures(FailureFacts(jobs=(facts,), changed=tuple(changed))).jobs[0]


def ran(*printed: str) -> str:
    return CLONED + section("step_script", *printed) + CLEANED


def never_began(printed: str) -> str:
    """Return the log of a job whose runner broke down before the script."""
    if printed.startswith("ERROR: Job failed"):  # is the last line then, and names no exit code
        return CLONED + section("cleanup_file_variables", "Cleaning up") + f"{printed}\n"
    return CLONED + f"{printed}\n" + CLEANED


LOGS = {
    "test": (FAILED_TEST, {"changed": ("tests/test_engine.py",)}),
    "compiler": (REFUSED, {"changed": ("src/wing.c",)}),
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("excuse", [*EXCUSES, FORGED], ids=IDS)
def test_printed_excuse_does_not_hide_the_cause(name: str, excuse: str) -> None:
    printed, project = LOGS[name]
    for log in (ran(printed, excuse), ran(excuse, printed), ran(printed) + excuse, ran(excuse, printed, excuse)):
        found = verdict(log, **project)
        assert (found.origin, found.sure >= LIKELY) == (FailureOrigin.CHANGE, True), (log, found.reasons)


@pytest.mark.parametrize("excuse", [*EXCUSES, FORGED], ids=IDS)
@pytest.mark.parametrize("reports", [((), ("junit",)), ((), ())], ids=["dropped", "none"])
def test_excuse_instead_of_the_failure_buys_nothing(excuse: str, reports: Any) -> None:
    """Nothing is printed of what failed, and the report is dropped."""
    found = verdict(ran("$ pytest > /dev/null", excuse), reports=reports)
    assert (found.origin, found.sure) == (FailureOrigin.UNKNOWN, 0.0)
    assert ("test-report-missing" in {reason.sign for reason in found.reasons}) is bool(reports[1])


@pytest.mark.parametrize("excuse", EXCUSES, ids=IDS[:-1])
def test_runner_that_never_began_the_script_is_believed(excuse: str) -> None:
    found = verdict(never_began(excuse), reports=((), ("junit",)))
    assert found.origin is FailureOrigin.INFRASTRUCTURE, found.reasons
    assert "test-report-missing" not in {reason.sign for reason in found.reasons}


def test_what_follows_from_a_full_disk_accuses_nobody() -> None:
    printed = (
        "error: couldn't create a temp dir: No space left on device (os error 28)\nerror: could not compile `wing`"
    )
    assert verdict(ran("$ cargo build", printed), changed=("src/fin.rs",)).origin is FailureOrigin.UNKNOWN


def test_gitlabs_word_is_believed_whatever_the_log_says() -> None:
    found = verdict(ran("$ pytest"), reason="runner_system_failure")
    assert (found.origin, found.sure >= CERTAIN) == (FailureOrigin.INFRASTRUCTURE, True)


@pytest.mark.parametrize("reason", ["job_execution_timeout", "server_timeout_running", "no_updates_running"])
def test_ends_that_a_job_can_bring_about_excuse_nothing(reason: str) -> None:
    assert verdict(ran("$ sleep 9999"), reason=reason).origin is FailureOrigin.UNKNOWN


def test_report_that_is_there_is_not_missed() -> None:
    both = looked(ran(FAILED_TEST), reports=(("junit",), ("junit",)))
    neither = looked(ran(FAILED_TEST))
    assert not both.lacks_report
    assert not neither.lacks_report
    assert looked(ran(FAILED_TEST), reports=(("cobertura",), ("junit",))).lacks_report


def test_lines_of_the_green_log_hide_no_failure() -> None:
    """A job can print again what its green log says."""
    known = "Traceback (most recent call last):\nRuntimeError: fatal error: cannot open display: engine refused\n" * 3
    green = ran(known, GREEN)
    alone, both = (verdict(ran(*printed), green=green) for printed in ((FAILED_TEST,), (known, FAILED_TEST, known)))
    assert alone.origin is both.origin is FailureOrigin.CHANGE
    assert verdict(ran(known), green=green).origin is FailureOrigin.UNKNOWN


def test_failure_behind_many_that_the_target_has_too_is_not_excused() -> None:
    """More fail than are remembered; all of them are compared with those of the target branch."""
    words = ("wing", "rudder", "tail", "cabin", "wheel", "radar", "flap")
    failed = [f"--- FAIL: TestKeeps{word.title()} (0.01s)\n    {word}_test.go:12: the {word} broke" for word in words]
    calm = "\n".join(f"=== RUN   TestOther{at}" for at in range(30))
    there = ran(*(f"{one}\n{calm}\n" for one in failed[1:]))
    alike, more = (
        verdict(ran(*(f"{one}\n{calm}\n" for one in some)), target="failed", there=there, changed=("README.md",))
        for some in (failed[1:], failed)
    )
    assert len(alike.fingerprints) == LOOK_FINGERPRINTS
    assert (alike.origin, more.origin) == (FailureOrigin.TARGET, FailureOrigin.UNKNOWN), more.reasons


lines = st.sampled_from([*EXCUSES, FORGED, FAILED_TEST, REFUSED, "Job succeeded", "Segmentation fault (core dumped)"])
begun = st.sampled_from([FAILED_TEST, REFUSED, "$ true", "$ pytest\nKilled"])
project = st.fixed_dictionaries(
    {
        "target": st.sampled_from(["success", "failed", None]),
        "changed": st.sampled_from([("tests/test_engine.py",), ("src/wing.c",), (".gitlab-ci.yml",), ()]),
        "reason": st.sampled_from(["script_failure", "runner_system_failure", "job_execution_timeout"]),
        "reports": st.sampled_from([((), ()), ((), ("junit",))]),
    }
)
EXCUSED = (FailureOrigin.INFRASTRUCTURE, FailureOrigin.FLAKY, FailureOrigin.TARGET)


@settings(max_examples=tries(60), deadline=None)
@given(begun, st.lists(lines | st.text(max_size=60), min_size=1, max_size=4), project)
def test_more_output_never_excuses(printed: str, more: list[str], about: dict[str, Any]) -> None:
    """Whatever a script prints in addition: within its section, with forged markers, behind the runner's last line."""
    before = verdict(ran(printed), **about)
    for log in (ran(printed, *more), ran(printed) + "\n".join(more)):
        after = verdict(log, **about)
        if before.origin is FailureOrigin.CHANGE:
            assert after.origin in (FailureOrigin.CHANGE, FailureOrigin.UNKNOWN)
        if after.origin in EXCUSED:
            assert after.origin is before.origin
            assert after.sure <= before.sure


RUN, REQUEST = "engine-on-pull-request-x7k2p", "8b1f0a62-4c6e-4b0e-9a57-2f0f4b9f1c11"
STATUS = {"name": "Konflux / engine", "status": "failed", "kind": "external", "id": 3}
UNREAD = FailureFacts(
    jobs=(JobFacts(name="test", id=5, target=TargetHistory(branch="main", passed=(True, True, True))),),
    missing_facts=("The log of job 5 could not be read.", "The diff could not be read."),
)
OURS = FailureSubject(mr_iid=7, sha="abc123", pipeline_id=1, target_branch="main", project="org/plane")


def outside(name: str = "Konflux / engine", run: str = RUN) -> JobFacts:
    return JobFacts(name=name, address=f"https://konflux.example/ns/t/pipelinerun/{run}")


def judged_after(facts: FailureFacts, *reads: tuple[str, dict[str, Any], Any]) -> FailureVerdict:
    """What rules say of the facts once a run's tools have brought this: tool, arguments and output."""

    async def read_all() -> FailureVerdict:
        watcher = FailureWatcher(Secrets(()))
        for name, arguments, output in reads:
            text = output if isinstance(output, str) else "\n".join(map(json.dumps, output))
            done = watcher.watch_output(ByteStream(_pieces(text)), name, arguments)
            assert isinstance(done, ByteStream)
            async for _ in done.chunks:
                pass
        return judge_failures(add_readings(facts, OURS, watcher.readings))

    return asyncio.run(read_all())


LOG_READ = ("gitlab_get_job_log", {"job_id": 5}, ran(FAILED_TEST))
DIFF_READ = ("gitlab_get_mr_diff", {"mr_iid": 7}, [{"new_path": "tests/test_engine.py", "old_path": ""}])
PATCH = (
    "diff --git a/tests/test_engine.py b/tests/test_engine.py\n--- a/tests/test_engine.py\n+++ b/tests/test_engine.py\n"
)
PATCH_READ = ("gitlab_get_mr_unified_diff", {"mr_iid": 7, "project": "org/plane"}, PATCH)


@pytest.mark.parametrize("diff", [DIFF_READ, PATCH_READ], ids=["file by file", "patch"])
def test_what_the_run_read_counts_as_if_it_had_been_read_before(diff: Any) -> None:
    before = judge_failures(UNREAD)
    assert before.origin is FailureOrigin.UNKNOWN
    after = judged_after(UNREAD, LOG_READ, diff)
    assert (after.origin, after.unseen) == (FailureOrigin.CHANGE, ())
    assert after.jobs[0].fingerprints


@pytest.mark.parametrize(
    "read",
    [
        ("gitlab_get_job_log", {"job_id": 6}, ran(FAILED_TEST)),
        ("gitlab_get_job_log", {"job_id": 5, "project": "org/other"}, ran(FAILED_TEST)),
        ("gitlab_get_job_artifact", {"job_id": 5, "path": "old.log"}, ran(FAILED_TEST)),
        ("gitlab_get_mr_diff", {"mr_iid": 8}, [{"new_path": "tests/test_engine.py"}]),
        ("gitlab_get_mr_diff", {"mr_iid": 7}, [{"new_path": "a.py"}, {"incomplete": "It broke off."}]),
        ("gitlab_get_pipeline_jobs", {"pipeline_id": 2}, [job(9, "failed") | {"name": "lint"}]),
        ("gitlab_get_commit_statuses", {"sha": "def456"}, [STATUS]),
    ],
    ids=["job", "project", "tool", "merge request", "half a diff", "pipeline", "commit"],
)
def test_what_is_about_something_else_changes_nothing(read: Any) -> None:
    assert judged_after(UNREAD, read) == judge_failures(UNREAD)


def test_what_was_read_before_is_not_replaced_by_the_same_log_read_again() -> None:
    seen = judged_after(UNREAD, LOG_READ, DIFF_READ)
    again = judged_after(UNREAD, LOG_READ, DIFF_READ, ("gitlab_get_job_log", {"job_id": 5}, ran("$ make\n")))
    assert again == seen


def test_a_retry_that_passed_meanwhile_makes_a_failure_flaky() -> None:
    listed = [job(5, "failed", retried=True), job(8, "success")]
    after = judged_after(UNREAD, ("gitlab_get_pipeline_jobs", {"pipeline_id": 1}, listed))
    assert after.origin is FailureOrigin.FLAKY


def test_a_status_of_another_system_that_failed_meanwhile_is_judged_too() -> None:
    listed = [STATUS, {**STATUS, "name": "x"}]
    after = judged_after(UNREAD, ("gitlab_get_commit_statuses", {"sha": "abc123" + "0" * 34}, listed))
    assert [one.job for one in after.jobs] == ["test", "Konflux / engine", "x"]


TASKS = [{"metadata": {"labels": {"tekton.dev/pipelineRun": RUN}}, "status": {"podName": "short-abc-pod"}}]
REPORT = (
    '<testsuites overall-result="failed"><testsuite name="s" result="failed"><testcase name="/plans/smoke" '
    'result="failed"><logs><log name="testout.log" href="x"/></logs></testcase></testsuite></testsuites>'
)


@pytest.mark.parametrize(
    "reads",
    [
        [("konflux_get_pod_log", {"pod": f"{RUN}-build-pod"}, REFUSED)],
        [
            ("konflux_list_taskruns", {"sha": "abc123"}, TASKS),
            ("konflux_get_pod_log", {"pod": "short-abc-pod"}, REFUSED),
        ],
        [
            ("konflux_get_pod_log", {"pod": f"{RUN}-test-pod"}, f"waiting for {REQUEST}\n"),
            ("tf_get_test_log", {"url": f"https://artifacts.example/{REQUEST}/work/testout.log"}, REFUSED),
        ],
        [("konflux_get_pod_log", {"pod": "nobody-knows-pod"}, REFUSED)],
    ],
    ids=["name", "list of tasks", "request", "only one"],
)
def test_what_another_system_ran_is_known_by_its_run(reads: Any) -> None:
    facts = FailureFacts(jobs=(outside(),), changed=("src/wing.c",))
    after = judged_after(facts, *reads)
    assert (after.origin, len(after.jobs[0].fingerprints)) == (FailureOrigin.CHANGE, 1)


def test_of_two_failed_runs_a_log_of_neither_counts_for_none() -> None:
    facts = FailureFacts(jobs=(outside(), outside("Konflux / wing", "wing-on-push-9")), changed=("src/wing.c",))
    assert judged_after(facts, ("konflux_get_pod_log", {"pod": "nobody-knows-pod"}, REFUSED)) == judge_failures(facts)
    after = judged_after(facts, ("konflux_get_pod_log", {"pod": "wing-on-push-9-build-pod"}, REFUSED))
    assert [one.origin for one in after.jobs] == [FailureOrigin.UNKNOWN, FailureOrigin.CHANGE]


def test_a_report_of_tests_counts_for_more_than_the_log_that_waited_for_it() -> None:
    waited = (
        "konflux_get_pod_log",
        {"pod": f"{RUN}-test-pod"},
        f"waiting for {REQUEST}\nTypeError: gave up in wait.py\n",
    )
    facts = FailureFacts(
        jobs=(outside(),), missing_facts=(f"The test report of the request {REQUEST} could not be read.",)
    )
    after = judged_after(facts, waited, ("tf_get_results", {"request_id": REQUEST}, REPORT))
    only_report = judged_after(facts, ("tf_get_results", {"request_id": REQUEST}, REPORT))
    assert after.jobs[0].fingerprints == only_report.jobs[0].fingerprints != ()
    assert after.unseen == ()


def test_what_a_test_of_a_report_printed_names_the_file_that_the_report_does_not() -> None:
    facts = FailureFacts(jobs=(outside(),), changed=("tests/test_engine.py",))
    reported = ("tf_get_results", {"request_id": REQUEST}, REPORT)
    printed = ("tf_get_test_log", {"url": "smoke/testout.log", "request_id": REQUEST}, FAILED_TEST)
    assert judged_after(facts, reported).origin is FailureOrigin.UNKNOWN
    address = f"https://konflux.example/ns/t/pipelinerun/{RUN}?request={REQUEST}"
    named = replace(facts, jobs=(replace(facts.jobs[0], address=address),))
    after = judged_after(named, reported, printed)
    assert "names-a-changed-file" in [reason.sign for reason in after.jobs[0].reasons]


@pytest.mark.parametrize("excuse", [*EXCUSES, FORGED], ids=IDS)
def test_excuse_in_a_log_that_the_run_read_buys_nothing(excuse: str) -> None:
    after = judged_after(UNREAD, ("gitlab_get_job_log", {"job_id": 5}, ran(excuse)), DIFF_READ)
    assert after.origin in (FailureOrigin.UNKNOWN, FailureOrigin.CHANGE)


@pytest.mark.parametrize("excuse", EXCUSES, ids=IDS[:-1])
def test_a_task_elsewhere_cannot_pose_as_gitlabs_runner(excuse: str) -> None:
    """Its log has no runner in it, so each line of it may be its own."""
    facts = FailureFacts(jobs=(outside(),), changed=("src/wing.c",))
    log = never_began(excuse)
    assert judged_after(UNREAD, ("gitlab_get_job_log", {"job_id": 5}, log)).origin is FailureOrigin.INFRASTRUCTURE
    after = judged_after(facts, ("konflux_get_pod_log", {"pod": f"{RUN}-build-pod"}, log))
    assert after.origin is FailureOrigin.UNKNOWN


def test_an_empty_log_tells_nothing_in_a_run_either() -> None:
    assert judged_after(UNREAD, ("gitlab_get_job_log", {"job_id": 5}, "")) == judge_failures(UNREAD)


def test_a_line_that_announces_another_one_is_shown_with_it() -> None:
    def region(*lines: EvidenceLine) -> Region:
        return Region(lines, RegionKind.TEST, Blame(FailureClass.TEST, "r", 0.9, "Why."), "f", 1.0, "r")

    panic = region(EvidenceLine(4, "test a ... FAILED"), EvidenceLine(7, "panicked at src/a.rs:1:2:"))
    message = region(EvidenceLine(8, "no such item"), EvidenceLine(9, "note: run with"))
    analysis = EvidenceAnalysis((panic, message), panic.blame, 9, 90)
    shown = _with_announced(CertainFailure(panic, "panicked at src/a.rs:1:2:"), analysis)
    assert [line.number for line in shown.region.lines] == [4, 7, 8]
    assert _with_announced(CertainFailure(message, "no such item"), analysis).region == message


def test_a_bridge_is_no_failure_of_its_own_where_the_jobs_of_its_pipeline_are_listed() -> None:
    bridge = {"id": 1, "name": "trigger", "status": "failed", "stage": "t", "downstream_pipeline": {"id": 9}}
    assert [job.name for job in _jobs_of_pipeline([bridge], (), 5)] == ["trigger"]
    assert list(_jobs_of_pipeline([bridge], (), 5, explained={"9"})) == []
