"""Pipelines and statuses of the case's head, as build services report them; every turn of a pipeline is told."""

from hummingbird.lab.gitlab.records import Pipeline
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.ci import StatusReport, finish_pipeline, retry_pipeline, store_status
from tests.journeys.service.stage import Stage

ANOTHER = 555_001
BUILD = "Konflux / build"


def external(stage: Stage, state: str, pipeline: int | None = None, by: str = "") -> None:
    """An external status on the head, of the merge request's author unless it is `by` somebody else. Without a pipeline
    it goes to the newest one of the commit, or makes one."""

    def told(world: GitLabWorld) -> None:
        head, author = world.merge_request.sha, world.user(world.merge_request.author_id)
        if by:
            author = next(each for each in world.users if each.username == by)
        assert head is not None
        store_status(
            world, world.project, author, StatusReport(sha=head, state=state, name=BUILD, pipeline_id=pipeline)
        )

    stage.ask(told)


def another_pipeline(world: GitLabWorld) -> None:
    """Of external statuses, on the same head."""
    request, now = world.merge_request, world.next_timestamp()
    project, branch, head = request.project_id, request.source_branch, request.sha or ""
    world.pipelines.append(
        Pipeline(ANOTHER, 99, project, head, branch, "external", "created", request.author_id, now, now)
    )


def retried_and_green(stage: Stage) -> None:
    """The pipeline of the case succeeds when it is run again."""

    def told(world: GitLabWorld) -> None:
        run = world.find_pipeline(stage.scene.case.description["event"]["pipeline"])
        assert run is not None
        retry_pipeline(world, run, world.user(run.user_id))
        finish_pipeline(world, run, "success")

    stage.ask(told)
