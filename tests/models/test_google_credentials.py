"""Access tokens for Vertex: one refresh at a time, kept until shortly before the end."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import google.auth
import google.auth.exceptions
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from requests import Session

from hummingbird.core.errors import CredentialRefused, HummingbirdError, MissingSetting, ProviderUnavailable
from hummingbird.core.limits import TOKEN_MARGIN_S
from hummingbird.models.google_credentials import GoogleToken, GoogleTokenSource, load_application_default

REFUSED: Any = google.auth.exceptions  # google-auth types only a part of itself


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Loads:
    """A loader that counts, and can be held at its door."""

    def __init__(self, clock: Clock, lifetime_s: float | None = 3600.0) -> None:
        self._clock = clock
        self._lifetime_s = lifetime_s
        self.count = 0
        self.started = threading.Event()
        self.open = threading.Event()
        self.open.set()
        self.threads: set[int] = set()

    def __call__(self) -> GoogleToken:
        self.threads.add(threading.get_ident())
        self.started.set()
        self.open.wait()
        self.count += 1
        return GoogleToken(f"t{self.count}", None if self._lifetime_s is None else self._clock() + self._lifetime_s)


async def test_a_token_is_loaded_in_a_thread_and_kept() -> None:
    clock = Clock()
    loads = Loads(clock)
    tokens = GoogleTokenSource(clock, loads)
    assert [await tokens.get_token() for _ in range(3)] == ["t1", "t1", "t1"]
    assert threading.get_ident() not in loads.threads


async def test_a_token_is_replaced_shortly_before_it_expires() -> None:
    clock = Clock()
    tokens = GoogleTokenSource(clock, Loads(clock))
    await tokens.get_token()
    clock.now += 3600 - TOKEN_MARGIN_S - 1
    assert await tokens.get_token() == "t1"
    clock.now += 1
    assert await tokens.get_token() == "t2"


async def test_a_token_without_an_end_is_kept() -> None:
    clock = Clock()
    tokens = GoogleTokenSource(clock, Loads(clock, lifetime_s=None))
    await tokens.get_token()
    clock.now += 10**9
    assert await tokens.get_token() == "t1"


async def test_many_callers_share_one_refresh() -> None:
    clock = Clock()
    loads = Loads(clock)
    loads.open.clear()
    tokens = GoogleTokenSource(clock, loads)
    waiting = [asyncio.create_task(tokens.get_token()) for _ in range(20)]
    await asyncio.to_thread(loads.started.wait)
    loads.open.set()
    assert set(await asyncio.gather(*waiting)) == {"t1"}
    assert loads.count == 1


async def test_a_caller_that_gives_up_takes_no_token_from_the_others() -> None:
    clock = Clock()
    loads = Loads(clock)
    loads.open.clear()
    tokens = GoogleTokenSource(clock, loads)
    first = asyncio.create_task(tokens.get_token())
    await asyncio.to_thread(loads.started.wait)
    second = asyncio.create_task(tokens.get_token())
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    loads.open.set()
    assert await second == "t1"
    assert loads.count == 1


async def test_a_forced_refresh_replaces_a_token_that_still_seems_good() -> None:
    clock = Clock()
    tokens = GoogleTokenSource(clock, Loads(clock))
    assert await tokens.get_token() == "t1"
    assert await tokens.refresh()
    assert await tokens.get_token() == "t2"


async def test_a_refresh_that_fails_says_no_and_the_next_one_tries_again() -> None:
    outcomes: list[HummingbirdError | GoogleToken] = [CredentialRefused("no"), GoogleToken("new")]

    def load() -> GoogleToken:
        outcome = outcomes.pop(0)
        if isinstance(outcome, GoogleToken):
            return outcome
        raise outcome

    tokens = GoogleTokenSource(Clock(), load)
    assert not await tokens.refresh()
    assert await tokens.get_token() == "new"


def test_tokens_outlive_the_event_loop_they_were_first_used_in() -> None:
    clock = Clock()
    tokens = GoogleTokenSource(clock, Loads(clock))
    assert asyncio.run(tokens.get_token()) == "t1"
    clock.now += 10_000
    assert asyncio.run(tokens.get_token()) == "t2"


def test_a_token_does_not_show_itself() -> None:
    assert "s3cret" not in repr(GoogleToken("s3cret", 5.0))


class Credentials:
    """As google-auth's: a naive expiry in UTC."""

    def __init__(self, refuse: Exception | None = None) -> None:
        self.token: str | None = None
        self.expiry: datetime | None = None
        self._refuse = refuse

    def refresh(self, request: Any) -> None:
        if self._refuse is not None:
            raise self._refuse
        self.token = "ya29.x"
        self.expiry = datetime(2026, 11, 15, 12, tzinfo=UTC).replace(tzinfo=None)


def found(monkeypatch: pytest.MonkeyPatch, credentials: Callable[[], Credentials]) -> None:
    monkeypatch.setattr(google.auth, "default", lambda scopes: (credentials(), "project"))


def test_application_default_credentials_give_a_token_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, Credentials)
    token = load_application_default()
    assert (token.text, token.expires_at) == ("ya29.x", datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(("bundle", "verified"), [("/authority.pem", "/authority.pem"), (None, "/other.pem")])
def test_the_ca_bundle_of_the_settings_comes_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, bundle: str | None, verified: str
) -> None:
    """One setting that every client honours."""
    asked: list[object] = []

    class Asking(Credentials):
        def refresh(self, request: Any) -> None:
            request("https://tokens.example/", method="POST", timeout=1)
            super().refresh(request)

    class Answer:
        status_code, content = 200, b"{}"
        headers: dict[str, str] = {}

    def send(self: Session, request: object, **options: object) -> Answer:
        asked.append(options["verify"])
        return Answer()

    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/other.pem")
    monkeypatch.setattr(Session, "send", send)
    found(monkeypatch, Asking)
    load_application_default(bundle)
    assert asked == [verified]


def test_without_credentials_the_sentence_says_how_to_get_some(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Credentials:
        raise REFUSED.DefaultCredentialsError("Your default credentials were not found.")

    found(monkeypatch, none)
    with pytest.raises(MissingSetting, match=r"gcloud auth application-default login.*GOOGLE_APPLICATION_CREDENTIALS"):
        load_application_default()


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (REFUSED.RefreshError("invalid_grant"), CredentialRefused),
        (REFUSED.RefreshError("busy", retryable=True), ProviderUnavailable),
        (REFUSED.TransportError("no route"), ProviderUnavailable),
        (REFUSED.TimeoutError("slow"), ProviderUnavailable),
    ],
)
def test_a_refused_refresh_is_told_apart_from_a_broken_network(
    monkeypatch: pytest.MonkeyPatch, refusal: Exception, kind: type[HummingbirdError]
) -> None:
    found(monkeypatch, lambda: Credentials(refusal))
    with pytest.raises(kind, match=str(refusal)):
        load_application_default()


class TokenService(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        granted = self.path == "/token"
        body = {"access_token": "ya29.served", "expires_in": 3600} if granted else {"error": "invalid_grant"}
        content = json.dumps(body).encode()
        self.send_response(200 if granted else 400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


@pytest.fixture
def service() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), TokenService) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def service_account(folder: Path, token_uri: str) -> str:
    key = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    account = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": key.decode(),
        "client_email": "agent@p.iam.gserviceaccount.com",
        "token_uri": token_uri,
    }
    path = folder / "account.json"
    path.write_text(json.dumps(account))
    return str(path)


def test_a_service_account_is_exchanged_for_a_token(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way through google-auth, with a token service of our own."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", service_account(tmp_path, f"{service}/token"))
    token = load_application_default()
    assert token.text == "ya29.served"
    assert token.expires_at is not None
    assert token.expires_at > time.time() + TOKEN_MARGIN_S


@pytest.mark.thorough
def test_a_service_account_that_was_revoked_is_refused(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", service_account(tmp_path, f"{service}/revoked"))
    with pytest.raises(CredentialRefused, match="invalid_grant"):
        load_application_default()


def test_a_credentials_file_that_is_not_there_is_a_missing_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/account.json")
    with pytest.raises(MissingSetting, match=r"/nowhere/account\.json"):
        load_application_default()


@pytest.mark.parametrize("fault", [PermissionError(13, "Permission denied"), ValueError("no key in there")])
def test_credentials_that_cannot_be_used_are_a_missing_setting(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """Whatever the library lets through."""
    found(monkeypatch, lambda: Credentials(fault))
    with pytest.raises(MissingSetting, match="GOOGLE_APPLICATION_CREDENTIALS names"):
        load_application_default()
