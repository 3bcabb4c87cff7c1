"""GET routes: commits, branches, files, comparisons and archives."""

import base64
import hashlib
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, entities, error_responses, merge_request_entities
from hummingbird.lab.gitlab.records import Commit, LabMergeRequest, LabProject, Raw
from hummingbird.lab.gitlab.repository import ARCHIVE_KINDS, blob_id, build_archive, select_paths
from hummingbird.lab.gitlab.routing import get_route, json_response, page_with_headers, query_flag, query_list
from hummingbird.lab.gitlab.world import GitLabWorld

ARCHIVES_A_MINUTE = 5
_REPOSITORY = "/projects/{id}/repository"


def repository_routes(world: GitLabWorld) -> list[Route]:
    return [
        get_route(world, f"{_REPOSITORY}/commits/{{sha}}", commit),
        get_route(world, f"{_REPOSITORY}/commits/{{sha}}/merge_requests", commit_merge_requests),
        get_route(world, f"{_REPOSITORY}/branches", branches),
        get_route(world, f"{_REPOSITORY}/branches/{{branch}}", branch),
        get_route(world, f"{_REPOSITORY}/files/{{path}}/raw", raw_file),
        get_route(world, f"{_REPOSITORY}/files/{{path}}", file),
        get_route(world, f"{_REPOSITORY}/compare", compare),
        get_route(world, f"{_REPOSITORY}/archive", archive),
        get_route(world, f"{_REPOSITORY}/archive.{{kind}}", archive),
    ]


def find_code_project(world: GitLabWorld, request: Request) -> tuple[access.ApiCaller, LabProject]:
    """Find the project. Raises GitLabErrorResponse: guests of a private project may not read its code."""
    caller = access.authenticate(world, request)
    project = access.find_project(world, request, caller)
    if project.visibility == "private" and not access.has_access_level(world, caller, project, access.REPORTER):
        raise error_responses.forbidden()
    return caller, project


def branch_heads(world: GitLabWorld, project: LabProject) -> dict[str, str]:
    """Return the branches with their commits."""
    known: dict[str, str] = {}
    for pipeline in reversed(world.pipelines_of(project)):
        if pipeline.merge_request_id is None and not pipeline.tag:
            known[pipeline.ref] = pipeline.sha
    for mr in world.merge_requests:
        if mr.project_id == project.id and mr.base_sha:
            known.setdefault(mr.target_branch, mr.start_sha or mr.base_sha)
        if mr.source_project_id == project.id and mr.sha:
            known[mr.source_branch] = mr.sha
    return known


def resolve_ref(world: GitLabWorld, project: LabProject, ref: str) -> Commit | None:
    """Find a commit by full or short sha, branch, or merge request ref; HEAD is the default branch."""
    if ref == "HEAD":
        ref = project.default_branch
    own = {f"refs/merge-requests/{mr.iid}/head": mr.sha for mr in world.merge_requests if mr.project_id == project.id}
    sha = branch_heads(world, project).get(ref.removeprefix("refs/heads/")) or own.get(ref) or ref
    if sha in world.commits:
        return world.commits[sha]
    return next((each for each in world.commits.values() if len(sha) >= 7 and each.id.startswith(sha)), None)


def is_at_head(world: GitLabWorld, one: Commit) -> bool:
    """Tell whether the commit has the case's own files; commits before the merge request have others."""
    mr = world.merge_requests[0] if world.merge_requests else None
    if mr is None:
        return True
    targets = {each.sha for each in world.pipelines if each.ref == mr.target_branch} - {mr.sha}
    return one.id not in {mr.base_sha, mr.start_sha, *targets}


def commit(world: GitLabWorld, request: Request) -> Response:
    _caller, project = find_code_project(world, request)
    one = resolve_ref(world, project, access.path_segment(request, "sha"))
    if one is None:
        raise error_responses.not_found("Commit")
    texts = [each.diff for mr in world.merge_requests for each in mr.files if mr.sha == one.id]
    lines = [line for text in texts for line in text.splitlines()]
    added, removed = sum(each.startswith("+") for each in lines), sum(each.startswith("-") for each in lines)
    return json_response(entities.commit_detail(world, project, one, (added, removed)))


def commit_merge_requests(world: GitLabWorld, request: Request) -> Response:
    """List the merge requests of this project that contain the commit, in any state.

    A fork's commit is found too, because the merge request brought it along.
    """
    caller, project = find_code_project(world, request)
    one = resolve_ref(world, project, access.path_segment(request, "sha"))
    if one is None:
        raise error_responses.not_found("Commit")
    readable = access.can_read_merge_requests(world, caller, project)
    rows = [
        each
        for each in world.merge_requests
        if readable and each.project_id == project.id and _contains_commit(each, one)
    ]
    page, headers = page_with_headers(world, request, sorted(rows, key=lambda each: -each.id))
    return json_response([merge_request_entities.merge_request_short(world, each) for each in page], headers)


def _contains_commit(mr: LabMergeRequest, one: Commit) -> bool:
    return one.id == mr.sha or any(each.id == one.id for each in mr.commits)


def branches(world: GitLabWorld, request: Request) -> Response:
    caller, project = find_code_project(world, request)
    names = [each for each in sorted(branch_heads(world, project)) if request.query_params.get("search", "") in each]
    page, headers = page_with_headers(world, request, names)
    return json_response([_branch_entity(world, caller, project, each) for each in page], headers)


def branch(world: GitLabWorld, request: Request) -> Response:
    caller, project = find_code_project(world, request)
    name = access.path_segment(request, "branch")
    if name not in branch_heads(world, project):
        raise error_responses.not_found("Branch")
    return json_response(_branch_entity(world, caller, project, name))


def _branch_entity(world: GitLabWorld, caller: access.ApiCaller, project: LabProject, name: str) -> Raw:
    main = name == project.default_branch
    known = world.commits.get(branch_heads(world, project)[name])
    return {
        "name": name,
        "commit": entities.commit(world, project, known) if known else None,
        "merged": False,
        "protected": main,
        "developers_can_push": False,
        "developers_can_merge": False,
        "can_push": access.has_access_level(world, caller, project, access.MAINTAINER if main else access.DEVELOPER),
        "default": main,
        "web_url": f"{entities.web_url(world, project)}/-/tree/{name}",
    }


def _read_file(world: GitLabWorld, request: Request, ref: str) -> tuple[str, bytes, Commit]:
    """Read a file at a ref. Raises GitLabErrorResponse, worded differently for a missing commit and a missing file."""
    _caller, project = find_code_project(world, request)
    one = resolve_ref(world, project, ref)
    if one is None:
        raise error_responses.not_found("Commit")
    path = access.path_segment(request, "path")
    content = world.tree.read(path, at_head=is_at_head(world, one))
    if content is None:
        raise error_responses.not_found("File")
    return path, content, one


def _file_entity(world: GitLabWorld, ref: str, path: str, content: bytes, one: Commit) -> Raw:
    return {
        "file_name": path.rsplit("/", 1)[-1],
        "file_path": path,
        "size": len(content),
        "encoding": "base64",
        "content_sha256": hashlib.sha256(content).hexdigest(),
        "ref": ref,
        "blob_id": blob_id(content),
        "commit_id": one.id,
        "last_commit_id": one.id,
        "execute_filemode": world.tree.is_executable(path),
    }


def file(world: GitLabWorld, request: Request) -> Response:
    ref = request.query_params.get("ref")
    if not ref:
        raise error_responses.parameter_invalid("ref is missing, ref", "is empty")
    path, content, one = _read_file(world, request, ref)
    about = _file_entity(world, ref, path, content, one)
    return json_response({**about, "content": base64.b64encode(content).decode()}, _file_headers(about))


def raw_file(world: GitLabWorld, request: Request) -> Response:
    ref = request.query_params.get("ref") or "HEAD"
    path, content, one = _read_file(world, request, ref)
    about = _file_entity(world, ref, path, content, one)
    headers = {**_file_headers(about), "Content-Disposition": _content_disposition("inline", about["file_name"])}
    return Response(content, 200, headers, "text/plain")


def _file_headers(about: Raw) -> dict[str, str]:
    """Return the fields of the file entity as headers, which HEAD requests need."""
    return {
        "X-Gitlab-" + "-".join(word.capitalize() for word in name.split("_")): _ascii_text(value)
        for name, value in about.items()
    }


def _content_disposition(kind: str, name: str) -> str:
    """Return the header with an ASCII name, and with the full name if it has other characters."""
    plain = _ascii_text(name).replace('"', "%22")
    return f'{kind}; filename="{plain}"' + (f"; filename*=UTF-8''{quote(name, safe='')}" if plain != name else "")


def _ascii_text(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.encode("ascii", "replace").decode()


def compare(world: GitLabWorld, request: Request) -> Response:
    """Compare two commits.

    A case knows the difference between base and head of the merge request, and those that a push declared; all other
    commits count as equal.
    """
    _caller, project = find_code_project(world, request)
    ends = []
    for name in ("from", "to"):
        if name not in request.query_params:
            raise error_responses.parameter_missing(name)
        end = resolve_ref(world, project, request.query_params[name])
        if end is None:
            raise error_responses.not_found("Ref")
        ends.append(end)
    changed = not is_at_head(world, ends[0]) and is_at_head(world, ends[1])
    mr = world.merge_requests[0] if changed else None
    files = world.compared.get((ends[0].id, ends[1].id), mr.files if mr else [])
    named = query_flag(request, "unidiff")
    return json_response(
        {
            "commit": entities.commit(world, project, ends[1]) if mr else None,
            "commits": [entities.commit(world, project, each) for each in reversed(mr.commits)] if mr else [],
            "diffs": [merge_request_entities.file_diff(world, file, with_names=named) for file in files],
            "compare_timeout": False,
            "compare_same_ref": ends[0].id == ends[1].id,
            "web_url": f"{entities.web_url(world, project)}/-/compare/{ends[0].id}...{ends[1].id}",
        }
    )


def archive(world: GitLabWorld, request: Request) -> Response:
    """Return an archive; five per minute for each person and project. Any failure is reported as file not found."""
    caller, project = find_code_project(world, request)
    if not world.allow_call(f"archive {caller.user.id if caller.user else 0} {project.id}", ARCHIVES_A_MINUTE):
        raise error_responses.archive_rate_limit_exceeded()
    kind = request.path_params.get("kind") or request.query_params.get("format") or "tar.gz"
    ref, below = request.query_params.get("sha") or project.default_branch, request.query_params.get("path", "")
    one = resolve_ref(world, project, ref)
    if one is None or kind not in ARCHIVE_KINDS:
        raise error_responses.not_found("File")
    paths = select_paths(world.tree.paths(at_head=is_at_head(world, one)), below, _exclude_patterns(request))
    if not paths:
        raise error_responses.not_found("File")
    # The API always adds the sha, even where the ref is the sha itself.
    prefix = "-".join([project.path.rsplit("/", 1)[-1], ref, one.id, *([below] if below else [])]).replace("/", "-")
    members = [(path, _file_content(world, path, one), world.tree.is_executable(path)) for path in paths]
    disposition = _content_disposition("attachment", f"{prefix}.{kind}")
    headers = {"Content-Disposition": disposition, "Content-Transfer-Encoding": "binary"}
    return Response(build_archive(kind, prefix, members), 200, headers, "application/octet-stream")


def _exclude_patterns(request: Request) -> list[str]:
    return [each for text in query_list(request, "exclude_paths") for each in text.split(",") if each]


def _file_content(world: GitLabWorld, path: str, one: Commit) -> bytes:
    return world.tree.read(path, at_head=is_at_head(world, one)) or b""
