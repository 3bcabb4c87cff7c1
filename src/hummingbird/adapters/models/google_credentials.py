"""Google access tokens from Application Default Credentials, for Vertex.

The only door to google-auth. Its refresh blocks, so it runs in a thread; a token is kept until shortly before it
expires, and however many calls want a new one, one refresh is under way. Knows nothing of models or projects.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Any, TypeAlias

from hummingbird.domain.errors import CredentialRefused, HummingbirdError, MissingSetting, Unavailable
from hummingbird.domain.limits import ERROR_TEXT_CHARS, TOKEN_MARGIN_S
from hummingbird.domain.text import plain, shortened

SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class Token:
    """`expires_at` in seconds since the epoch; None: it does not expire."""

    text: str
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"Token(…, expires_at={self.expires_at})"


Load: TypeAlias = Callable[[], Token]


def application_default(ca_bundle: str | None = None) -> Token:
    """A fresh token. Blocks. Credentials are looked up every time: a new login is seen by the next refresh.
    `ca_bundle`: a file with the certificates to trust; without one, as the environment says.

    Raises MissingSetting, CredentialRefused or Unavailable.
    """
    import google.auth  # noqa: PLC0415 - 0.2 s that only Vertex needs
    import google.auth.exceptions as refused  # noqa: PLC0415 - likewise
    from google.auth.transport.requests import Request  # noqa: PLC0415 - likewise

    try:
        credentials, _ = google.auth.default(scopes=[SCOPE])
        credentials.refresh(Request(_trusting(ca_bundle)))  # type: ignore[no-untyped-call]  # google-auth types only a part of itself
    except refused.DefaultCredentialsError as error:
        raise MissingSetting(
            "No Google credentials were found for Vertex: run `gcloud auth application-default login`, or set "
            f"GOOGLE_APPLICATION_CREDENTIALS to a credentials file ({_quoted(error)})."
        ) from error
    except refused.GoogleAuthError as error:
        raise _refusal(error, passing=_passing(error)) from error
    except (OSError, ValueError) as error:  # a file that cannot be read, a key that is none
        raise MissingSetting(
            "The Google credentials for Vertex cannot be used: check the file that GOOGLE_APPLICATION_CREDENTIALS "
            f"names ({_quoted(error)})."
        ) from error
    if not credentials.token:
        raise CredentialRefused("Google's credentials gave no access token: log in again or check the service account.")
    expiry = credentials.expiry
    return Token(str(credentials.token), expiry.replace(tzinfo=UTC).timestamp() if expiry else None)


def _trusting(ca_bundle: str | None) -> Any:
    """A session for google-auth, None for its own. What is set in `verify` of a session loses against
    REQUESTS_CA_BUNDLE; what is said with each request wins."""
    if ca_bundle is None:
        return None
    from requests import Session  # noqa: PLC0415 - likewise

    session = Session()
    session.request = partial(session.request, verify=ca_bundle)  # type: ignore[method-assign]
    return session


class GoogleTokens:
    """Fulfils endpoints.TokenSource. `now` is the wall clock; `load` blocks and is called in a thread."""

    def __init__(self, now: Callable[[], float], load: Load = application_default) -> None:
        self._now = now
        self._load = load
        self._token: Token | None = None
        self._loading: asyncio.Task[Token] | None = None

    async def token(self) -> str:
        held = self._token
        if held is None or self._stale(held):
            held = await self._renewed()
        return held.text

    async def refresh(self) -> bool:
        try:
            await self._renewed()
        except HummingbirdError:
            return False
        return True

    def _stale(self, token: Token) -> bool:
        return token.expires_at is not None and self._now() >= token.expires_at - TOKEN_MARGIN_S

    async def _renewed(self) -> Token:
        """Shielded: whoever gives up waiting does not take the token away from the others."""
        loading = self._loading
        if loading is None or loading.done() or loading.get_loop() is not asyncio.get_running_loop():
            loading = self._loading = asyncio.create_task(asyncio.to_thread(self._load))
            loading.add_done_callback(self._keep)
        return await asyncio.shield(loading)

    def _keep(self, loading: asyncio.Task[Token]) -> None:
        if not loading.cancelled() and loading.exception() is None:
            self._token = loading.result()


def _passing(error: Exception) -> bool:
    """Whether trying again may help: google-auth says so, or the network was at fault underneath."""
    import google.auth.exceptions as refused  # noqa: PLC0415 - imported already when there is an error

    network = (refused.TransportError, refused.TimeoutError, refused.ResponseError)
    return (
        bool(getattr(error, "retryable", False)) or isinstance(error, network) or isinstance(error.__cause__, network)
    )


def _refusal(error: Exception, *, passing: bool) -> HummingbirdError:
    if passing:
        return Unavailable(f"Google's token service could not be asked: {_quoted(error)}")
    return CredentialRefused(
        "Google refused to renew the access token: log in again (`gcloud auth application-default login`) or check "
        f"the service account ({_quoted(error)})."
    )


def _quoted(error: Exception) -> str:
    return shortened(plain(str(error)), ERROR_TEXT_CHARS)
