"""Load the GitLab part of a case from its folder: short JSON in, full records out.

Missing values get plain defaults here; `entities` computes what the API shows besides. Beyond the usual keys a case may
have: `renamed_from` (old paths) and `public_jobs` in project.json, `visibility` and `members` ({username: level}) of
its fork; `in_fork` of a pipeline; `bridge`, `downstream` and `debug_trace` of a job; `expires_at` of a user.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab.records import (
    DISCUSSION_NOTE,
    AccessToken,
    CiJob,
    Commit,
    CommitStatus,
    Discussion,
    LabMergeRequest,
    LabProject,
    Member,
    Note,
    Pipeline,
    Raw,
    User,
)
from hummingbird.lab.gitlab.repository import build_tree, parse_diff
from hummingbird.lab.gitlab.world import GitLabWorld, discussion_id, format_time

READ_TOKEN = "lab-read-token"  # noqa: S105  # the lab's own, worth nothing elsewhere
WRITE_TOKEN = "lab-write-token"  # noqa: S105 - opens a stand-in on loopback
EXPIRED_TOKEN = "lab-expired-token"  # noqa: S105 - opens a stand-in on loopback
NARROW_TOKEN = "lab-narrow-token"  # noqa: S105 - opens a stand-in on loopback
DEVELOPER_TOKEN = "lab-developer-token"  # noqa: S105 - opens a stand-in on loopback
JOB_TOKEN = "lab-job-token"  # noqa: S105 - opens a stand-in on loopback
_TOKEN_SCOPES = {"read": ("read_api",), "write": ("api",)}
_DEVELOPER_LEVEL = 30
_TOKEN_VALUES = {"read": READ_TOKEN, "write": WRITE_TOKEN}


class BrokenCase(Exception):
    """The case is incomplete; the message says what to add."""


def load_world(case: LabCase) -> GitLabWorld:
    """Load a case whose `addresses` name "gitlab", which becomes the world's url. Raises BrokenCase."""
    people = case.read_json("gitlab/users.json", [])
    users = [_load_user(each) for each in people]
    projects = list(_load_projects(case.read_json("gitlab/project.json"), people))
    world = GitLabWorld(
        url=case.addresses.get("gitlab", "http://127.0.0.1").rstrip("/"),
        now=parse_time(case.description["now"]),
        projects=projects,
        users=users,
        tokens=list(_load_tokens(people)),
        renames={old.lower(): projects[0].id for old in case.read_json("gitlab/project.json").get("renamed_from", [])},
    )
    _add_merge_request(world, case)
    _add_pipelines(world, case)
    return world


def parse_time(text: str) -> datetime:
    """Parse a time; without a zone it is UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def format_time_or_none(text: str | None) -> str | None:
    return format_time(parse_time(text)) if text else None


def _load_user(raw: Raw) -> User:
    return User(
        raw["id"],
        raw["username"],
        raw.get("name") or raw["username"],
        raw.get("state", "active"),
        raw.get("bot", False),
        raw.get("public_email", ""),
    )


def _load_tokens(people: Iterable[Raw]) -> Iterable[AccessToken]:
    owners = {each["token"]: each["id"] for each in people if each.get("token")}
    anyone = next(iter(owners.values()), None) or next((each["id"] for each in people), 0)
    for name, owner in owners.items():
        yield AccessToken(_TOKEN_VALUES[name], owner, _TOKEN_SCOPES[name])
    yield AccessToken(EXPIRED_TOKEN, anyone, ("api",), state="expired")
    yield AccessToken(NARROW_TOKEN, anyone, ("read_user",))
    yield AccessToken(JOB_TOKEN, anyone, ("read_api",), kind="job")
    if (developer := next(filter(_is_developer, people), None)) is not None:
        yield AccessToken(DEVELOPER_TOKEN, developer["id"], ("api",))


def _is_developer(person: Raw) -> bool:
    """Tell whether this is a person of the project who may ask the agent for something."""
    active = person.get("state", "active") == "active"
    return not person.get("bot") and active and (person.get("access_level") or 0) >= _DEVELOPER_LEVEL


def _load_projects(raw: Raw, people: Iterable[Raw]) -> Iterable[LabProject]:
    people = list(people)
    target = _load_project(raw)
    for each in people:
        if each.get("access_level") is not None:
            target.members[each["id"]] = Member(
                each["id"], each["access_level"], each.get("inherited", False), each.get("expires_at")
            )
    yield target
    if raw.get("fork"):
        yield _load_fork(target, raw["fork"], people)


def _load_project(raw: Raw) -> LabProject:
    return LabProject(
        id=raw["id"],
        path=raw["path"],
        name=raw.get("name", raw["path"].rsplit("/", 1)[-1]),
        description=raw.get("description", ""),
        default_branch=raw.get("default_branch", "main"),
        visibility=raw.get("visibility", "private"),
        all_threads_must_be_resolved=raw.get("all_threads_must_be_resolved", False),
        public_jobs=raw.get("public_jobs", True),
    )


def _load_fork(target: LabProject, raw: Raw, people: list[Raw]) -> LabProject:
    """Load a fork: as visible as its parent unless it says otherwise, owned by the person of its namespace."""
    fork = _load_project(
        {"default_branch": target.default_branch, "visibility": target.visibility, "name": target.name, **raw}
    )
    fork.forked_from_id = target.id
    owner = fork.path.split("/", 1)[0]
    levels = {owner: 50, **raw.get("members", {})}
    for each in people:
        if each["username"] in levels:
            fork.members[each["id"]] = Member(each["id"], levels[each["username"]])
    return fork


def _add_merge_request(world: GitLabWorld, case: LabCase) -> None:
    raw = case.read_json("gitlab/merge_request.json")
    commits = [_load_commit(each) for each in case.read_json("gitlab/commits.json", [])]
    bases = [raw.get("base_sha") or ""] if raw else [""]
    for commit, parent in zip(commits, [*(each.id for each in commits[1:]), *bases], strict=False):
        commit.parent_ids = [parent] if parent else []
    world.commits = {each.id: each for each in commits}
    if raw is None:
        return
    found = _load_merge_request(world, raw)
    patch = case.folder / "gitlab/diff.patch"
    # Placeholders are not filled: a diff is shown as it is, and its bytes need not be text.
    found.diff_text = patch.read_bytes().decode("utf-8", "replace") if patch.is_file() else ""
    found.files = parse_diff(found.diff_text)
    found.commits = commits
    found.discussions = [_load_discussion(world, each) for each in case.read_json("gitlab/discussions.json", [])]
    world.merge_requests.append(found)
    world.tree = build_tree(case.folder / "gitlab/tree", case.list_files("gitlab/tree"), found.files)


def _user_id(world: GitLabWorld, username: str | None) -> int:
    """Return the id of a person; one whom the case does not introduce is made up, without any membership."""
    user = world.find_user(username or "ghost")
    if user is None:
        user = User(world.next_id(), username or "ghost", username or "Ghost User")
        world.users.append(user)
    return user.id


def _load_merge_request(world: GitLabWorld, raw: Raw) -> LabMergeRequest:
    source = world.fork if raw.get("from_fork") else world.project
    created = format_time(parse_time(raw["created_at"]))
    marked = raw["title"].lower().startswith(("draft:", "[draft]", "(draft)"))
    return LabMergeRequest(
        id=raw["id"],
        iid=raw["iid"],
        project_id=world.project.id,
        source_project_id=source.id if source else None,
        # GitLab recognises a draft by its title alone.
        title=raw["title"] if marked or not raw.get("draft") else f"Draft: {raw['title']}",
        description=raw.get("description", ""),
        author_id=_user_id(world, raw["author"]),
        source_branch=raw["source_branch"],
        target_branch=raw.get("target_branch", world.project.default_branch),
        sha=raw.get("sha"),
        base_sha=raw.get("base_sha"),
        start_sha=raw.get("start_sha", raw.get("base_sha")),
        created_at=created,
        updated_at=format_time_or_none(raw.get("updated_at")) or created,
        state=raw.get("state", "opened"),
        draft=raw.get("draft", False) or marked,
        assignee_ids=[_user_id(world, each) for each in raw.get("assignees", [])],
        reviewer_ids=[_user_id(world, each) for each in raw.get("reviewers", [])],
        labels=list(raw.get("labels", [])),
        closed_at=format_time_or_none(raw.get("closed_at")),
        merged_at=format_time_or_none(raw.get("merged_at")),
    )


def _load_commit(raw: Raw) -> Commit:
    title = raw.get("title") or raw["message"].split("\n", 1)[0]
    return Commit(
        raw["id"],
        title,
        raw.get("message") or title,
        raw.get("author_name", ""),
        raw.get("author_email", ""),
        format_time(parse_time(raw["created_at"])),
    )


def _load_discussion(world: GitLabWorld, raw: Raw) -> Discussion:
    individual = raw.get("individual_note", False)
    notes = [_load_note(world, each, None if individual else DISCUSSION_NOTE) for each in raw["notes"]]
    return Discussion(raw.get("id") or discussion_id(notes[0].id), individual, notes)


def _load_note(world: GitLabWorld, raw: Raw, note_type: str | None) -> Note:
    created = format_time(parse_time(raw["created_at"]))
    resolved = raw.get("resolved", False)
    author = _user_id(world, raw["author"])
    return Note(
        id=raw["id"],
        author_id=author,
        body=raw["body"],
        created_at=created,
        updated_at=format_time_or_none(raw.get("updated_at")) or created,
        system=raw.get("system", False),
        internal=raw.get("internal", False),
        type=None if raw.get("system") else raw.get("type") or note_type,
        position=raw.get("position"),
        resolved=resolved,
        resolved_by_id=_user_id(world, raw["resolved_by"]) if raw.get("resolved_by") else author if resolved else None,
        resolved_at=created if resolved else None,
    )


def _add_pipelines(world: GitLabWorld, case: LabCase) -> None:
    world.pipelines = [_load_pipeline(world, each) for each in case.read_json("gitlab/pipelines.json", [])]
    world.jobs = [_load_job(world, case, each) for each in case.read_json("gitlab/jobs.json", [])]
    world.statuses = [_load_status(world, each) for each in case.read_json("gitlab/statuses.json", [])]
    reports: dict[str, Any] = case.read_json("gitlab/test_reports.json", {})
    world.test_reports = {int(each): report for each, report in reports.items()}
    _check_pipelines(world)
    started = {job.pipeline_id: job.started_at for job in reversed(world.jobs) if job.started_at}
    for pipeline in world.pipelines:
        pipeline.started_at = pipeline.started_at or started.get(pipeline.id) or pipeline.created_at
    _add_missing_commits(world)


def _check_pipelines(world: GitLabWorld) -> None:
    """Raise BrokenCase for jobs and statuses without a pipeline, which would never be shown, and for missing logs."""
    known = {each.id for each in world.pipelines}
    rows: list[CiJob | CommitStatus] = [*world.jobs, *world.statuses]
    for row in rows:
        if row.pipeline_id not in known:
            raise BrokenCase(f"{row.name!r} ({row.id}) is of pipeline {row.pipeline_id}: add it to pipelines.json.")
    for job in world.jobs:
        if job.log is not None and not job.log.is_file():
            raise BrokenCase(f"The log of {job.name!r} ({job.id}) is not there: add {job.log.name} to the case's logs.")


def _add_missing_commits(world: GitLabWorld) -> None:
    """Add a commit with a made-up message for each other sha that the case mentions."""
    mr = world.merge_requests[0] if world.merge_requests else None
    named = [mr.sha, mr.base_sha, mr.start_sha] if mr else []
    for sha in [*named, *(each.sha for each in world.pipelines), *(each.sha for each in world.statuses)]:
        if sha and sha not in world.commits:
            world.commits[sha] = Commit(
                sha, f"Commit {sha[:8]}", f"Commit {sha[:8]}\n", "GitLab", "gitlab@localhost", format_time(world.now)
            )
    for pipeline in world.pipelines:
        if mr and pipeline.ref.endswith("/merge"):  # merged results: parents are the target branch and the head
            world.commits[pipeline.sha].parent_ids = [sha for sha in (mr.start_sha, mr.sha) if sha]


def _load_pipeline(world: GitLabWorld, raw: Raw) -> Pipeline:
    """Raises BrokenCase."""
    of_merge_request = raw.get("merge_request", False) and world.merge_requests
    project = world.fork if raw.get("in_fork") else world.project
    if project is None:
        raise BrokenCase(f"Pipeline {raw['id']} ran in a fork that is gone, and went with it: take it out of the case.")
    created, finished = format_time(parse_time(raw["created_at"])), format_time_or_none(raw.get("finished_at"))
    return Pipeline(
        id=raw["id"],
        iid=raw.get("iid") or raw["id"],
        project_id=project.id,
        sha=raw["sha"],
        ref=_pipeline_ref(world, raw) if of_merge_request else raw["ref"],
        source=raw.get("source", "push"),
        status=raw["status"],
        user_id=_user_id(world, raw.get("user")),
        created_at=created,
        updated_at=finished or created,
        started_at=format_time_or_none(raw.get("started_at")),
        finished_at=finished,
        merge_request_id=world.merge_request.id if of_merge_request else None,
    )


def _pipeline_ref(world: GitLabWorld, raw: Raw) -> str:
    """Return the ref that REST shows: that of the merge request, /merge if the pipeline ran on the merged result."""
    if raw["ref"].startswith("refs/") or raw.get("source") != "merge_request_event":
        return str(raw["ref"])
    mr = world.merge_request
    pushed = {mr.sha, *(each.id for each in mr.commits)}
    return f"refs/merge-requests/{mr.iid}/{'head' if raw['sha'] in pushed else 'merge'}"


def _load_job(world: GitLabWorld, case: LabCase, raw: Raw) -> CiJob:
    log = raw.get("log")
    return CiJob(
        id=raw["id"],
        name=raw["name"],
        stage=raw.get("stage", "test"),
        status=raw["status"],
        pipeline_id=raw["pipeline"],
        user_id=_user_id(world, raw.get("user")),
        created_at=format_time(parse_time(raw["created_at"])),
        started_at=format_time_or_none(raw.get("started_at")),
        finished_at=format_time_or_none(raw.get("finished_at")),
        allow_failure=raw.get("allow_failure", False),
        failure_reason=raw.get("failure_reason"),
        retried=raw.get("retried", False),
        log=case.folder / log if log else None,
        runner=raw.get("runner"),
        tags=list(raw.get("tags", [])),
        bridge=raw.get("bridge", False),
        downstream=raw.get("downstream"),
        debug_trace=raw.get("debug_trace", False),
    )


def _load_status(world: GitLabWorld, raw: Raw) -> CommitStatus:
    created = format_time(parse_time(raw["created_at"]))
    return CommitStatus(
        id=raw["id"],
        sha=raw["sha"],
        name=raw["name"],
        status=raw["status"],
        pipeline_id=raw["pipeline"],
        author_id=_user_id(world, raw.get("author")),
        created_at=created,
        target_url=raw.get("target_url"),
        description=raw.get("description"),
        started_at=format_time_or_none(raw.get("started_at")) or created,
        finished_at=format_time_or_none(raw.get("finished_at")),
        allow_failure=raw.get("allow_failure", False),
        retried=raw.get("retried", False),
    )


def add_merge_requests(world: GitLabWorld, number: int) -> list[Pipeline]:
    """Add copies of the case's merge request for load tests, each with its own head, failed pipeline and jobs.

    Returns their pipelines. Their logs are the case's.
    """
    pattern = world.merge_request
    run = next(each for each in world.pipelines if each.merge_request_id == pattern.id)
    jobs = [each for each in world.jobs if each.pipeline_id == run.id]
    first = max(each.iid for each in world.merge_requests) + 1
    return [_copy_merge_request(world, pattern, run, jobs, first + at) for at in range(number)]


def _copy_merge_request(
    world: GitLabWorld, pattern: LabMergeRequest, run: Pipeline, jobs: list[CiJob], iid: int
) -> Pipeline:
    assert pattern.sha is not None, "a merge request without a head has no pipeline"
    sha = hashlib.sha1(f"{pattern.sha} {iid}".encode(), usedforsecurity=False).hexdigest()
    world.commits[sha] = replace(world.commits[pattern.sha], id=sha)
    branch = f"{pattern.source_branch}-{iid}"
    mr = replace(
        pattern,
        id=world.next_id(),
        iid=iid,
        sha=sha,
        source_branch=branch,
        commits=[world.commits[sha]],
        discussions=[],
        draft_notes=[],
        awards=[],
    )
    again = replace(
        run, id=world.next_id(), iid=iid, sha=sha, ref=f"refs/merge-requests/{iid}/head", merge_request_id=mr.id
    )
    world.merge_requests.append(mr)
    world.pipelines.append(again)
    world.jobs += [replace(each, id=world.next_id(), pipeline_id=again.id) for each in jobs]
    return again
