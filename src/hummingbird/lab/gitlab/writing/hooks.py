"""The endpoints with which a project's maintainers manage its webhooks. Secrets are taken and never shown (facts 1)."""

import base64
import binascii
import uuid
from datetime import UTC, datetime
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals
from hummingbird.lab.gitlab.hooks.payloads import declared_change, events
from hummingbird.lab.gitlab.hooks.sending import Delivery, Hook, Hooks, hooks_of
from hummingbird.lab.gitlab.hooks.signing import PREFIX
from hummingbird.lab.gitlab.paging import paged
from hummingbird.lab.gitlab.records import Project, Raw
from hummingbird.lab.gitlab.routing import get, shown, written
from hummingbird.lab.gitlab.store import World, printed
from hummingbird.lab.gitlab.writing.parameters import parameters, text, text_or_none, truth

HOOKS = "/projects/{id}/hooks"
KINDS = (
    "push",
    "tag_push",
    "issues",
    "confidential_issues",
    "merge_requests",
    "note",
    "confidential_note",
    "job",
    "pipeline",
    "wiki_page",
    "deployment",
    "releases",
    "milestone",
    "emoji",
    "feature_flag",
    "resource_access_token",
)
FLAGS = tuple(f"{kind}_events" for kind in KINDS)
RESENDS_A_MINUTE = 5
HEADERS_MOST, TEMPLATE_CHARS = 20, 4_096


def routes(world: World) -> list[Route]:
    return [
        get(world, HOOKS, list_hooks),
        get(world, f"{HOOKS}/{{hook}}", show_hook),
        written(world, "POST", HOOKS, post_hook),
        written(world, "PUT", f"{HOOKS}/{{hook}}", put_hook),
        written(world, "DELETE", f"{HOOKS}/{{hook}}", delete_hook),
        written(world, "POST", f"{HOOKS}/{{hook}}/test/{{trigger}}", try_hook),
        get(world, f"{HOOKS}/{{hook}}/events", list_deliveries),
        written(world, "POST", f"{HOOKS}/{{hook}}/events/{{delivery}}/resend", resend),
    ]


def managed(world: World, request: Request) -> tuple[Hooks, Project]:
    """Raises Refused: 403 for those who are no maintainers."""
    _user, caller = access.signed_in(world, request)
    project = access.project(world, request, caller)
    if not access.at_least(world, caller, project, access.MAINTAINER):
        raise refusals.forbidden()
    return hooks_of(world), project


def one(world: World, request: Request) -> tuple[Hooks, Hook]:
    hooks, project = managed(world, request)
    wanted = access.number(request, "hook")
    found = next((each for each in hooks.hooks if each.id == wanted and each.project_id == project.id), None)
    if found is None:
        raise refusals.not_found()
    return hooks, found


def list_hooks(world: World, request: Request) -> Response:
    hooks, project = managed(world, request)
    page, headers = paged(world, request, [each for each in hooks.hooks if each.project_id == project.id])
    return shown([shape(hooks, each) for each in page], headers)


def show_hook(world: World, request: Request) -> Response:
    hooks, found = one(world, request)
    return shown(shape(hooks, found))


async def post_hook(world: World, request: Request) -> Response:
    given = await parameters(request)
    hooks, project = managed(world, request)
    url = text(given, "url")
    checked(given)
    found = hooks.subscribe(url, project=project)
    if truth(given, "push_events") is None:
        found.flags.add("push_events")
    fill(found, given)
    return shown(shape(hooks, found), status=201)


async def put_hook(world: World, request: Request) -> Response:
    given = await parameters(request)
    hooks, found = one(world, request)
    checked(given)
    found.url = text_or_none(given, "url") or found.url
    fill(found, given)
    return shown(shape(hooks, found))


async def delete_hook(world: World, request: Request) -> Response:
    hooks, found = one(world, request)
    hooks.hooks.remove(found)
    return Response(status_code=204)


async def try_hook(world: World, request: Request) -> Response:
    """As the test button does: the newest thing of the kind, and for a merge request no action (facts 1.2)."""
    hooks, found = one(world, request)
    trigger = access.segment(request, "trigger")
    newest: dict[str, Raw] = {
        "merge_requests_events": {"kind": "merge_request", "action": ""},
        "pipeline_events": {"kind": "pipeline", "pipeline": max((each.id for each in world.pipelines), default=0)},
        "note_events": {"kind": "note", "note": next((n.id for n in world.merge_request.notes if not n.system), 0)},
    }
    try:
        event = next(events(world, declared_change(world, newest[trigger]), hooks.release))
    except (KeyError, ValueError, StopIteration):
        raise refusals.said(422, "Ensure the project has something to test with.") from None
    hooks.deliver(found, event, str(uuid.uuid4()))
    return shown({"message": "201 Created"}, status=201)


def list_deliveries(world: World, request: Request) -> Response:
    hooks, found = one(world, request)
    sent = [each for each in reversed(hooks.deliveries) if each.hook_id == found.id]
    page, headers = paged(world, request, sent)
    return shown([delivery_shape(found, each) for each in page], headers)


async def resend(world: World, request: Request) -> Response:
    hooks, found = one(world, request)
    wanted = access.number(request, "delivery")
    sent = next((each for each in hooks.deliveries if each.id == wanted and each.hook_id == found.id), None)
    if sent is None:
        raise refusals.not_found()
    if not world.allows(f"resend {found.id}", RESENDS_A_MINUTE):
        raise refusals.limited()
    hooks.resend(sent)
    return shown({"response_status": "pending"}, status=201)


def checked(given: Raw) -> None:
    """Raises Refused for what cannot be used."""
    url = text_or_none(given, "url")
    if url is not None and not _address(url):
        raise refusals.Refused(422, {"error": "Invalid url given"})
    signing = text_or_none(given, "signing_token")
    if signing and not (signing.startswith(PREFIX) and _thirty_two_bytes(signing.removeprefix(PREFIX))):
        raise refusals.invalid_record({"signing_token": ["must be whsec_ followed by base64 of 32 bytes"]}, 422)
    named = given.get("custom_headers") or []
    if not isinstance(named, list) or not all(
        isinstance(each, dict) and {"key", "value"} <= set(each) for each in named
    ):
        raise refusals.invalid("custom_headers")
    if len(named) > HEADERS_MOST:
        raise refusals.invalid_record({"custom_headers": [f"number of headers cannot exceed {HEADERS_MOST}"]}, 422)
    if len(text_or_none(given, "custom_webhook_template") or "") > TEMPLATE_CHARS:
        words = f"is too long (maximum is {TEMPLATE_CHARS} characters)"
        raise refusals.invalid_record({"custom_webhook_template": [words]}, 422)


def _address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _thirty_two_bytes(encoded: str) -> bool:
    try:
        return len(base64.b64decode(encoded, validate=True)) == 32
    except binascii.Error:
        return False


def fill(found: Hook, given: Raw) -> None:
    for flag in FLAGS:
        wanted = truth(given, flag)
        if wanted is not None:
            (found.flags.add if wanted else found.flags.discard)(flag)
    if "token" in given:
        found.token = text_or_none(given, "token") or None
    if "signing_token" in given:
        found.signing_token = text_or_none(given, "signing_token") or None
    for each in given.get("custom_headers") or []:
        found.custom_headers[str(each["key"])] = str(each["value"])
    if "custom_webhook_template" in given:
        found.template = text_or_none(given, "custom_webhook_template") or None


def shape(hooks: Hooks, found: Hook) -> Raw:
    until = found.resting_until
    return {
        "id": found.id,
        "name": None,
        "description": None,
        "url": found.url,
        "project_id": found.project_id,
        "created_at": found.created_at,
        **{flag: flag in found.flags for flag in FLAGS},
        "push_events_branch_filter": None,
        "branch_filter_strategy": "wildcard",
        "enable_ssl_verification": True,
        "custom_webhook_template": found.template,
        "custom_headers": [{"key": key} for key in found.custom_headers],
        "url_variables": [],
        "repository_update_events": False,
        "alert_status": found.alert(hooks.clock()),
        "disabled_until": printed(datetime.fromtimestamp(until, UTC)) if until else None,
        "token_present": found.token is not None,
        "signing_token_present": found.signing_token is not None,
    }


def delivery_shape(hook: Hook, found: Delivery) -> Raw:
    secret = ("X-Gitlab-Token", "webhook-signature")
    return {
        "id": found.id,
        "url": hook.url,
        "trigger": found.event.lower().removesuffix(" hook").replace(" ", "_"),
        "request_headers": {key: value for key, value in found.headers.items() if key not in secret},
        "request_data": found.body.decode(),
        "response_status": str(found.status) if found.status is not None else "internal error",
        "response_body": "",
    }
