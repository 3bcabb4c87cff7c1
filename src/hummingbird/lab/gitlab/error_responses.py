"""Build GitLab's error responses, worded like the real ones.

The application puts its text under `message`; the parameter check and OAuth put it under `error`. Each function returns
an exception to raise, or at the end of the module a fault to plan.
"""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hummingbird.lab.fault_injection import FaultResponse, RawResponse


class GitLabErrorResponse(Exception):
    """An error response; `body` is JSON, or plain text if it is a string."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = dict(headers or {})

    def to_response(self) -> Response:
        """Return the HTTP response."""
        if isinstance(self.body, str):
            return Response(self.body, self.status, self.headers, "text/plain")
        return Response(json.dumps(self.body), self.status, self.headers, "application/json")


def message_error(status: int, message: Any) -> GitLabErrorResponse:
    """Return an error in the application's form."""
    return GitLabErrorResponse(status, {"message": message})


def not_authorized() -> GitLabErrorResponse:
    return message_error(401, "401 Unauthorized")


def invalid_token() -> GitLabErrorResponse:
    words = "Token was revoked. You have to re-authorize from the user."
    return GitLabErrorResponse(401, {"error": "invalid_token", "error_description": words})


def insufficient_scope(*wanted: str) -> GitLabErrorResponse:
    words = "The request requires higher privileges than provided by the access token."
    return GitLabErrorResponse(
        403, {"error": "insufficient_scope", "error_description": words, "scope": " ".join(wanted)}
    )


def forbidden(reason: str = "") -> GitLabErrorResponse:
    return message_error(403, f"403 Forbidden{f' - {reason}' if reason else ''}")


def not_found(what: str = "") -> GitLabErrorResponse:
    """Return `404 Project Not Found` with a name, `404 Not found` without."""
    return message_error(404, f"404 {what} Not Found" if what else "404 Not found")


def unknown_route() -> GitLabErrorResponse:
    return GitLabErrorResponse(404, {"error": "404 Not Found"})


def parameter_missing(parameter: str) -> GitLabErrorResponse:
    return GitLabErrorResponse(400, {"error": f"{parameter} is missing"})


def parameter_invalid(parameter: str, why: str = "is invalid") -> GitLabErrorResponse:
    return GitLabErrorResponse(400, {"error": f"{parameter} {why}"})


def not_well_formed() -> GitLabErrorResponse:
    """Return the proxy's error for bytes that are not UTF-8, NUL, or parameters that contradict each other."""
    return GitLabErrorResponse(400, "Bad Request")


def body_not_parsable() -> GitLabErrorResponse:
    return GitLabErrorResponse(
        400, {"error": "The request body could not be parsed. Please check if it is valid JSON."}
    )


def content_type_not_supported(kind: str) -> GitLabErrorResponse:
    return GitLabErrorResponse(415, {"error": f"The provided content-type '{kind}' is not supported."})


def exactly_one_missing(*parameters: str) -> GitLabErrorResponse:
    """Return the error for none or several parameters where exactly one is required."""
    words = "are missing, exactly one parameter must be provided"
    return GitLabErrorResponse(400, {"error": f"{', '.join(parameters)} {words}"})


def bad_request(reason: str) -> GitLabErrorResponse:
    return message_error(400, f"400 Bad request - {reason}")


def invalid_record(faults: Mapping[str, list[str]], status: int = 400) -> GitLabErrorResponse:
    """Return an error for invalid attributes: 422 for webhooks, 400 for everything else."""
    return message_error(status, dict(faults))


def resource_locked() -> GitLabErrorResponse:
    """Return the conflict that python-gitlab retries, which it recognises by the reason phrase."""
    return message_error(409, "409 Conflict: Resource lock")


def project_moved() -> GitLabErrorResponse:
    return message_error(405, "Non GET methods are not allowed for moved projects")


def rate_limit_exceeded() -> GitLabErrorResponse:
    """Return the error of the application's rate limiter: JSON without Retry-After."""
    return message_error(429, {"error": "This endpoint has been requested too many times. Try again later."})


def archive_rate_limit_exceeded() -> GitLabErrorResponse:
    return message_error(429, {"error": "This archive has been requested too many times. Try again later."})


def server_error() -> GitLabErrorResponse:
    return message_error(500, "500 Internal Server Error")


# Faults for tests to plan: what GitLab and the proxy in front of it answer when they fail or limit the rate.


_GATEWAY_TITLES = {
    502: "GitLab is not responding",
    503: "GitLab is under maintenance",
    504: "GitLab took too long to answer",
}


def server_error_fault(status: int = 502) -> FaultResponse:
    """Return a fault: 500 comes from the application as JSON, other statuses from the proxy as a page."""
    if status == 500:
        return FaultResponse(500, server_error().body)
    title = _GATEWAY_TITLES.get(status, "Something went wrong")
    page = f"<!DOCTYPE html>\n<html><head><title>{title} ({status})</title></head></html>\n"
    return FaultResponse(status, page, {"Content-Type": "text/html; charset=utf-8"})


def rack_attack_fault(retry_after_s: int = 30, reset_at: int = 1_609_844_400) -> FaultResponse:
    """Return the fault of the outer rate limiter: plain text, with headers that say when to retry."""
    headers = {
        "Retry-After": str(retry_after_s),
        "RateLimit-Name": "throttle_authenticated_api",
        "RateLimit-Limit": "2000",
        "RateLimit-Observed": "2001",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": str(reset_at),
        "RateLimit-ResetTime": "Tue, 05 Jan 2021 11:00:00 GMT",
    }
    return FaultResponse(429, "Retry later\n", headers)


def rate_limit_fault() -> FaultResponse:
    """Return the fault of the application's rate limiter: JSON that does not say when to retry."""
    return FaultResponse(429, rate_limit_exceeded().body)


def resource_lock_fault() -> RawResponse:
    """Return a conflict with another write: 409 with the reason phrase "Resource lock".

    python-gitlab tells it from other conflicts by that phrase.
    """
    # ASGI has no reason phrase.
    body = json.dumps(resource_locked().body).encode()
    head = (
        "HTTP/1.1 409 Resource lock\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return RawResponse(head.encode() + body)
