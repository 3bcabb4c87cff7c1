"""What GitLab, and what stands before it, says when it fails or has had enough: faults to plan.

    world.faults.plan("*/notes", server_error(502), method="POST", after_write=True)
    world.faults.plan("*/discussions", rack_attack(retry_after_s=1), times=3)

Knows the wording alone; when a fault happens, and how it gets to the client, lab/planned.py knows.
"""

import json

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.planned import Answer, Raw

_GATEWAY = {
    502: "GitLab is not responding",
    503: "GitLab is under maintenance",
    504: "GitLab took too long to answer",
}


def server_error(status: int = 502) -> Answer:
    """500 comes from the application as JSON; the others come from what stands before it, as a page."""
    if status == 500:
        return Answer(500, refusals.server_error().body)
    title = _GATEWAY.get(status, "Something went wrong")
    page = f"<!DOCTYPE html>\n<html><head><title>{title} ({status})</title></head></html>\n"
    return Answer(status, page, {"Content-Type": "text/html; charset=utf-8"})


def rack_attack(retry_after_s: int = 30, reset_at: int = 1_609_844_400) -> Answer:
    """The outer limiter: plain text, and headers that say when to come back (facts 2.8)."""
    headers = {
        "Retry-After": str(retry_after_s),
        "RateLimit-Name": "throttle_authenticated_api",
        "RateLimit-Limit": "2000",
        "RateLimit-Observed": "2001",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": str(reset_at),
        "RateLimit-ResetTime": "Tue, 05 Jan 2021 11:00:00 GMT",
    }
    return Answer(429, "Retry later\n", headers)


def limiter() -> Answer:
    """The application's limiter: JSON, and not a word about when to come back (facts 2.8)."""
    return Answer(429, refusals.limited().body)


def locked() -> Raw:
    """Somebody else writes at the same moment: 409 with the reason phrase "Resource lock", by which python-gitlab tells
    it from other conflicts (facts 3)."""
    # ASGI knows no reason phrase
    body = json.dumps(refusals.locked().body).encode()
    head = (
        "HTTP/1.1 409 Resource lock\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return Raw(head.encode() + body)
