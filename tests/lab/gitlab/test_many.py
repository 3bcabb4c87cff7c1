"""More merge requests than a case has: each is as whole as the case's own."""

from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.case_loader import add_merge_requests, load_world
from hummingbird.lab.gitlab.webhook_events import change_from_declaration, events_for_change


def test_each_copy_has_a_head_a_pipeline_and_jobs_of_its_own() -> None:
    world = load_world(find_case("compiler-error"))
    own = world.merge_request
    runs = add_merge_requests(world, 3)
    copies = world.merge_requests[1:]
    assert [each.iid for each in copies] == [own.iid + 1, own.iid + 2, own.iid + 3]
    assert len({each.sha for each in world.merge_requests} & set(world.commits)) == 4
    assert [each.merge_request_id for each in runs] == [each.id for each in copies]
    assert len({each.id for each in world.jobs}) == len(world.jobs)
    logs = [[job.log for job in world.jobs if job.pipeline_id == run.id and job.status == "failed"] for run in runs]
    assert all(found and found[0] is not None for found in logs)


def test_a_note_on_a_copy_is_on_no_other() -> None:
    world = load_world(find_case("compiler-error"))
    add_merge_requests(world, 2)
    first, second = world.merge_requests[1:]
    world.add_system_note(first, world.users[0], "closed")
    assert (len(first.notes), len(second.notes)) == (1, 0)


def test_the_hook_of_its_pipeline_names_the_copy() -> None:
    world = load_world(find_case("compiler-error"))
    (run,) = add_merge_requests(world, 1)
    (event,) = events_for_change(world, change_from_declaration(world, {"kind": "pipeline", "pipeline": run.id}))
    assert event.payload["merge_request"]["iid"] == world.merge_requests[1].iid
    assert event.payload["object_attributes"]["sha"] == world.merge_requests[1].sha
