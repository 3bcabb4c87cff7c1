"""Who may hand in webhooks. The vector is GitLab's signature as the fixtures have it."""

import base64
import hmac
import json
from pathlib import Path

import pytest

from hummingbird.core.errors import MissingSetting
from hummingbird.core.limits import SIGNATURE_AGE_S
from hummingbird.service.webhook import WebhookAuth, create_webhook_auth

VECTOR = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks" / "signing_token_vector.json").read_text()
)
TOKEN = VECTOR["signing_token"]
HEADERS = {name.lower(): value for name, value in VECTOR["headers"].items()}
BODY = VECTOR["raw_body"].encode()
AT = float(HEADERS["webhook-timestamp"])
OTHER = "whsec_" + base64.b64encode(b"another key, not the one of the vector").decode()


def signing(tokens: str = TOKEN, at: float = AT, secret: str = "") -> WebhookAuth:
    return create_webhook_auth(lambda: at, secret, tokens)


def lets_in(door: WebhookAuth, headers: dict[str, str], body: bytes = BODY) -> bool:
    return not (door.header_refusal(headers) or door.signature_refusal(headers, body))


def test_gitlabs_own_signature_is_let_in() -> None:
    assert lets_in(signing(), HEADERS)


def test_another_body_another_id_or_another_time_is_a_forgery() -> None:
    assert "not made with" in signing().signature_refusal(HEADERS, BODY + b" ")
    for name, value in (("webhook-id", "other"), ("webhook-timestamp", str(int(AT) + 1))):
        assert not lets_in(signing(), {**HEADERS, name: value})


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_delivery_without_one_of_the_headers_is_refused_before_its_body_is_read(name: str) -> None:
    assert signing().header_refusal({key: value for key, value in HEADERS.items() if key != name})


@pytest.mark.parametrize("stamp", ["", "soon", "-5", "1.5", "٣", "9" * 5_000, " 1780000000"])
def test_a_time_that_is_none_is_refused(stamp: str) -> None:
    assert signing().header_refusal({**HEADERS, "webhook-timestamp": stamp})


@pytest.mark.parametrize("away", [-SIGNATURE_AGE_S, SIGNATURE_AGE_S])
def test_an_old_signature_and_one_of_the_future_are_refused(away: int) -> None:
    assert lets_in(signing(at=AT + away), HEADERS)
    assert "away from our clock" in signing(at=AT + away + (1 if away > 0 else -1)).header_refusal(HEADERS)


def test_one_good_signature_among_several_suffices_and_other_versions_do_not_count() -> None:
    good = HEADERS["webhook-signature"]
    assert lets_in(signing(), {**HEADERS, "webhook-signature": f"v1,AAAA v1a,{good[3:]} v1,%% {good}"})
    assert not lets_in(signing(), {**HEADERS, "webhook-signature": good.replace("v1,", "v2,")})
    assert not lets_in(signing(), {**HEADERS, "webhook-signature": "v1, v1 , ,"})


def test_hooks_may_have_signing_tokens_of_their_own() -> None:
    assert lets_in(signing(f"{OTHER} {TOKEN}"), HEADERS)
    assert not lets_in(signing(OTHER), HEADERS)


def test_the_secret_is_compared_as_bytes_whatever_is_in_it() -> None:
    door = create_webhook_auth(lambda: AT, "gehÖim ☃")
    assert not door.header_refusal({"x-gitlab-token": "gehÖim ☃".encode().decode("latin-1")})
    for wrong in ("", "gehÖim", "gehÖim ☃☃", "\udc80"):
        assert door.header_refusal({"x-gitlab-token": wrong})
    assert door.header_refusal({})


def test_what_is_configured_is_required_both_if_both_are() -> None:
    door = signing(secret="s3cret")
    assert lets_in(door, {**HEADERS, "x-gitlab-token": "s3cret"})
    assert not lets_in(door, HEADERS)
    assert not lets_in(door, {"x-gitlab-token": "s3cret"})
    assert not lets_in(door, {**HEADERS, "x-gitlab-token": "s3cret", "webhook-signature": "v1,AAAA"})


def test_with_nothing_configured_everybody_is_let_in_and_the_gate_says_so() -> None:
    assert create_webhook_auth(lambda: AT).is_open
    assert lets_in(create_webhook_auth(lambda: AT), {})
    assert not create_webhook_auth(lambda: AT, "s").is_open
    assert not signing().is_open


@pytest.mark.parametrize("token", ["secret", "whsec_", "whsec_%%%", "whsec_c2hvcnQ=", TOKEN.removeprefix("whsec_")])
def test_a_signing_token_that_is_none_is_a_sentence_without_its_value(token: str) -> None:
    with pytest.raises(MissingSetting, match="copy it from the hook's page") as caught:
        create_webhook_auth(lambda: AT, "", token)
    assert token.removeprefix("whsec_")[:6] not in str(caught.value) or token == "whsec_"


def test_a_gate_does_not_show_what_it_knows() -> None:
    door = signing(secret="s3cret")
    assert "s3cret" not in repr(door)
    assert "testtest" not in repr(door)


def test_the_vector_is_made_as_we_check_it() -> None:
    key = base64.b64decode(TOKEN.removeprefix("whsec_"))
    made = base64.b64encode(hmac.digest(key, VECTOR["signed_content"].encode(), "sha256")).decode()
    assert HEADERS["webhook-signature"] == f"v1,{made}"
