"""All that writes, for the application to serve. Knows the rooms, no endpoint."""

from starlette.routing import Route

from hummingbird.lab.gitlab import (
    writing_awards,
    writing_drafts,
    writing_hooks,
    writing_merge_requests,
    writing_notes,
    writing_runs,
)
from hummingbird.lab.gitlab.hooks import hooks_of
from hummingbird.lab.gitlab.store import World

ROOMS = (writing_notes, writing_awards, writing_drafts, writing_runs, writing_merge_requests, writing_hooks)


def routes(world: World) -> list[Route]:
    """From now on the world's webhooks listen as well."""
    hooks_of(world)
    return [route for room in ROOMS for route in room.routes(world)]
