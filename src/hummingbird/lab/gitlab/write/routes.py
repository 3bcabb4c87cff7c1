"""Collect all routes that write."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, error_responses, merge_request_entities
from hummingbird.lab.gitlab.records import LabMergeRequest, Raw
from hummingbird.lab.gitlab.routing import MERGE_REQUEST_PATH, json_response, write_route
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write import ci, notes, webhooks
from hummingbird.lab.gitlab.write import merge_request_changes as changes
from hummingbird.lab.gitlab.write.merge_request_changes import MergeRequestEdit
from hummingbird.lab.gitlab.write.notes import locate_merge_request
from hummingbird.lab.gitlab.write.parameters import optional_text, parse_int, parse_list, read_parameters

# The route that edits a merge request.


def merge_request_routes(world: GitLabWorld) -> list[Route]:
    return [write_route(world, "PUT", MERGE_REQUEST_PATH, put_merge_request)]


async def put_merge_request(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, _caller, project, mr = locate_merge_request(world, request)
    if user.id != mr.author_id and world.access_level(user, project) < access.DEVELOPER:
        raise error_responses.forbidden()
    event = optional_text(given, "state_event")
    if event not in (None, "close", "reopen"):
        raise error_responses.parameter_invalid("state_event", "does not have a valid value")
    edit = MergeRequestEdit(
        title=optional_text(given, "title"),
        description=optional_text(given, "description"),
        target_branch=optional_text(given, "target_branch"),
        state_event=event,
        labels=labels_after_edit(mr, given),
        assignee_ids=people_parameter(world, given, "assignee_ids"),
        reviewer_ids=people_parameter(world, given, "reviewer_ids"),
    )
    if edit.title is not None and not edit.title.strip():
        raise error_responses.invalid_record({"title": ["can't be blank"]})
    changes.apply_edit(world, mr, user, edit)
    return json_response(merge_request_entities.merge_request(world, mr, user))


def labels_after_edit(mr: LabMergeRequest, given: Raw) -> list[str] | None:
    if not {"labels", "add_labels", "remove_labels"} & set(given):
        return None
    named = parse_list(given.get("labels"))
    found = [*(mr.labels if named is None else named), *(parse_list(given.get("add_labels")) or [])]
    gone = parse_list(given.get("remove_labels")) or []
    return [each for each in dict.fromkeys(found) if each not in gone]


def people_parameter(world: GitLabWorld, given: Raw, name: str) -> list[int] | None:
    """Return the ids of known people; 0 stands for nobody, and unknown ids are ignored."""
    named = parse_list(given.get(name))
    if named is None:
        return None
    known = {each.id for each in world.users}
    wanted = [parse_int(each, name) for each in named]
    return [each for each in wanted if each is not None and each in known]


ROUTE_FACTORIES = (
    notes.note_routes,
    notes.award_routes,
    notes.draft_routes,
    ci.ci_routes,
    merge_request_routes,
    webhooks.hook_routes,
)


def write_routes(world: GitLabWorld) -> list[Route]:
    """Return the routes, and start listening for changes that webhooks report."""
    webhook_sender(world)
    return [route for create_routes in ROUTE_FACTORIES for route in create_routes(world)]
