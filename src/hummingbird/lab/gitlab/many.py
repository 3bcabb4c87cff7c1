"""More merge requests than a case has: copies of its own, each with a head, a failed pipeline and jobs of its own.

For load: a case tells one story, and a burst needs many. Knows records; nothing of HTTP.
"""

import hashlib
from dataclasses import replace

from hummingbird.lab.gitlab.records import Job, MergeRequest, Pipeline
from hummingbird.lab.gitlab.store import World


def more_requests(world: World, number: int) -> list[Pipeline]:
    """The pipelines of the new ones; each has `merge_request_id`. Their logs are the case's."""
    pattern = world.merge_request
    run = next(each for each in world.pipelines if each.merge_request_id == pattern.id)
    jobs = [each for each in world.jobs if each.pipeline_id == run.id]
    first = max(each.iid for each in world.merge_requests) + 1
    return [_added(world, pattern, run, jobs, first + at) for at in range(number)]


def _added(world: World, pattern: MergeRequest, run: Pipeline, jobs: list[Job], iid: int) -> Pipeline:
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
