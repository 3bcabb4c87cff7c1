"""A planned fault that only writes meet: GitLab's refusal because somebody else writes at the same moment.

world.faults.next(Locked(), method="POST", path="*/statuses/*")
"""

import json
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.gitlab.faults import Answered
from hummingbird.lab.gitlab.refusals import locked
from hummingbird.lab.planned import gone
from hummingbird.lab.serving import TRANSPORT


@dataclass(frozen=True, slots=True)
class Locked(Answered):
    """409 with the reason phrase "Resource lock", by which python-gitlab tells it from other conflicts (facts 3)."""

    status: int = 409
    body: Any = field(default_factory=lambda: locked().body)

    async def play(self, _inner: ASGIApp, scope: Scope, receive: Receive, _send: Send) -> None:
        # ASGI knows no reason phrase, so the answer is put on the connection by hand
        body = json.dumps(self.body).encode()
        head = (
            "HTTP/1.1 409 Resource lock\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        scope[TRANSPORT].write(head.encode() + body)
        scope[TRANSPORT].close()
        await gone(receive)
