"""The endpoints that add and take away emoji, on a merge request and on its notes (facts 2)."""

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes
from hummingbird.lab.gitlab.records import Award, Change, MergeRequest, Note, User
from hummingbird.lab.gitlab.routing import MR, shown, written
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing.notes import place
from hummingbird.lab.gitlab.writing.parameters import parameters, text

EMOJI = re.compile(r"[a-z0-9_+-]+")


def routes(world: World) -> list[Route]:
    return [
        written(world, "POST", f"{MR}/award_emoji", post_award),
        written(world, "DELETE", f"{MR}/award_emoji/{{aid}}", delete_award),
        written(world, "POST", f"{MR}/notes/{{nid}}/award_emoji", post_award),
        written(world, "DELETE", f"{MR}/notes/{{nid}}/award_emoji/{{aid}}", delete_award),
    ]


def awarded(world: World, request: Request) -> tuple[User, MergeRequest | Note]:
    user, caller, project, mr = place(world, request)
    if "nid" not in request.path_params:
        return user, mr
    note = access.note(world, request, caller, project, mr)
    if note.system:
        raise refusals.not_found("Award Emoji")
    return user, note


async def post_award(world: World, request: Request) -> Response:
    """The same one twice is, of all things, a 404."""
    given = await parameters(request)
    user, on = awarded(world, request)
    name = text(given, "name").strip(":")
    if not EMOJI.fullmatch(name):
        raise refusals.not_found("Award Emoji Name is not a valid emoji name")
    if any(each.name == name and each.user_id == user.id for each in on.awards):
        raise refusals.not_found("Award Emoji Name has already been taken")
    award = Award(world.next_id(), name, user.id, world.stamp())
    on.awards.append(award)
    world.tell(changed(world, request, "award", award))
    return shown(shapes.award(world, award, on.id, "Note" if isinstance(on, Note) else "MergeRequest"), status=201)


async def delete_award(world: World, request: Request) -> Response:
    user, on = awarded(world, request)
    wanted = access.number(request, "aid")
    award = next((each for each in on.awards if each.id == wanted), None)
    if award is None:
        raise refusals.not_found("Award Emoji")
    if award.user_id != user.id:
        raise refusals.unauthorized()
    on.awards.remove(award)
    world.tell(changed(world, request, "revoke", award))
    return Response(status_code=204)


def changed(world: World, request: Request, action: str, award: Award) -> Change:
    _, _, project, mr = place(world, request)
    user, on = awarded(world, request)
    return Change("emoji", action, award, user, project, mr, extra={"on": on})
