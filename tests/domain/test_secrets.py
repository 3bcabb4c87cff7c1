"""Credentials are masked wherever text leaves us (T7)."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.domain.secrets import MASK, Secrets

KEY = "k3y-of-no-known-shape"
LONG = "a1B2" * 12

SHAPES = [
    f"sk-{LONG}",
    f"sk-ant-api03-{LONG}",
    f"sk-proj-{LONG}_x",
    f"glpat-{LONG}",
    f"glcbt-64_{LONG}",
    f"ghp_{LONG}",
    f"gho_{LONG}",
    f"github_pat_{LONG}",
    "AKIAIOSFODNN7EXAMPLE",
    f"AIza{LONG}",
    f"ya29.{LONG}",
    f"xoxb-{LONG}",
    f"xoxa-{LONG}",
    f"xoxp-{LONG}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}\n{LONG}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY----- {LONG}",
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("around", ["{}", "key={}", 'It said: "{}"', "({}"])
def test_the_usual_shapes_are_masked_without_being_configured(shape: str, around: str) -> None:
    """T7."""
    assert Secrets().mask(around.format(shape)).startswith(around.partition("{")[0] + MASK)
    assert LONG not in Secrets().mask(around.format(shape))


def test_the_word_before_a_token_and_the_host_behind_a_password_stay() -> None:
    """T7: a reader still sees what it was about."""
    masked = Secrets().mask(
        f"Authorization: Bearer {LONG}, asked https://me:p@ss:w0rd@host.example/v1 and bearer {LONG}"
    )
    assert masked == f"Authorization: Bearer {MASK}, asked https://{MASK}@host.example/v1 and bearer {MASK}"


@pytest.mark.parametrize(
    "text",
    [
        "task-runner-with-a-very-long-name and disk-usage-of-the-build-machine",
        "the bearer of bad news, https://host.example:8080/a@b, mailto:me@host.example",
        "sk-short, AKIA, ghp_, AIza, ya29., xoxb-, -----BEGIN CERTIFICATE-----",
        "",
    ],
)
def test_innocent_text_is_left_as_it_is(text: str) -> None:
    assert Secrets([KEY]).mask(text) == text


def test_configured_values_are_masked_wherever_they_stand_the_longest_first() -> None:
    """T7."""
    secrets = Secrets([KEY, f"{KEY}-and-more", f"  {KEY[::-1]}\n"])
    assert secrets.mask(f"x{KEY}y {KEY}-and-more {KEY[::-1]}") == f"x{MASK}y {MASK} {MASK}"


def test_a_value_of_several_lines_is_found_on_one() -> None:
    """T7: sentences fold the white space of what they quote."""
    assert Secrets(["first line\n  second"]).mask("first line second!") == f"{MASK}!"


@pytest.mark.parametrize("value", ["", "   ", "short", "\n12345\n"])
def test_a_value_too_short_to_be_one_masks_nothing(value: str) -> None:
    assert Secrets([value]).mask(f"a short text with {value} 12345") == f"a short text with {value} 12345"


def test_secrets_do_not_show_themselves_and_cannot_be_changed() -> None:
    """T7."""
    secrets = Secrets([KEY])
    assert KEY not in f"{secrets!r} {secrets}"
    with pytest.raises(dataclasses.FrozenInstanceError):
        secrets.values = ()  # type: ignore[misc]  # that is what is tested


PIECES = st.sampled_from([*SHAPES, KEY, MASK, "Bearer ", "bearer", "://", ":", "@", "sk-", "masked", "[mask", "a", " "])


@given(st.lists(st.one_of(PIECES, st.text(max_size=5))), st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=4))
def test_masking_twice_is_masking_once_and_no_value_is_left(pieces: list[str], values: list[str]) -> None:
    """T7."""
    secrets = Secrets(values)
    masked = secrets.mask("".join(pieces))
    assert secrets.mask(masked) == masked
    rest = masked.split(MASK)
    assert not any(value in piece for value in secrets.values for piece in rest)
