"""Credentials are masked wherever text leaves us."""

import base64
import dataclasses
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.limits import ADDRESS_BYTES, SECRET_CHARS, SECRET_SPREAD_BYTES
from hummingbird.core.masking import MASK, Secrets

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


@pytest.mark.parametrize("around", ["{}", "key={}", 'It said: "{}"', "({}"])
def test_the_usual_shapes_are_masked_without_being_configured(around: str) -> None:
    for shape in SHAPES:
        assert Secrets().mask(around.format(shape)).startswith(around.partition("{")[0] + MASK)
        assert LONG not in Secrets().mask(around.format(shape))


def test_the_word_before_a_token_and_the_host_behind_a_password_stay() -> None:
    """A reader still sees what it was about."""
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
    secrets = Secrets([KEY, f"{KEY}-and-more", f"  {KEY[::-1]}\n"])
    assert secrets.mask(f"x{KEY}y {KEY}-and-more {KEY[::-1]}") == f"x{MASK}y {MASK} {MASK}"


def test_a_value_of_several_lines_is_found_on_one_and_indented() -> None:
    """Sentences fold the white space of what they quote."""
    secrets = Secrets(["first line\n  second"])
    assert secrets.mask("first line second!") == f"{MASK}!"
    assert secrets.mask("a: |\n    first\tline\r\n        second") == f"a: |\n    {MASK}"
    assert secrets.mask("firstline second") == "firstline second"


def test_a_value_that_is_spread_too_far_is_masked_as_far_as_it_goes() -> None:
    """The bound of what a stream can hold back errs on the side of masking, here as there."""
    secrets = Secrets(["first line second"])
    spread = " " * (SECRET_SPREAD_BYTES + 10)
    assert secrets.mask(f"a first line{spread[20:]}second b") == f"a {MASK} b"
    assert secrets.mask(f"a first line{spread}second b") == f"a {MASK} b"
    assert secrets.mask(f"a first{spread}line\nsecond b") == f"a {MASK} b"
    assert secrets.mask(f"a first line{spread}, it said") == f"a {MASK}, it said"
    assert secrets.mask(f"a first{spread}lines of it") == f"a {MASK}s of it"
    assert secrets.mask(f"a first line{spread[20:]}of it") == f"a first line{spread[20:]}of it"


def test_a_value_longer_than_can_be_held_back_is_masked_in_pieces() -> None:
    value = "".join(f"{number:x}." for number in range(SECRET_CHARS // 2, SECRET_CHARS))
    assert 2 * SECRET_CHARS < len(value) < 3 * SECRET_CHARS
    secrets = Secrets([value])
    assert secrets.mask(f"a {value} b") == f"a {MASK * 3} b"
    assert secrets.mask(value[: len(value) // 2]).startswith(MASK)
    assert len(secrets.mask(base64.b64encode(value.encode()).decode())) < 4 * len(MASK)


def encodings(value: str) -> dict[str, str]:
    raw = value.encode()
    return {
        "base64": base64.b64encode(raw).decode(),
        "base64 for addresses": base64.urlsafe_b64encode(raw).decode(),
        "percent": quote(value, safe=""),
        "percent in small letters": re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
        "percent but for slashes": quote(value),
        "percent of browsers": quote(value, safe="!'()*"),
        "form": quote_plus(value),
        "json": json.dumps(value)[1:-1],
        "json beyond ASCII": json.dumps(value, ensure_ascii=False)[1:-1],
        "json of Go": re.sub(
            "[<>&]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False)[1:-1]
        ),
    }


@pytest.mark.parametrize("value", [KEY, 'p"ä/ss (w0rd)\n& <m?re~>', "\\back\\slash\\", "?>?>?>?>~~~~"])
def test_a_value_is_masked_in_the_encodings_that_tools_write(value: str) -> None:
    for encoding, encoded in encodings(value).items():
        assert Secrets([value]).mask(f"a {encoded}, b") == f"a {MASK}, b", encoding
        assert Secrets([KEY[::-1]]).mask(encoded) == encoded, encoding


@pytest.mark.parametrize("user", ["", "a", "me", "bot", "oauth2"])
@pytest.mark.parametrize("value", [KEY, KEY[1:], KEY[2:]])
def test_a_value_is_masked_inside_of_something_longer_in_base64(user: str, value: str) -> None:
    """Basic authentication, container registries and `echo | base64` write it so."""
    encoded = base64.b64encode(f"{user}:{value}\n".encode()).decode()
    before, mask, behind = Secrets([value]).mask(encoded).partition(MASK)
    assert mask
    assert len(base64.b64decode(before + "A" * (-len(before) % 4))) <= len(user) + 3
    assert len(behind) <= 4


def test_an_address_with_a_user_that_holds_an_at_sign_is_masked_up_to_the_host() -> None:
    assert Secrets().mask("https://me@corp.example:pw@host.example/x") == f"https://{MASK}@host.example/x"
    assert Secrets().mask("https://me@host.example:8080/x") == "https://me@host.example:8080/x"


def test_what_could_be_a_password_is_masked_if_it_is_too_long_to_be_held_back() -> None:
    """The bound of what a stream can hold back errs on the side of masking, here as there."""
    longest = "a:" + "b" * (ADDRESS_BYTES - 3)
    assert Secrets().mask(f"x://{longest} c") == f"x://{longest} c"
    assert Secrets().mask(f"x://{longest[:-2]}@h c") == f"x://{MASK}@h c"
    assert Secrets().mask(f"x://{longest}b c") == f"x://{MASK} c"
    assert Secrets().mask(f"x://{longest}bbb@host/c") == f"x://{MASK}/c"


def test_a_private_key_is_masked_across_a_mask() -> None:
    """Somebody may have masked a part of it before."""
    key = f"-----BEGIN PRIVATE KEY-----\n{LONG}{MASK}{LONG}\n-----END PRIVATE KEY-----"
    assert Secrets().mask(f"a {key} b") == f"a {MASK} b"


def test_text_that_utf_8_cannot_hold_is_masked_too() -> None:
    assert Secrets(["se\udcffcret"]).mask("\ud800 se\udcffcret") == f"\ud800 {MASK}"


@pytest.mark.parametrize("value", ["", "   ", "short", "\n12345\n"])
def test_a_value_too_short_to_be_one_masks_nothing(value: str) -> None:
    assert Secrets([value]).mask(f"a short text with {value} 12345") == f"a short text with {value} 12345"


def test_secrets_do_not_show_themselves_and_cannot_be_changed() -> None:
    secrets = Secrets([KEY])
    assert KEY not in f"{secrets!r} {secrets}"
    with pytest.raises(dataclasses.FrozenInstanceError):
        secrets.values = ()  # type: ignore[misc]  # that is what is tested


VALUES = [
    KEY,
    f"{KEY}-and-more",
    "first line\n second",
    "abcde[",
    "abcdef[mask",
    "masked",
    "secret",
    "sk-short1",
    "aabaab",
]
VALUES += ["p@ss/w:rd", "://me:", "@host.example", "Bearer", "pä$$wörd", "-----BEGIN", "tsk-aaaa", "[masked", "asked]x"]
SHREDS = [
    MASK,
    "[mask",
    "ed]",
    "Bearer ",
    "bearer\n",
    "://",
    "user:",
    "a:b@",
    ":",
    "@",
    "/",
    "sk-",
    "gh",
    "x",
    "a",
    " ",
    "\n",
]
SHREDS += ["-----BEGIN ", "RSA ", "PRIVATE KEY-----", "-----END ", "----", "first", "line", "aab", "€", "secret", LONG]
PIECES = st.one_of(st.sampled_from([*SHAPES, *VALUES, *SHREDS]), st.text(max_size=5))


@given(st.lists(PIECES), st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=4))
def test_masking_twice_is_masking_once_and_no_value_is_left(pieces: list[str], values: list[str]) -> None:
    secrets = Secrets(values)
    masked = secrets.mask("".join(pieces))
    assert secrets.mask(masked) == masked
    rest = masked.split(MASK)
    assert not any(value in piece for value in secrets.values for piece in rest)


SPACE = r"[ \t\n\r\f\v]"
NOT_IN_A_WORD = [
    r"sk-[\w-]{16,}",
    r"gl(?:pat|ptt|cbt|dt|rt|ft|soat|agent|imt|ffct)-[\w.-]{16,}",
    r"gh[opusr]_[^\W_]{16,}",
    r"github_pat_\w{16,}",
    r"A(?:KIA|SIA)[0-9A-Z]{16,}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w.-]{10,}",
    r"xox[abeprs]-(?:[^\W_]|-){10,}",
]
ANYWHERE = [
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
    rf"(?P<bearer>[Bb]earer){SPACE}{{1,4}}[\w.~+/=-]{{20,}}",
    r"(?P<address>://)(?:(?!\[masked\]|[ \t\n\r\f\v/?#:]).)*:(?:(?!\[masked\]|[ \t\n\r\f\v/?#]).)*(?=@)",
]


def spelt(value: str) -> str:
    words = re.split(f"{SPACE}+", value)
    return f"{SPACE}+".join(re.escape(word).replace(r"\[", r"\[(?!masked\])") for word in words)


def plainly_masked(text: str, values: Iterable[str]) -> str:
    """What masking means, letter by letter: slow, and with nothing that could be overlooked."""
    known = {form for value in values for form in (value, *encodings(value).values())}
    patterns = [re.compile(spelt(form)) for form in sorted(known, key=lambda form: -len(form.encode()))]
    anywhere, at_words = (re.compile("|".join(shapes), re.ASCII) for shapes in (ANYWHERE, NOT_IN_A_WORD + ANYWHERE))
    shown, at, fresh = "", 0, True
    while at < len(text):
        shapes = at_words if fresh or not re.match("[A-Za-z0-9]", text[at - 1]) else anywhere
        tried = (pattern.match(text, at) for pattern in (re.compile(re.escape(MASK)), *patterns, shapes))
        found = next((match for match in tried if match), None)
        if found:
            word = {"bearer": found[0][:6] + " ", "address": "://"}.get(found.lastgroup or "", "")
            shown, at, fresh = shown + word + MASK, found.end(), True
        else:
            shown, at, fresh = shown + text[at], at + 1, False
    return shown


@pytest.mark.thorough
@given(st.lists(PIECES, max_size=20), st.lists(st.sampled_from(VALUES), max_size=4))
def test_masking_finds_what_looking_at_every_letter_finds(pieces: list[str], values: list[str]) -> None:
    secrets = Secrets(values)
    assert secrets.mask("".join(pieces)) == plainly_masked("".join(pieces), secrets.values)
