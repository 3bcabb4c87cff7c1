"""GET: threads, notes and emoji of a merge request.

facts 2.3. Pages are cut before what the reader may not see is taken out, so a page can be short and totals too high.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes
from hummingbird.lab.gitlab.paging import paged
from hummingbird.lab.gitlab.reading import merge_requests
from hummingbird.lab.gitlab.records import Award, MergeRequest, Project
from hummingbird.lab.gitlab.routing import MR, ORDERS, get, picked, shown
from hummingbird.lab.gitlab.store import World

_KEYS = ("created_at", "updated_at")
_FILTERS = ("all_notes", "only_comments", "only_activity")


def routes(world: World) -> list[Route]:
    return [
        get(world, f"{MR}/discussions", discussions),
        get(world, f"{MR}/discussions/{{did}}", discussion),
        get(world, f"{MR}/discussions/{{did}}/notes", discussion_notes),
        get(world, f"{MR}/discussions/{{did}}/notes/{{nid}}", note),
        get(world, f"{MR}/notes", notes),
        get(world, f"{MR}/notes/{{nid}}", note),
        get(world, f"{MR}/notes/{{nid}}/award_emoji", note_awards),
        get(world, f"{MR}/notes/{{nid}}/award_emoji/{{aid}}", note_award),
        get(world, f"{MR}/award_emoji", merge_request_awards),
    ]


def found(world: World, request: Request) -> tuple[access.Caller, Project, MergeRequest]:
    """Where the notes are. Raises Refused: a merge request that the caller may not read is not found here."""
    return merge_requests.found(world, request, refusals.not_found)


def discussions(world: World, request: Request) -> Response:
    caller, project, mr = found(world, request)
    rows = sorted(mr.discussions, key=lambda each: (each.notes[0].created_at, each.notes[0].id))
    page, headers = paged(world, request, rows)
    shown_ones = []
    for each in page:
        kept = [note for note in each.notes if access.readable(world, caller, project, note)]
        if kept:
            shown_ones.append(shapes.discussion(world, mr, each, kept))
    return shown(shown_ones, headers)


def discussion(world: World, request: Request) -> Response:
    caller, project, mr = found(world, request)
    one = access.discussion(world, request, caller, project, mr)
    kept = [note for note in one.notes if access.readable(world, caller, project, note)]
    return shown(shapes.discussion(world, mr, one, kept))


def discussion_notes(world: World, request: Request) -> Response:
    """Not a page: all of them at once."""
    caller, project, mr = found(world, request)
    one = access.discussion(world, request, caller, project, mr)
    return shown([shapes.note(world, mr, each) for each in one.notes])


def notes(world: World, request: Request) -> Response:
    caller, project, mr = found(world, request)
    chosen = picked(request, "activity_filter", _FILTERS, "all_notes")
    key, order = picked(request, "order_by", _KEYS, "created_at"), picked(request, "sort", ORDERS, "desc")
    rows = [each for each in mr.notes if chosen == "all_notes" or each.system == (chosen == "only_activity")]
    rows.sort(key=lambda each: (getattr(each, key), each.id), reverse=order == "desc")
    page, headers = paged(world, request, rows)
    return shown(
        [shapes.note(world, mr, each) for each in page if access.readable(world, caller, project, each)], headers
    )


def note(world: World, request: Request) -> Response:
    caller, project, mr = found(world, request)
    return shown(shapes.note(world, mr, access.note(world, request, caller, project, mr)))


def note_awards(world: World, request: Request) -> Response:
    caller, project, mr = found(world, request)
    one = access.note(world, request, caller, project, mr)
    page, headers = paged(world, request, one.awards)
    return shown([shapes.award(world, each, one.id) for each in page], headers)


def note_award(world: World, request: Request) -> Response:
    caller, project, mr = found(world, request)
    one = access.note(world, request, caller, project, mr)
    return shown(shapes.award(world, _award(request, one.awards), one.id))


def _award(request: Request, awards: list[Award]) -> Award:
    wanted = access.number(request, "aid")
    for each in awards:
        if each.id == wanted:
            return each
    raise refusals.not_found("Award Emoji")


def merge_request_awards(world: World, request: Request) -> Response:
    _caller, _project, mr = found(world, request)
    page, headers = paged(world, request, mr.awards)
    return shown([shapes.award(world, each, mr.id, "MergeRequest") for each in page], headers)
