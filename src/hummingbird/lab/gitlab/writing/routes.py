"""All that writes, for the application to serve. Knows the rooms, no endpoint."""

from starlette.routing import Route

from hummingbird.lab.gitlab.hooks.sending import hooks_of
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing import awards, drafts, merge_requests, notes, runs
from hummingbird.lab.gitlab.writing import hooks as subscriptions

ROOMS = (notes, awards, drafts, runs, merge_requests, subscriptions)


def routes(world: World) -> list[Route]:
    """From now on the world's webhooks listen as well."""
    hooks_of(world)
    return [route for room in ROOMS for route in room.routes(world)]
