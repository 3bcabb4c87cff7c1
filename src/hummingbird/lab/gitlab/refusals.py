"""GitLab's no, in its two dialects: `message` from the application, `error` from the parameter check and OAuth.

facts 2.8. Knows the wording alone; who refuses what is decided elsewhere. Every function makes a Refused to raise.
"""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response


class Refused(Exception):
    """An error answer; `body` is JSON, or text if it is a string."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = dict(headers or {})

    def response(self) -> Response:
        if isinstance(self.body, str):
            return Response(self.body, self.status, self.headers, "text/plain")
        return Response(json.dumps(self.body), self.status, self.headers, "application/json")


def said(status: int, message: Any) -> Refused:
    """The application's dialect."""
    return Refused(status, {"message": message})


def unauthorized() -> Refused:
    return said(401, "401 Unauthorized")


def invalid_token() -> Refused:
    words = "Token was revoked. You have to re-authorize from the user."
    return Refused(401, {"error": "invalid_token", "error_description": words})


def insufficient_scope(*wanted: str) -> Refused:
    words = "The request requires higher privileges than provided by the access token."
    return Refused(403, {"error": "insufficient_scope", "error_description": words, "scope": " ".join(wanted)})


def forbidden(reason: str = "") -> Refused:
    return said(403, f"403 Forbidden{f' - {reason}' if reason else ''}")


def not_found(what: str = "") -> Refused:
    """A record: `404 Project Not Found` with a name, `404 Not found` without."""
    return said(404, f"404 {what} Not Found" if what else "404 Not found")


def unknown_route() -> Refused:
    return Refused(404, {"error": "404 Not Found"})


def missing(parameter: str) -> Refused:
    return Refused(400, {"error": f"{parameter} is missing"})


def invalid(parameter: str, why: str = "is invalid") -> Refused:
    return Refused(400, {"error": f"{parameter} {why}"})


def malformed() -> Refused:
    """From what stands before the application: bytes that are no UTF-8, NUL, parameters that contradict each other."""
    return Refused(400, "Bad Request")


def unparsable() -> Refused:
    return Refused(400, {"error": "The request body could not be parsed. Please check if it is valid JSON."})


def unsupported(kind: str) -> Refused:
    return Refused(415, {"error": f"The provided content-type '{kind}' is not supported."})


def exactly_one(*parameters: str) -> Refused:
    """None or several of which one is wanted."""
    words = "are missing, exactly one parameter must be provided"
    return Refused(400, {"error": f"{', '.join(parameters)} {words}"})


def bad_request(reason: str) -> Refused:
    return said(400, f"400 Bad request - {reason}")


def invalid_record(faults: Mapping[str, list[str]], status: int = 400) -> Refused:
    """Webhooks are refused with 422, all others with 400."""
    return said(status, dict(faults))


def locked() -> Refused:
    """python-gitlab retries this one, by the reason phrase (facts 3)."""
    return said(409, "409 Conflict: Resource lock")


def moved_project() -> Refused:
    return said(405, "Non GET methods are not allowed for moved projects")


def limited() -> Refused:
    """The application's limiter: JSON, and no Retry-After (facts 2.8)."""
    return said(429, {"error": "This endpoint has been requested too many times. Try again later."})


def archive_limited() -> Refused:
    return said(429, {"error": "This archive has been requested too many times. Try again later."})


def server_error() -> Refused:
    return said(500, "500 Internal Server Error")
