"""From a case's folder to a world: short JSON in, full records out.

What the folder leaves out is given a plain value here; what the API shows besides is worked out when it is shown.
Beyond the usual keys a case may say: project.json `renamed_from` (old paths) and `public_jobs`, its fork `visibility`
and `members` ({username: level}); a pipeline `in_fork`; a job `bridge`, `downstream` and `debug_trace`; a user
`expires_at`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from hummingbird.lab.case import Case
from hummingbird.lab.gitlab.diffs import files_of
from hummingbird.lab.gitlab.records import (
    DISCUSSION_NOTE,
    Commit,
    Discussion,
    Job,
    Member,
    MergeRequest,
    Note,
    Pipeline,
    Project,
    Raw,
    Status,
    Token,
    User,
)
from hummingbird.lab.gitlab.repository import tree_of
from hummingbird.lab.gitlab.store import World, discussion_id, printed

READ_TOKEN = "lab-read-token"  # noqa: S105  # the lab's own, worth nothing elsewhere
WRITE_TOKEN = "lab-write-token"  # noqa: S105 - opens a stand-in on loopback
EXPIRED_TOKEN = "lab-expired-token"  # noqa: S105 - opens a stand-in on loopback
NARROW_TOKEN = "lab-narrow-token"  # noqa: S105 - opens a stand-in on loopback
DEVELOPER_TOKEN = "lab-developer-token"  # noqa: S105 - opens a stand-in on loopback
JOB_TOKEN = "lab-job-token"  # noqa: S105 - opens a stand-in on loopback
_SCOPES = {"read": ("read_api",), "write": ("api",)}
_DEVELOPER = 30
_VALUES = {"read": READ_TOKEN, "write": WRITE_TOKEN}


class BrokenCase(Exception):
    """Says what to add to the case."""


def load(case: Case) -> World:
    """A case whose `addresses` name "gitlab"; the world's url is that. Raises BrokenCase."""
    people = case.json("gitlab/users.json", [])
    users = [_user(each) for each in people]
    projects = list(_projects(case.json("gitlab/project.json"), people))
    world = World(
        url=case.addresses.get("gitlab", "http://127.0.0.1").rstrip("/"),
        now=moment(case.about["now"]),
        projects=projects,
        users=users,
        tokens=list(_tokens(people)),
        renames={old.lower(): projects[0].id for old in case.json("gitlab/project.json").get("renamed_from", [])},
    )
    _add_merge_request(world, case)
    _add_runs(world, case)
    return world


def moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def time_or_none(text: str | None) -> str | None:
    return printed(moment(text)) if text else None


def _user(raw: Raw) -> User:
    return User(
        raw["id"],
        raw["username"],
        raw.get("name") or raw["username"],
        raw.get("state", "active"),
        raw.get("bot", False),
        raw.get("public_email", ""),
    )


def _tokens(people: Iterable[Raw]) -> Iterable[Token]:
    owners = {each["token"]: each["id"] for each in people if each.get("token")}
    anyone = next(iter(owners.values()), None) or next((each["id"] for each in people), 0)
    for name, owner in owners.items():
        yield Token(_VALUES[name], owner, _SCOPES[name])
    yield Token(EXPIRED_TOKEN, anyone, ("api",), standing="expired")
    yield Token(NARROW_TOKEN, anyone, ("read_user",))
    yield Token(JOB_TOKEN, anyone, ("read_api",), kind="job")
    if (developer := next(filter(_develops, people), None)) is not None:
        yield Token(DEVELOPER_TOKEN, developer["id"], ("api",))


def _develops(person: Raw) -> bool:
    """A person of the project who may ask the agent for something."""
    active = person.get("state", "active") == "active"
    return not person.get("bot") and active and (person.get("access_level") or 0) >= _DEVELOPER


def _projects(raw: Raw, people: Iterable[Raw]) -> Iterable[Project]:
    people = list(people)
    target = _project(raw)
    for each in people:
        if each.get("access_level") is not None:
            target.members[each["id"]] = Member(
                each["id"], each["access_level"], each.get("inherited", False), each.get("expires_at")
            )
    yield target
    if raw.get("fork"):
        yield _fork(target, raw["fork"], people)


def _project(raw: Raw) -> Project:
    return Project(
        id=raw["id"],
        path=raw["path"],
        name=raw.get("name", raw["path"].rsplit("/", 1)[-1]),
        description=raw.get("description", ""),
        default_branch=raw.get("default_branch", "main"),
        visibility=raw.get("visibility", "private"),
        all_threads_must_be_resolved=raw.get("all_threads_must_be_resolved", False),
        public_jobs=raw.get("public_jobs", True),
    )


def _fork(target: Project, raw: Raw, people: list[Raw]) -> Project:
    """As visible as its parent unless it says otherwise; it belongs to the person in whose namespace it is."""
    fork = _project(
        {"default_branch": target.default_branch, "visibility": target.visibility, "name": target.name, **raw}
    )
    fork.forked_from_id = target.id
    owner = fork.path.split("/", 1)[0]
    levels = {owner: 50, **raw.get("members", {})}
    for each in people:
        if each["username"] in levels:
            fork.members[each["id"]] = Member(each["id"], levels[each["username"]])
    return fork


def _add_merge_request(world: World, case: Case) -> None:
    raw = case.json("gitlab/merge_request.json")
    commits = [_commit(each) for each in case.json("gitlab/commits.json", [])]
    bases = [raw.get("base_sha") or ""] if raw else [""]
    for commit, parent in zip(commits, [*(each.id for each in commits[1:]), *bases], strict=False):
        commit.parent_ids = [parent] if parent else []
    world.commits = {each.id: each for each in commits}
    if raw is None:
        return
    found = _merge_request(world, raw)
    patch = case.folder / "gitlab/diff.patch"
    # not filled: a diff is shown as it was made, and its bytes need not be text
    found.diff_text = patch.read_bytes().decode("utf-8", "replace") if patch.is_file() else ""
    found.files = files_of(found.diff_text)
    found.commits = commits
    found.discussions = [_discussion(world, each) for each in case.json("gitlab/discussions.json", [])]
    world.merge_requests.append(found)
    world.tree = tree_of(case.folder / "gitlab/tree", case.files("gitlab/tree"), found.files)


def _id(world: World, username: str | None) -> int:
    """Of a person whom the case mentions; whoever it does not introduce is made up, no member of anything."""
    user = world.user_named(username or "ghost")
    if user is None:
        user = User(world.next_id(), username or "ghost", username or "Ghost User")
        world.users.append(user)
    return user.id


def _merge_request(world: World, raw: Raw) -> MergeRequest:
    source = world.fork if raw.get("from_fork") else world.project
    created = printed(moment(raw["created_at"]))
    marked = raw["title"].lower().startswith(("draft:", "[draft]", "(draft)"))
    return MergeRequest(
        id=raw["id"],
        iid=raw["iid"],
        project_id=world.project.id,
        source_project_id=source.id if source else None,
        # a draft is one by its title: there is no other mark
        title=raw["title"] if marked or not raw.get("draft") else f"Draft: {raw['title']}",
        description=raw.get("description", ""),
        author_id=_id(world, raw["author"]),
        source_branch=raw["source_branch"],
        target_branch=raw.get("target_branch", world.project.default_branch),
        sha=raw.get("sha"),
        base_sha=raw.get("base_sha"),
        start_sha=raw.get("start_sha", raw.get("base_sha")),
        created_at=created,
        updated_at=time_or_none(raw.get("updated_at")) or created,
        state=raw.get("state", "opened"),
        draft=raw.get("draft", False) or marked,
        assignee_ids=[_id(world, each) for each in raw.get("assignees", [])],
        reviewer_ids=[_id(world, each) for each in raw.get("reviewers", [])],
        labels=list(raw.get("labels", [])),
        closed_at=time_or_none(raw.get("closed_at")),
        merged_at=time_or_none(raw.get("merged_at")),
    )


def _commit(raw: Raw) -> Commit:
    title = raw.get("title") or raw["message"].split("\n", 1)[0]
    return Commit(
        raw["id"],
        title,
        raw.get("message") or title,
        raw.get("author_name", ""),
        raw.get("author_email", ""),
        printed(moment(raw["created_at"])),
    )


def _discussion(world: World, raw: Raw) -> Discussion:
    individual = raw.get("individual_note", False)
    notes = [_note(world, each, None if individual else DISCUSSION_NOTE) for each in raw["notes"]]
    return Discussion(raw.get("id") or discussion_id(notes[0].id), individual, notes)


def _note(world: World, raw: Raw, note_type: str | None) -> Note:
    created = printed(moment(raw["created_at"]))
    resolved = raw.get("resolved", False)
    author = _id(world, raw["author"])
    return Note(
        id=raw["id"],
        author_id=author,
        body=raw["body"],
        created_at=created,
        updated_at=time_or_none(raw.get("updated_at")) or created,
        system=raw.get("system", False),
        internal=raw.get("internal", False),
        type=None if raw.get("system") else raw.get("type") or note_type,
        position=raw.get("position"),
        resolved=resolved,
        resolved_by_id=_id(world, raw["resolved_by"]) if raw.get("resolved_by") else author if resolved else None,
        resolved_at=created if resolved else None,
    )


def _add_runs(world: World, case: Case) -> None:
    world.pipelines = [_pipeline(world, each) for each in case.json("gitlab/pipelines.json", [])]
    world.jobs = [_job(world, case, each) for each in case.json("gitlab/jobs.json", [])]
    world.statuses = [_status(world, each) for each in case.json("gitlab/statuses.json", [])]
    reports: dict[str, Any] = case.json("gitlab/test_reports.json", {})
    world.test_reports = {int(each): report for each, report in reports.items()}
    _check(world)
    started = {job.pipeline_id: job.started_at for job in reversed(world.jobs) if job.started_at}
    for pipeline in world.pipelines:
        pipeline.started_at = pipeline.started_at or started.get(pipeline.id) or pipeline.created_at
    _known_commits(world)


def _check(world: World) -> None:
    """Raises BrokenCase: what belongs to no pipeline would never be shown, and nobody would know why."""
    known = {each.id for each in world.pipelines}
    rows: list[Job | Status] = [*world.jobs, *world.statuses]
    for row in rows:
        if row.pipeline_id not in known:
            raise BrokenCase(f"{row.name!r} ({row.id}) is of pipeline {row.pipeline_id}: add it to pipelines.json.")
    for job in world.jobs:
        if job.log is not None and not job.log.is_file():
            raise BrokenCase(f"The log of {job.name!r} ({job.id}) is not there: add {job.log.name} to the case's logs.")


def _known_commits(world: World) -> None:
    """Whatever sha the case mentions is a commit, if only with a made-up message."""
    mr = world.merge_requests[0] if world.merge_requests else None
    named = [mr.sha, mr.base_sha, mr.start_sha] if mr else []
    for sha in [*named, *(each.sha for each in world.pipelines), *(each.sha for each in world.statuses)]:
        if sha and sha not in world.commits:
            world.commits[sha] = Commit(
                sha, f"Commit {sha[:8]}", f"Commit {sha[:8]}\n", "GitLab", "gitlab@localhost", printed(world.now)
            )
    for pipeline in world.pipelines:
        if mr and pipeline.ref.endswith("/merge"):  # merged results: the target branch and the head
            world.commits[pipeline.sha].parent_ids = [sha for sha in (mr.start_sha, mr.sha) if sha]


def _pipeline(world: World, raw: Raw) -> Pipeline:
    """Raises BrokenCase."""
    of_merge_request = raw.get("merge_request", False) and world.merge_requests
    project = world.fork if raw.get("in_fork") else world.project
    if project is None:
        raise BrokenCase(f"Pipeline {raw['id']} ran in a fork that is gone, and went with it: take it out of the case.")
    created, finished = printed(moment(raw["created_at"])), time_or_none(raw.get("finished_at"))
    return Pipeline(
        id=raw["id"],
        iid=raw.get("iid") or raw["id"],
        project_id=project.id,
        sha=raw["sha"],
        ref=_ref(world, raw) if of_merge_request else raw["ref"],
        source=raw.get("source", "push"),
        status=raw["status"],
        user_id=_id(world, raw.get("user")),
        created_at=created,
        updated_at=finished or created,
        started_at=time_or_none(raw.get("started_at")),
        finished_at=finished,
        merge_request_id=world.merge_request.id if of_merge_request else None,
    )


def _ref(world: World, raw: Raw) -> str:
    """REST names the merge request's own ref; /merge when the pipeline ran on the merged result (facts 1.1)."""
    if raw["ref"].startswith("refs/") or raw.get("source") != "merge_request_event":
        return str(raw["ref"])
    mr = world.merge_request
    pushed = {mr.sha, *(each.id for each in mr.commits)}
    return f"refs/merge-requests/{mr.iid}/{'head' if raw['sha'] in pushed else 'merge'}"


def _job(world: World, case: Case, raw: Raw) -> Job:
    log = raw.get("log")
    return Job(
        id=raw["id"],
        name=raw["name"],
        stage=raw.get("stage", "test"),
        status=raw["status"],
        pipeline_id=raw["pipeline"],
        user_id=_id(world, raw.get("user")),
        created_at=printed(moment(raw["created_at"])),
        started_at=time_or_none(raw.get("started_at")),
        finished_at=time_or_none(raw.get("finished_at")),
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


def _status(world: World, raw: Raw) -> Status:
    created = printed(moment(raw["created_at"]))
    return Status(
        id=raw["id"],
        sha=raw["sha"],
        name=raw["name"],
        status=raw["status"],
        pipeline_id=raw["pipeline"],
        author_id=_id(world, raw.get("author")),
        created_at=created,
        target_url=raw.get("target_url"),
        description=raw.get("description"),
        started_at=time_or_none(raw.get("started_at")) or created,
        finished_at=time_or_none(raw.get("finished_at")),
        allow_failure=raw.get("allow_failure", False),
        retried=raw.get("retried", False),
    )
