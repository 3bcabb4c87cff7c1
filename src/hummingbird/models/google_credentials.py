"""Get Google access tokens for Vertex from Application Default Credentials.

This is the only module that uses google-auth. Its refresh blocks, so it runs in a thread. A token is cached until
shortly before it expires, and concurrent calls share one refresh.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Any, TypeAlias

from hummingbird.core.errors import CredentialRefused, HummingbirdError, MissingSetting, ProviderUnavailable
from hummingbird.core.limits import ERROR_TEXT_CHARS, TOKEN_MARGIN_S
from hummingbird.core.text import replace_surrogates, shorten_line

SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class GoogleToken:
    """An access token. `expires_at` is in seconds since the epoch; None means that it does not expire."""

    text: str
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"Token(…, expires_at={self.expires_at})"


LoadToken: TypeAlias = Callable[[], GoogleToken]


def load_application_default(ca_bundle: str | None = None) -> GoogleToken:
    """Get a new token; this blocks. It looks up the credentials each time, so that the next refresh sees a new login.

    `ca_bundle` is a file with the certificates to trust; without it the environment decides. Raises MissingSetting,
    CredentialRefused or ProviderUnavailable.
    """
    import google.auth  # noqa: PLC0415 - 0.2 s that only Vertex needs
    import google.auth.exceptions as refused  # noqa: PLC0415 - likewise
    from google.auth.transport.requests import Request  # noqa: PLC0415 - likewise

    try:
        credentials, _ = google.auth.default(scopes=[SCOPE])
        credentials.refresh(Request(_session_with_ca_bundle(ca_bundle)))  # type: ignore[no-untyped-call]  # google-auth types only a part of itself
    except refused.DefaultCredentialsError as error:
        raise MissingSetting(
            "No Google credentials were found for Vertex: run `gcloud auth application-default login`, or set "
            f"GOOGLE_APPLICATION_CREDENTIALS to a credentials file ({_error_text(error)})."
        ) from error
    except refused.GoogleAuthError as error:
        raise _error_from_google(error, passing=_is_transient(error)) from error
    except (OSError, ValueError) as error:  # an unreadable file, an invalid key
        raise MissingSetting(
            "The Google credentials for Vertex cannot be used: check the file that GOOGLE_APPLICATION_CREDENTIALS "
            f"names ({_error_text(error)})."
        ) from error
    if not credentials.token:
        raise CredentialRefused("Google's credentials gave no access token: log in again or check the service account.")
    expiry = credentials.expiry
    return GoogleToken(str(credentials.token), expiry.replace(tzinfo=UTC).timestamp() if expiry else None)


def _session_with_ca_bundle(ca_bundle: str | None) -> Any:
    """Create a session for google-auth that trusts `ca_bundle`; return None to use its own.

    REQUESTS_CA_BUNDLE overrides `Session.verify`, but not `verify` of a single request.
    """
    if ca_bundle is None:
        return None
    from requests import Session  # noqa: PLC0415 - likewise

    session = Session()
    session.request = partial(session.request, verify=ca_bundle)  # type: ignore[method-assign]
    return session


class GoogleTokenSource:
    """A `TokenSource` that caches Google tokens. `now` is the wall clock; `load` blocks and is called in a thread."""

    def __init__(self, now: Callable[[], float], load: LoadToken = load_application_default) -> None:
        self._now = now
        self._load = load
        self._token: GoogleToken | None = None
        self._loading: asyncio.Task[GoogleToken] | None = None

    async def get_token(self) -> str:
        held = self._token
        if held is None or self._is_stale(held):
            held = await self._renew()
        return held.text

    async def refresh(self) -> bool:
        try:
            await self._renew()
        except HummingbirdError:
            return False
        return True

    def _is_stale(self, token: GoogleToken) -> bool:
        return token.expires_at is not None and self._now() >= token.expires_at - TOKEN_MARGIN_S

    async def _renew(self) -> GoogleToken:
        """Load a new token, or wait for a load under way. The shield keeps a cancelled caller from cancelling it."""
        loading = self._loading
        if loading is None or loading.done() or loading.get_loop() is not asyncio.get_running_loop():
            loading = self._loading = asyncio.create_task(asyncio.to_thread(self._load))
            loading.add_done_callback(self._store_token)
        return await asyncio.shield(loading)

    def _store_token(self, loading: asyncio.Task[GoogleToken]) -> None:
        if not loading.cancelled() and loading.exception() is None:
            self._token = loading.result()


def _is_transient(error: Exception) -> bool:
    """Tell whether a retry may help: google-auth says so, or the network caused the error."""
    import google.auth.exceptions as refused  # noqa: PLC0415 - imported already when there is an error

    network = (refused.TransportError, refused.TimeoutError, refused.ResponseError)
    return (
        bool(getattr(error, "retryable", False)) or isinstance(error, network) or isinstance(error.__cause__, network)
    )


def _error_from_google(error: Exception, *, passing: bool) -> HummingbirdError:
    if passing:
        return ProviderUnavailable(f"Google's token service could not be asked: {_error_text(error)}")
    return CredentialRefused(
        "Google refused to renew the access token: log in again (`gcloud auth application-default login`) or check "
        f"the service account ({_error_text(error)})."
    )


def _error_text(error: Exception) -> str:
    return shorten_line(replace_surrogates(str(error)), ERROR_TEXT_CHARS)
