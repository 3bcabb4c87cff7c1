"""The GitLab tools as a model sees them: what each returns, when to use it, and what it costs.

Descriptions name no other tool: what is worth saying about one stands in `mentions` and is shown only while that tool
is enabled (T2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.sources.gitlab.arguments import (
    BRANCH,
    FILE,
    JOB,
    JOB_NAME,
    LIMIT,
    MERGE_REQUEST,
    PIPELINE,
    PROJECT,
    REF,
    SHA,
    STATUS_FILTERS,
)
from hummingbird.adapters.sources.gitlab.trust import WITHHELD
from hummingbird.adapters.sources.offered import takes
from hummingbird.domain.limits import GITLAB_BASELINE_PIPELINES, GITLAB_STREAM_TOOL_S, TOOL_TIMEOUT_S
from hummingbird.domain.tools import ToolSpec

NAME = "gitlab"
NOTES = (
    "About GitLab: a commit has statuses of two kinds. Native jobs ran on GitLab's runners, have logs here, and their "
    "target_url ends in /-/jobs/<id>: that number is the job id. External statuses were reported by another system "
    "(Konflux, for one); GitLab has no log of them, and target_url leads to where they ran. The commit of record is "
    "the merge request's `sha`; a pipeline's sha may be a merge commit that GitLab made, and its native jobs are "
    "listed under that one. An external status `canceled` or `skipped` may stand for a build or an optional test "
    "that failed. "
    f"In discussions, {WITHHELD!r} stands for words of somebody without Developer access: do not guess what they were. "
    "A line with `incomplete` ends a list that broke off: what stands above it is true but not all."
)


@dataclass(frozen=True, slots=True)
class Told:
    """A tool before it belongs to a project."""

    description: str
    required: Mapping[str, Any]
    optional: Mapping[str, Any] = field(default_factory=dict)
    mentions: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TOOL_TIMEOUT_S


TOLD: Mapping[str, Told] = {
    "gitlab_get_mr_details": Told(
        "Details of a merge request as JSON: title, description, state, branches, `sha` (the commit of record), diff "
        "refs, newest pipeline, labels, whether it comes from a fork, and its author's access level in the project (30 "
        "is Developer). Use it first when a merge request is in question. Two requests, a few KB.",
        MERGE_REQUEST,
    ),
    "gitlab_get_mr_unified_diff": Told(
        "The whole diff of a merge request as one patch, streamed, as `git diff` prints it. Use it to read or to grep "
        "what changed. One request; from a few KB to many MB. GitLab may leave out the text of very large files.",
        MERGE_REQUEST,
        mentions={"gitlab_get_mr_diff": "gitlab_get_mr_diff says which files those are."},
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_mr_diff": Told(
        "The diff of a merge request file by file as JSON lines: paths, modes, whether new, renamed or deleted, the "
        "text, and in `no_text` why a file has none (collapsed or too large: it changed all the same). Use it to know "
        "which files changed. One request for 30 files.",
        MERGE_REQUEST,
    ),
    "gitlab_get_mr_commits": Told(
        "The commits of a merge request, newest first, as JSON lines: id, title, message, parents, dates. Use it to "
        "see how a change came about. One request for 100 commits.",
        MERGE_REQUEST,
    ),
    "gitlab_get_mr_discussions": Told(
        "The discussions of a merge request as JSON lines, one a thread: notes of developers, notes of this agent "
        "without their transcripts, and what GitLab noted itself (only the kind of event). Words of people without "
        "Developer access are withheld, threads of theirs alone are left out and counted in the last line. Use it for "
        "what reviewers said. One request for 100 threads and one for each author.",
        MERGE_REQUEST,
    ),
    "gitlab_get_commit_statuses": Told(
        "The statuses of a commit as JSON lines: native jobs (`kind` job, with `job_id`) and external ones (`kind` "
        "external, with target_url). Use it with the merge request's `sha` to see what failed anywhere. One request "
        "for 100 statuses.",
        SHA,
        STATUS_FILTERS,
        mentions={"gitlab_get_job_log": "gitlab_get_job_log takes the job_id."},
    ),
    "gitlab_get_file_at_ref": Told(
        "One file of the repository at a commit, branch or tag, streamed as it is. Use it for a few files. One "
        "request; as large as the file. Large files may come as a Git LFS pointer.",
        FILE,
        mentions={"gitlab_get_repo_archive": "For many files use gitlab_get_repo_archive once."},
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_repo_archive": Told(
        "All files of the repository at a commit, branch or tag as a tar.gz, streamed. Use it once, saved to a file, "
        "to search the code. One request, but GitLab allows five a minute; from some KB to 1 GiB.",
        REF,
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_job_log": Told(
        "The log of a native job as text, streamed, without terminal codes; line numbers are those of GitLab. Use it "
        "for each job that failed. One request; from a few KB to hundreds of MB. External statuses have no log here.",
        JOB,
        mentions={
            "gitlab_get_baseline_job_log": "gitlab_get_baseline_job_log brings a log of the same job that went well."
        },
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_pipeline_jobs": Told(
        "The native jobs of a pipeline as JSON lines: id, name, stage, status, failure_reason, times, address, kinds "
        "of reports that it uploaded (junit); tries "
        "that were repeated are marked `retried`, jobs that start another pipeline have `kind` bridge and name it. Use "
        "it to see which jobs failed, and whether a retry went well. Two requests for 100 jobs. External statuses are "
        "not among them.",
        PIPELINE,
        mentions={"gitlab_get_commit_statuses": "gitlab_get_commit_statuses lists those."},
    ),
    "gitlab_get_test_report": Told(
        "The test report of a pipeline (JUnit files that its jobs uploaded) as JSON lines: the sums, then one suite a "
        "line, those with failures first, and in each the failed cases first with output and stack trace. Use it "
        "before reading logs of test jobs. One request; up to 32 MB.",
        PIPELINE,
    ),
    "gitlab_get_baseline_job_log": Told(
        "The log of the same job's last green run on a branch (the default branch if none is given), streamed "
        "without terminal codes; line numbers are those of GitLab. Which job and pipeline it is of stands beside it, "
        "as [Baseline: …]. Use it to tell what is new in a red log from what is always there. Up to about "
        f"{GITLAB_BASELINE_PIPELINES + 3} requests; as large as the log.",
        JOB_NAME,
        BRANCH,
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_list_recent_pipelines": Told(
        "The newest pipelines of a branch (of all branches if none is given) as JSON lines, newest first: id, commit, "
        "source, status, times. Use it with the target branch to see whether that is red too, and since when. One "
        "request.",
        {},
        {**BRANCH, **LIMIT},
    ),
}  # fmt: skip


def spec_of(name: str, event_project_url: str) -> ToolSpec:
    told = TOLD[name]
    return ToolSpec(
        name=name,
        description=told.description,
        schema=takes(told.required, {**told.optional, **PROJECT}),
        toolset=NAME,
        timeout_s=told.timeout_s,
        notes=NOTES,
        mentions=told.mentions,
        source=NAME,
        metadata={"event_project_url": event_project_url},
    )
