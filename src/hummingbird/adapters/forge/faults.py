"""What went wrong with a request to GitLab, as errors of ours with sentences for whoever runs this. Sends nothing."""

from dataclasses import dataclass
from typing import Any

import anyio
import httpx2

from hummingbird.adapters.forge.answers import Answer
from hummingbird.domain.errors import (
    CredentialRefused,
    ForgeBusy,
    ForgeDown,
    ForgeError,
    ForgeMissing,
    ForgeRefused,
    HummingbirdError,
    WriteUncertain,
)
from hummingbird.domain.text import shortened

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
# What httpx2 lets through of the layers below it, when it reads or closes
_BELOW = (OSError, anyio.BrokenResourceError, anyio.BusyResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
LOST = (httpx2.HTTPError, httpx2.StreamError, *_BELOW)
# The last two are what becomes of a host name and a port that no socket takes
NOWHERE = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError, ExceptionGroup)


@dataclass(frozen=True, slots=True)
class Asked:
    """`what` begins a sentence: "The thread". `repeatable`: it does no more when it is done twice. `fine`: statuses
    that are no errors here."""

    what: str
    method: str
    path: str
    params: dict[str, str | int]
    body: dict[str, Any] | None
    repeatable: bool
    fine: tuple[int, ...] = ()

    @property
    def writes(self) -> bool:
        return self.method != "GET"


def down(asked: Asked, why: str) -> ForgeDown:
    """GitLab did nothing."""
    return ForgeDown(f"{asked.what} could not be {_done(asked)} GitLab: {why}. It is tried again later.")


def busy(asked: Asked) -> ForgeBusy:
    """GitLab did nothing, and would do it another time."""
    limit = "it limits how often it may be asked"
    return ForgeBusy(f"{asked.what} could not be {_done(asked)} GitLab: {limit}. It is tried again later.")


def lost(asked: Asked, why: str) -> ForgeError:
    """Nobody saw what GitLab did."""
    if not asked.writes:
        return down(asked, why)
    return WriteUncertain(
        f"{asked.what} may have been written to GitLab or not: {why}. Look whether it is there before writing it again."
    )


def untrusted(asked: Asked) -> ForgeDown:
    return down(asked, "its certificate is not trusted; set ca_bundle to your authority's certificates")


def nowhere(error: Exception) -> ForgeRefused:
    return ForgeRefused(
        f"The configured address of GitLab is not one ({type(error).__name__}): write it like https://gitlab.example."
    )


def refused(asked: Asked, answer: Answer, project: str) -> HummingbirdError:
    """For a status from 300 to 499."""
    quoted = f" (GitLab said: {answer.said})" if answer.said else ""
    if answer.status == 401:
        return CredentialRefused(
            f"GitLab does not take the token that writes to {project}: it is wrong, expired or revoked. Make a new one "
            "and put it into the orchestrator token's variable."
        )
    if answer.status == 403 and "insufficient_scope" in answer.said:
        return CredentialRefused(
            f"The token that writes to {project} lacks the scope api: make one that has it and put it into the "
            "orchestrator token's variable."
        )
    if answer.status == 404:
        return ForgeMissing(f"{asked.what} was not found: it does not exist, or the bot may not see it{quoted}.")
    if answer.status < 400:
        return ForgeRefused(
            f"{asked.what} is said to be elsewhere, and the token is not taken there: check the configured address of "
            f"GitLab, and whether {project} was moved."
        )
    advice = "check the bot's role in the project" if answer.status == 403 else "it would be refused again"
    return ForgeRefused(f"{asked.what} was refused with status {answer.status}{quoted}: {advice}.")


def why(error: Exception) -> str:
    return shortened(str(error) or type(error).__name__, 200)


def _done(asked: Asked) -> str:
    return "written to" if asked.writes else "read from"
