"""The routes with which maintainers manage webhooks. Secrets are accepted and never shown."""

import base64
import binascii
import uuid
from datetime import UTC, datetime
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, error_responses
from hummingbird.lab.gitlab.records import LabProject, Raw
from hummingbird.lab.gitlab.routing import get_route, json_response, page_with_headers, write_route
from hummingbird.lab.gitlab.webhook_delivery import (
    SIGNING_TOKEN_PREFIX,
    HookDelivery,
    ProjectHook,
    WebhookSender,
    webhook_sender,
)
from hummingbird.lab.gitlab.webhook_events import change_from_declaration, events_for_change
from hummingbird.lab.gitlab.world import GitLabWorld, format_time
from hummingbird.lab.gitlab.write.parameters import bool_parameter, optional_text, read_parameters, text_parameter

HOOKS_PATH = "/projects/{id}/hooks"
EVENT_KINDS = (
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
EVENT_FLAGS = tuple(f"{kind}_events" for kind in EVENT_KINDS)
RESENDS_PER_MINUTE = 5
MAX_HEADERS, TEMPLATE_CHARS = 20, 4_096


def hook_routes(world: GitLabWorld) -> list[Route]:
    return [
        get_route(world, HOOKS_PATH, list_hooks),
        get_route(world, f"{HOOKS_PATH}/{{hook}}", show_hook),
        write_route(world, "POST", HOOKS_PATH, post_hook),
        write_route(world, "PUT", f"{HOOKS_PATH}/{{hook}}", put_hook),
        write_route(world, "DELETE", f"{HOOKS_PATH}/{{hook}}", delete_hook),
        write_route(world, "POST", f"{HOOKS_PATH}/{{hook}}/test/{{trigger}}", try_hook),
        get_route(world, f"{HOOKS_PATH}/{{hook}}/events", list_deliveries),
        write_route(world, "POST", f"{HOOKS_PATH}/{{hook}}/events/{{delivery}}/resend", resend_delivery),
    ]


def require_maintainer(world: GitLabWorld, request: Request) -> tuple[WebhookSender, LabProject]:
    """Raise GitLabErrorResponse (403) unless the caller is a maintainer."""
    _user, caller = access.require_user(world, request)
    project = access.find_project(world, request, caller)
    if not access.has_access_level(world, caller, project, access.MAINTAINER):
        raise error_responses.forbidden()
    return webhook_sender(world), project


def find_hook(world: GitLabWorld, request: Request) -> tuple[WebhookSender, ProjectHook]:
    hooks, project = require_maintainer(world, request)
    wanted = access.path_number(request, "hook")
    found = next((each for each in hooks.hooks if each.id == wanted and each.project_id == project.id), None)
    if found is None:
        raise error_responses.not_found()
    return hooks, found


def list_hooks(world: GitLabWorld, request: Request) -> Response:
    hooks, project = require_maintainer(world, request)
    page, headers = page_with_headers(world, request, [each for each in hooks.hooks if each.project_id == project.id])
    return json_response([hook_entity(hooks, each) for each in page], headers)


def show_hook(world: GitLabWorld, request: Request) -> Response:
    hooks, found = find_hook(world, request)
    return json_response(hook_entity(hooks, found))


async def post_hook(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    hooks, project = require_maintainer(world, request)
    url = text_parameter(given, "url")
    check_hook(given)
    found = hooks.subscribe(url, project=project)
    if bool_parameter(given, "push_events") is None:
        found.flags.add("push_events")
    update_hook(found, given)
    return json_response(hook_entity(hooks, found), status=201)


async def put_hook(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    hooks, found = find_hook(world, request)
    check_hook(given)
    found.url = optional_text(given, "url") or found.url
    update_hook(found, given)
    return json_response(hook_entity(hooks, found))


async def delete_hook(world: GitLabWorld, request: Request) -> Response:
    hooks, found = find_hook(world, request)
    hooks.hooks.remove(found)
    return Response(status_code=204)


async def try_hook(world: GitLabWorld, request: Request) -> Response:
    """Do as the test button does: send the newest thing of the kind, for a merge request without an action."""
    hooks, found = find_hook(world, request)
    trigger = access.path_segment(request, "trigger")
    newest: dict[str, Raw] = {
        "merge_requests_events": {"kind": "merge_request", "action": ""},
        "pipeline_events": {"kind": "pipeline", "pipeline": max((each.id for each in world.pipelines), default=0)},
        "note_events": {"kind": "note", "note": next((n.id for n in world.merge_request.notes if not n.system), 0)},
    }
    try:
        event = next(events_for_change(world, change_from_declaration(world, newest[trigger]), hooks.release))
    except (KeyError, ValueError, StopIteration):
        raise error_responses.message_error(422, "Ensure the project has something to test with.") from None
    hooks.deliver(found, event, str(uuid.uuid4()))
    return json_response({"message": "201 Created"}, status=201)


def list_deliveries(world: GitLabWorld, request: Request) -> Response:
    hooks, found = find_hook(world, request)
    sent = [each for each in reversed(hooks.deliveries) if each.hook_id == found.id]
    page, headers = page_with_headers(world, request, sent)
    return json_response([delivery_entity(found, each) for each in page], headers)


async def resend_delivery(world: GitLabWorld, request: Request) -> Response:
    hooks, found = find_hook(world, request)
    wanted = access.path_number(request, "delivery")
    sent = next((each for each in hooks.deliveries if each.id == wanted and each.hook_id == found.id), None)
    if sent is None:
        raise error_responses.not_found()
    if not world.allow_call(f"resend {found.id}", RESENDS_PER_MINUTE):
        raise error_responses.rate_limit_exceeded()
    hooks.resend(sent)
    return json_response({"response_status": "pending"}, status=201)


def check_hook(given: Raw) -> None:
    """Raise GitLabErrorResponse for invalid parameters."""
    url = optional_text(given, "url")
    if url is not None and not _is_address(url):
        raise error_responses.GitLabErrorResponse(422, {"error": "Invalid url given"})
    signing = optional_text(given, "signing_token")
    if signing and not (
        signing.startswith(SIGNING_TOKEN_PREFIX) and _is_32_bytes(signing.removeprefix(SIGNING_TOKEN_PREFIX))
    ):
        raise error_responses.invalid_record({"signing_token": ["must be whsec_ followed by base64 of 32 bytes"]}, 422)
    named = given.get("custom_headers") or []
    if not isinstance(named, list) or not all(
        isinstance(each, dict) and {"key", "value"} <= set(each) for each in named
    ):
        raise error_responses.parameter_invalid("custom_headers")
    if len(named) > MAX_HEADERS:
        raise error_responses.invalid_record(
            {"custom_headers": [f"number of headers cannot exceed {MAX_HEADERS}"]}, 422
        )
    if len(optional_text(given, "custom_webhook_template") or "") > TEMPLATE_CHARS:
        words = f"is too long (maximum is {TEMPLATE_CHARS} characters)"
        raise error_responses.invalid_record({"custom_webhook_template": [words]}, 422)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _is_32_bytes(encoded: str) -> bool:
    try:
        return len(base64.b64decode(encoded, validate=True)) == 32
    except binascii.Error:
        return False


def update_hook(found: ProjectHook, given: Raw) -> None:
    for flag in EVENT_FLAGS:
        wanted = bool_parameter(given, flag)
        if wanted is not None:
            (found.flags.add if wanted else found.flags.discard)(flag)
    if "token" in given:
        found.token = optional_text(given, "token") or None
    if "signing_token" in given:
        found.signing_token = optional_text(given, "signing_token") or None
    for each in given.get("custom_headers") or []:
        found.custom_headers[str(each["key"])] = str(each["value"])
    if "custom_webhook_template" in given:
        found.template = optional_text(given, "custom_webhook_template") or None


def hook_entity(hooks: WebhookSender, found: ProjectHook) -> Raw:
    until = found.disabled_until
    return {
        "id": found.id,
        "name": None,
        "description": None,
        "url": found.url,
        "project_id": found.project_id,
        "created_at": found.created_at,
        **{flag: flag in found.flags for flag in EVENT_FLAGS},
        "push_events_branch_filter": None,
        "branch_filter_strategy": "wildcard",
        "enable_ssl_verification": True,
        "custom_webhook_template": found.template,
        "custom_headers": [{"key": key} for key in found.custom_headers],
        "url_variables": [],
        "repository_update_events": False,
        "alert_status": found.alert_status(hooks.clock()),
        "disabled_until": format_time(datetime.fromtimestamp(until, UTC)) if until else None,
        "token_present": found.token is not None,
        "signing_token_present": found.signing_token is not None,
    }


def delivery_entity(hook: ProjectHook, found: HookDelivery) -> Raw:
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
