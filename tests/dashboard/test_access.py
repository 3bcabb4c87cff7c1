"""Who may see the dashboard: by headers alone, as a server hands them over."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import MissingSetting
from hummingbird.dashboard.access import COOKIE_NAME, AccessRefusal, DashboardAccess, Visitor
from hummingbird.dashboard.queries import TOKEN_CHARS, VISIT_S, WRONG_TOKENS

TOKEN = "a-token-of-sixteen-or-more"
HERE = {"host": "127.0.0.1:8080"}
BEARER = {"authorization": f"Bearer {TOKEN}"}


class Clock:
    at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


def judged(access: DashboardAccess, headers: Mapping[str, str] = HERE, cookie: str = "") -> Visitor | AccessRefusal:
    return access.check_request(headers, {COOKIE_NAME: cookie} if cookie else {})


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "localhost:1", "[::1]:80", "127.0.0.9", "::1"])
def test_without_a_token_this_machine_may_look_by_its_own_names(host: str) -> None:
    assert isinstance(judged(DashboardAccess("", local=True, now=Clock()), {"host": host}), Visitor)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8080"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "localhost.evil.example:80"},
        {"host": ""},
        {},
        {"host": "10.0.0.1"},
        *({**HERE, name: "x"} for name in ("x-forwarded-for", "forwarded", "x-forwarded-host", "via", "x-real-ip")),
        *({**HERE, name: "x"} for name in ("x-forwarded-proto", "x-forwarded-port", "x-forwarded-prefix")),
        *(
            {**HERE, name: "x"}
            for name in ("cf-connecting-ip", "cf-ray", "x-original-host", "x-original-forwarded-for")
        ),
    ],
)
def test_without_a_token_nobody_comes_by_another_name_or_through_a_proxy(headers: dict[str, str]) -> None:
    """A page elsewhere could point its own name to 127.0.0.1."""
    refused = judged(DashboardAccess("", local=True, now=Clock()), headers)
    assert isinstance(refused, AccessRefusal)
    assert not refused.may_enter


def test_without_a_token_nobody_comes_by_the_old_protocol_that_only_proxies_speak() -> None:
    """nginx, with nothing but proxy_pass, says the address it connects to and adds no header."""
    access = DashboardAccess("", local=True, now=Clock())
    assert isinstance(access.check_request(HERE, {}, "1.0"), AccessRefusal)
    assert isinstance(access.check_request(HERE, {}, "1.1"), Visitor)
    assert isinstance(DashboardAccess(TOKEN, local=True, now=Clock()).check_request(BEARER, {}, "1.0"), Visitor), (
        "a token is enough"
    )


def test_without_a_token_a_door_that_others_reach_shows_nothing() -> None:
    refused = judged(DashboardAccess("", local=False, now=Clock()))
    assert isinstance(refused, AccessRefusal)
    assert "HUMMINGBIRD_DASHBOARD_TOKEN" in refused.sentence


@pytest.mark.parametrize("local", [True, False])
def test_with_a_token_everybody_has_to_know_it(local: bool) -> None:
    access = DashboardAccess(TOKEN, local=local, now=Clock())
    refused = judged(access)
    assert isinstance(refused, AccessRefusal)
    assert refused.may_enter
    assert access.log_in("wrong") is None
    cookie = access.log_in(TOKEN)
    assert cookie is not None
    assert TOKEN not in cookie
    assert isinstance(judged(access, {"host": "ci.example"}, cookie), Visitor)
    assert isinstance(judged(access, {"authorization": f"Bearer {TOKEN}"}), Visitor)
    assert isinstance(judged(access, {"authorization": "Bearer wrong"}), AccessRefusal)
    assert isinstance(judged(access, {"authorization": "Bearer "}), AccessRefusal)


def test_a_cookie_is_good_for_its_time_and_in_every_process_that_knows_the_token() -> None:
    clock = Clock()
    cookie = DashboardAccess(TOKEN, local=False, now=clock).log_in(TOKEN)
    assert cookie is not None
    assert isinstance(judged(DashboardAccess(TOKEN, local=False, now=clock), cookie=cookie), Visitor)
    assert isinstance(judged(DashboardAccess(TOKEN + "2", local=False, now=clock), cookie=cookie), AccessRefusal)
    clock.at += VISIT_S + 1
    assert isinstance(judged(DashboardAccess(TOKEN, local=False, now=clock), cookie=cookie), AccessRefusal)


@given(st.data())
def test_no_cookie_that_was_changed_is_taken(data: Any) -> None:
    access = DashboardAccess(TOKEN, local=False, now=Clock())
    cookie = access.log_in(TOKEN) or ""
    at = data.draw(st.integers(0, len(cookie) - 1))
    letter = data.draw(st.characters().filter(lambda one: one != cookie[at]))
    assert isinstance(judged(access, cookie=cookie[:at] + letter + cookie[at + 1 :]), AccessRefusal)


@given(st.text())
def test_no_cookie_or_token_makes_it_stumble(text: str) -> None:
    access = DashboardAccess(TOKEN, local=False, now=Clock())
    assert isinstance(judged(access, cookie=text), AccessRefusal)
    assert access.log_in(text) is None


def test_a_form_needs_the_proof_of_its_visitor_and_comes_from_our_own_pages() -> None:
    access = DashboardAccess(TOKEN, local=False, now=Clock())
    mine, theirs = (judged(access, cookie=access.log_in(TOKEN) or "") for _ in range(2))
    assert isinstance(mine, Visitor)
    assert isinstance(theirs, Visitor)
    assert access.is_own_form(mine, mine.proof, {})
    assert access.is_own_form(mine, mine.proof, {"sec-fetch-site": "same-origin"})
    assert not access.is_own_form(mine, theirs.proof, {})
    assert not access.is_own_form(mine, "", {})
    assert not access.is_own_form(mine, mine.proof, {"sec-fetch-site": "cross-site"})
    assert not access.is_own_form(mine, mine.proof, {"sec-fetch-site": "same-site"})
    bearer = judged(access, {"authorization": f"Bearer {TOKEN}"})
    assert isinstance(bearer, Visitor)
    assert not access.is_own_form(bearer, "", {}), "programs send no forms"


def test_too_many_wrong_tokens_are_noticed_and_shut_nobody_out_who_knows_the_right_one() -> None:
    clock = Clock()
    access = DashboardAccess(TOKEN, local=False, now=clock)
    for _ in range(WRONG_TOKENS):
        assert access.log_in("wrong") is None
    assert access.too_many_attempts
    assert access.log_in(TOKEN) is not None
    assert isinstance(judged(access, {"authorization": f"Bearer {TOKEN}"}), Visitor)
    clock.at += 61
    assert not access.too_many_attempts


def test_a_token_that_could_be_guessed_is_refused_with_what_to_do() -> None:
    with pytest.raises(MissingSetting, match=re.escape(f"at least {TOKEN_CHARS} characters")):
        DashboardAccess("x" * (TOKEN_CHARS - 1), local=True, now=Clock())
