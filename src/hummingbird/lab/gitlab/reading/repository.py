"""GET: commits, branches, files, comparisons and archives.

facts 2.7.
"""

import base64
import hashlib
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes, shapes_ci, shapes_merge_request
from hummingbird.lab.gitlab.paging import paged
from hummingbird.lab.gitlab.records import Commit, MergeRequest, Project, Raw
from hummingbird.lab.gitlab.repository import KINDS, archived, blob_id, wanted
from hummingbird.lab.gitlab.routing import flag, get, many, shown
from hummingbird.lab.gitlab.store import World

ARCHIVES_A_MINUTE = 5
_REPOSITORY = "/projects/{id}/repository"


def routes(world: World) -> list[Route]:
    return [
        get(world, f"{_REPOSITORY}/commits/{{sha}}", commit),
        get(world, f"{_REPOSITORY}/commits/{{sha}}/merge_requests", commit_merge_requests),
        get(world, f"{_REPOSITORY}/branches", branches),
        get(world, f"{_REPOSITORY}/branches/{{branch}}", branch),
        get(world, f"{_REPOSITORY}/files/{{path}}/raw", raw_file),
        get(world, f"{_REPOSITORY}/files/{{path}}", file),
        get(world, f"{_REPOSITORY}/compare", compare),
        get(world, f"{_REPOSITORY}/archive", archive),
        get(world, f"{_REPOSITORY}/archive.{{kind}}", archive),
    ]


def found(world: World, request: Request) -> tuple[access.Caller, Project]:
    """Raises Refused: a private project's guests may not read its code."""
    caller = access.asking(world, request)
    project = access.project(world, request, caller)
    if project.visibility == "private" and not access.at_least(world, caller, project, access.REPORTER):
        raise refusals.forbidden()
    return caller, project


def heads(world: World, project: Project) -> dict[str, str]:
    """Branches with their commits."""
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


def resolved(world: World, project: Project, ref: str) -> Commit | None:
    """By sha, whole or short, by branch, or by a merge request's own ref; HEAD is the default branch."""
    if ref == "HEAD":
        ref = project.default_branch
    own = {f"refs/merge-requests/{mr.iid}/head": mr.sha for mr in world.merge_requests if mr.project_id == project.id}
    sha = heads(world, project).get(ref.removeprefix("refs/heads/")) or own.get(ref) or ref
    if sha in world.commits:
        return world.commits[sha]
    return next((each for each in world.commits.values() if len(sha) >= 7 and each.id.startswith(sha)), None)


def at_head(world: World, one: Commit) -> bool:
    """Whether the case's own files are this commit's; before the merge request they were others."""
    mr = world.merge_requests[0] if world.merge_requests else None
    if mr is None:
        return True
    targets = {each.sha for each in world.pipelines if each.ref == mr.target_branch} - {mr.sha}
    return one.id not in {mr.base_sha, mr.start_sha, *targets}


def commit(world: World, request: Request) -> Response:
    _caller, project = found(world, request)
    one = resolved(world, project, access.segment(request, "sha"))
    if one is None:
        raise refusals.not_found("Commit")
    texts = [each.diff for mr in world.merge_requests for each in mr.files if mr.sha == one.id]
    lines = [line for text in texts for line in text.splitlines()]
    added, removed = sum(each.startswith("+") for each in lines), sum(each.startswith("-") for each in lines)
    return shown(shapes_ci.commit_detail(world, project, one, (added, removed)))


def commit_merge_requests(world: World, request: Request) -> Response:
    """Those of this project that hold it, in whatever state they are; a fork's commit is here too, for the merge
    request brought it along."""
    caller, project = found(world, request)
    one = resolved(world, project, access.segment(request, "sha"))
    if one is None:
        raise refusals.not_found("Commit")
    readable = access.reads_merge_requests(world, caller, project)
    rows = [each for each in world.merge_requests if readable and each.project_id == project.id and _holds(each, one)]
    page, headers = paged(world, request, sorted(rows, key=lambda each: -each.id))
    return shown([shapes_merge_request.merge_request_short(world, each) for each in page], headers)


def _holds(mr: MergeRequest, one: Commit) -> bool:
    return one.id == mr.sha or any(each.id == one.id for each in mr.commits)


def branches(world: World, request: Request) -> Response:
    caller, project = found(world, request)
    names = [each for each in sorted(heads(world, project)) if request.query_params.get("search", "") in each]
    page, headers = paged(world, request, names)
    return shown([_branch(world, caller, project, each) for each in page], headers)


def branch(world: World, request: Request) -> Response:
    caller, project = found(world, request)
    name = access.segment(request, "branch")
    if name not in heads(world, project):
        raise refusals.not_found("Branch")
    return shown(_branch(world, caller, project, name))


def _branch(world: World, caller: access.Caller, project: Project, name: str) -> Raw:
    main = name == project.default_branch
    known = world.commits.get(heads(world, project)[name])
    return {
        "name": name,
        "commit": shapes_ci.commit(world, project, known) if known else None,
        "merged": False,
        "protected": main,
        "developers_can_push": False,
        "developers_can_merge": False,
        "can_push": access.at_least(world, caller, project, access.MAINTAINER if main else access.DEVELOPER),
        "default": main,
        "web_url": f"{shapes.web_url(world, project)}/-/tree/{name}",
    }


def _read(world: World, request: Request, ref: str) -> tuple[str, bytes, Commit]:
    """A file at a ref. Raises Refused: no such commit and no such file are told apart (facts 2.7)."""
    _caller, project = found(world, request)
    one = resolved(world, project, ref)
    if one is None:
        raise refusals.not_found("Commit")
    path = access.segment(request, "path")
    content = world.tree.read(path, at_head=at_head(world, one))
    if content is None:
        raise refusals.not_found("File")
    return path, content, one


def _about(world: World, ref: str, path: str, content: bytes, one: Commit) -> Raw:
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
        "execute_filemode": world.tree.executable(path),
    }


def file(world: World, request: Request) -> Response:
    ref = request.query_params.get("ref")
    if not ref:
        raise refusals.invalid("ref is missing, ref", "is empty")
    path, content, one = _read(world, request, ref)
    about = _about(world, ref, path, content, one)
    return shown({**about, "content": base64.b64encode(content).decode()}, _headers(about))


def raw_file(world: World, request: Request) -> Response:
    ref = request.query_params.get("ref") or "HEAD"
    path, content, one = _read(world, request, ref)
    about = _about(world, ref, path, content, one)
    headers = {**_headers(about), "Content-Disposition": _disposition("inline", about["file_name"])}
    return Response(content, 200, headers, "text/plain")


def _headers(about: Raw) -> dict[str, str]:
    """What is said of a file is said in headers too, for HEAD's sake."""
    return {
        "X-Gitlab-" + "-".join(word.capitalize() for word in name.split("_")): _plain(value)
        for name, value in about.items()
    }


def _disposition(kind: str, name: str) -> str:
    """The name in letters that a header holds, and besides as it is where it has others."""
    plain = _plain(name).replace('"', "%22")
    return f'{kind}; filename="{plain}"' + (f"; filename*=UTF-8''{quote(name, safe='')}" if plain != name else "")


def _plain(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.encode("ascii", "replace").decode()


def compare(world: World, request: Request) -> Response:
    """From before the merge request to its head there is something to see, and between commits of which a push has
    said what differs; all else is taken for the same."""
    _caller, project = found(world, request)
    ends = []
    for name in ("from", "to"):
        if name not in request.query_params:
            raise refusals.missing(name)
        end = resolved(world, project, request.query_params[name])
        if end is None:
            raise refusals.not_found("Ref")
        ends.append(end)
    changed = not at_head(world, ends[0]) and at_head(world, ends[1])
    mr = world.merge_requests[0] if changed else None
    files = world.compared.get((ends[0].id, ends[1].id), mr.files if mr else [])
    named = flag(request, "unidiff")
    return shown(
        {
            "commit": shapes_ci.commit(world, project, ends[1]) if mr else None,
            "commits": [shapes_ci.commit(world, project, each) for each in reversed(mr.commits)] if mr else [],
            "diffs": [shapes_merge_request.file_diff(world, file, with_names=named) for file in files],
            "compare_timeout": False,
            "compare_same_ref": ends[0].id == ends[1].id,
            "web_url": f"{shapes.web_url(world, project)}/-/compare/{ends[0].id}...{ends[1].id}",
        }
    )


def archive(world: World, request: Request) -> Response:
    """Five a minute for each person and project; whatever fails is a file that was not found (facts 2.7)."""
    caller, project = found(world, request)
    if not world.allows(f"archive {caller.user.id if caller.user else 0} {project.id}", ARCHIVES_A_MINUTE):
        raise refusals.archive_limited()
    kind = request.path_params.get("kind") or request.query_params.get("format") or "tar.gz"
    ref, below = request.query_params.get("sha") or project.default_branch, request.query_params.get("path", "")
    one = resolved(world, project, ref)
    if one is None or kind not in KINDS:
        raise refusals.not_found("File")
    paths = wanted(world.tree.paths(at_head=at_head(world, one)), below, _left_out(request))
    if not paths:
        raise refusals.not_found("File")
    # the API always adds the sha, also where the ref is the sha itself
    prefix = "-".join([project.path.rsplit("/", 1)[-1], ref, one.id, *([below] if below else [])]).replace("/", "-")
    members = [(path, _content(world, path, one), world.tree.executable(path)) for path in paths]
    disposition = _disposition("attachment", f"{prefix}.{kind}")
    headers = {"Content-Disposition": disposition, "Content-Transfer-Encoding": "binary"}
    return Response(archived(kind, prefix, members), 200, headers, "application/octet-stream")


def _left_out(request: Request) -> list[str]:
    return [each for text in many(request, "exclude_paths") for each in text.split(",") if each]


def _content(world: World, path: str, one: Commit) -> bytes:
    return world.tree.read(path, at_head=at_head(world, one)) or b""
