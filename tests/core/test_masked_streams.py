"""Credentials are masked in streams, wherever a chunk ends."""

from collections.abc import Iterator
from itertools import repeat
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hummingbird.core import limits
from hummingbird.core.limits import ADDRESS_BYTES, MASKING_HELD_BYTES, SECRET_CHARS, SECRET_SPREAD_BYTES
from hummingbird.core.masking import MASK, MaskedStream, Secrets
from tests.thoroughly import ALL, also

KEY = "k3y-of-no-known-shape"
TOKEN = "glpat-" + "a1B2" * 6
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow/+IBAAKCAQ\n" * 40 + "-----END RSA PRIVATE KEY-----"
VALUES = [
    KEY,
    f"{KEY}-and-more",
    KEY[4:],
    "first line\n  second",
    "pä$$wörd/€",
    "abcde[",
    TOKEN + "x",
    "secret",
    "tsk-ab",
    "asked]x",
]
SECRETS = Secrets(VALUES)


def chunks(raw: bytes, sizes: Iterator[int]) -> Iterator[bytes]:
    while raw:
        size = next(sizes)
        yield raw[:size]
        raw = raw[size:]


def streamed(secrets: Secrets, raw: bytes, sizes: Iterator[int]) -> bytes:
    stream = secrets.open_stream()
    return b"".join([stream.feed(chunk) for chunk in chunks(raw, sizes)]) + stream.end()


SHREDS = [
    "Bearer ",
    "bearer\n",
    "://",
    "user:",
    "pw@host/",
    ":",
    "@",
    "/",
    "sk-",
    "s",
    "gl",
    "-",
    " ",
    "\n",
    "\t  ",
    "[mask",
    "ed]",
]
SHREDS += [
    "-----BEGIN ",
    "RSA ",
    "PRIVATE KEY-----",
    "-----END ",
    "a1B2" * 5,
    "€",
    "ä",
    "first",
    "line",
    "second",
    "xoxb-",
    "t",
]
WHOLE = [PEM, PEM[:-20], TOKEN, f"sk-{TOKEN}", f"Bearer {TOKEN}", "AKIAIOSFODNN7EXAMPLE", "https://a:b@c@host/", MASK]
TEXTS = st.lists(st.one_of(st.sampled_from([*VALUES, *WHOLE, *SHREDS]), st.text(max_size=5))).map("".join)


@given(TEXTS, st.lists(st.integers(0, 40), min_size=1).filter(any))
def test_a_stream_shows_what_masking_the_whole_text_shows(text: str, sizes: list[int]) -> None:
    def forever() -> Iterator[int]:
        while True:
            yield from sizes

    assert streamed(SECRETS, text.encode(), forever()).decode() == SECRETS.mask(text)


@pytest.mark.thorough
@given(TEXTS)
@example(f"{KEY}{TOKEN}{KEY}-and-more{KEY}")
@example(f"first line second{TOKEN}xfirst\n\t line \r\n second")
@example(f"secretsk-{TOKEN}secretasecret")
@example(f"a://b:c@d {PEM}{PEM[:-1]}")
def test_a_stream_that_comes_byte_by_byte_shows_the_same(text: str) -> None:
    assert streamed(SECRETS, text.encode(), repeat(1)).decode() == SECRETS.mask(text)


@pytest.mark.parametrize("secret", [KEY, TOKEN, PEM, "first line\n  second", "pä$$wörd/€", "ghp_" + "a1B2" * 6])
def test_a_secret_split_over_two_chunks_is_masked_wherever_it_is_split(secret: str) -> None:
    raw = f"é {secret}, é".encode()
    for place in range(len(raw)):
        stream = SECRETS.open_stream()
        assert (stream.feed(raw[:place]) + stream.feed(raw[place:]) + stream.end()).decode() == f"é {MASK}, é"


LABEL = "ABCDEFGHI " * 4  # as long as one may be
TOUCHY = [
    f"-----BEGIN {LABEL}PRIVATE KEY-----{TOKEN}-----END {LABEL}PRIVATE KEY-----, done",
    f"-----BEGIN {LABEL}PUBLIC KEY-----{TOKEN}-----END {LABEL}PUBLIC KEY-----, done",
    f"-----BEGIN PRIVATE KEY-----{MASK}{'-' * 9}END PRIVATE KEY{'-' * 9}",
    "Bearer    a1B2a1B2a1B2a1B2a1B2! bearer a1B2a1B2a1B2a1B2a1B! Bearer     a1B2a1B2a1B2a1B2a1B2",
    f"abcde[masked] abcde[mask abcde[ a{MASK}x masked]x x://u:{MASK}@h x://u:[maske]@h",
    f"first line{MASK}second first\n{MASK[:-1]} line first line {KEY}second",
    "secretsk-a1B2a1B2a1B2a1B2 secretask-a1B2a1B2a1B2a1B2 secretsk-a1B2a1B2a1B2a1B ghp_a1B2a1B2a1B2a1B",
    f"AKIAIOSFODNN7EXAMPLsecret AIza{'a1' * 15} AIza{'a1' * 14}b ya29.{'a' * 10} ya29.{'a' * 9}",
    "https://me@corp:pw@host https://:@ https://me@host:80 :// :/ : https://a:b/@",
]


@pytest.mark.parametrize("text", TOUCHY)
def test_it_does_not_matter_where_a_touchy_text_is_split(text: str) -> None:
    raw, whole = text.encode(), SECRETS.mask(text).encode()
    for place in range(len(raw)):
        stream = SECRETS.open_stream()
        assert stream.feed(raw[:place]) + stream.feed(raw[place:]) + stream.end() == whole


@pytest.mark.thorough
@given(
    st.lists(st.one_of(st.binary(), st.sampled_from([b"sk-", b"gl", b"://", b"-----BEGIN ", b"[", KEY[:9].encode()])))
)
def test_what_holds_no_secret_passes_byte_by_byte_as_it_is(pieces: list[bytes]) -> None:
    raw = b"\xff".join(pieces)
    assume(b"@" not in raw)  # which makes a credential of what stands between :// and it
    assert streamed(SECRETS, raw, repeat(3)) == raw


def test_a_line_without_secrets_is_shown_at_once() -> None:
    stream = SECRETS.open_stream()
    for line in (
        b"$ make -j2 check\n",
        b"see https://host.example:8080/a\n",
        b"the bearer of\n",
        b"-----BEGIN CERTIFICATE-----\n",
    ):
        assert stream.feed(line) == line
        assert stream.pending_bytes == 0


def test_a_private_key_is_swallowed_while_it_comes() -> None:
    stream = SECRETS.open_stream()
    assert stream.feed(b"key: -----BEGIN RSA PRIVATE KEY-----\nMII") == f"key: {MASK}".encode()
    assert [stream.feed(b"Eow/+IBAAKCAQ\n") for _ in range(100)] == [b""] * 100
    assert stream.feed(b"\n-----END RSA PRIVATE ") == b""
    assert stream.feed(b"KEY-----\nnext\n") == b"\nnext\n"


def test_a_private_key_whose_end_never_comes_is_never_shown() -> None:
    stream = SECRETS.open_stream()
    assert stream.feed(PEM[:-1].encode()) == MASK.encode()
    assert stream.feed(b" and more") == b""
    assert stream.end() == b""


ENDLESS = {
    "a word": b"a",
    "white space": b" ",
    "a token": b"glpat-aaaa",
    "a private key": b"-----BEGIN PRIVATE KEY-----",
    "the beginnings of private keys": b"-----BEGIN ",
    "a password": b"://a:a:a",
    "what could be a host": b"://a:a@aaaa",
    "colons": b"a:",
    "signs": b"://@@",
    "brackets": b"[mask",
    "masks": MASK.encode(),
    "bearers": b"Bearer ",
    "token letters": b"sk-",
    "words that are no tokens": b"ask-",
    "a value": KEY.encode(),
    "the beginnings of a value": KEY[:-1].encode(),
    "the beginning of a value": b"first line",
    "bytes that are not text": b"\xff\xfe",
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("then", ["itself", also("white space"), also("letters")])
def test_what_is_held_back_is_bounded_and_an_endless_text_takes_no_endless_time(name: str, then: str) -> None:
    """Were the work to grow with more than the length, even within a chunk, this would not end in time."""
    size = 1024 * 1024 if ALL else 4 * (ADDRESS_BYTES + SECRET_SPREAD_BYTES)
    unit = {"itself": ENDLESS[name], "white space": b" \n", "letters": b"aA1"}[then]
    raw = ENDLESS[name] + unit * (size // len(unit))
    stream = SECRETS.open_stream()
    most = 0
    for chunk in chunks(raw, repeat(30_000 if ALL else 3_000)):
        stream.feed(chunk)
        most = max(most, stream.pending_bytes)
    assert most <= ADDRESS_BYTES + SECRET_SPREAD_BYTES < MASKING_HELD_BYTES


@pytest.mark.thorough
@pytest.mark.parametrize("character", ["\N{GRINNING FACE}", "\x01", "€", "a"])
def test_the_longest_value_in_its_longest_spelling_can_be_held_back(character: str) -> None:
    value = (character * SECRET_CHARS)[: SECRET_CHARS - 1] + "z"
    secrets = Secrets([value])
    for written in (quote(value, safe=""), value.encode("unicode_escape").decode(), value):
        stream = secrets.open_stream()
        stream.feed(written[:-1].encode())
        assert stream.pending_bytes <= MASKING_HELD_BYTES
        assert secrets.mask(written[:-1] + "!") == written[:-1] + "!"
    assert secrets.mask(f"{quote(value, safe='')} {value}") == f"{MASK} {MASK}"


def test_the_bounds_of_masking_fit_together() -> None:
    longest_spelling = 12 * SECRET_CHARS  # a character of four bytes in an address, or two escapes in JSON
    assert longest_spelling + SECRET_SPREAD_BYTES + len(MASK) <= MASKING_HELD_BYTES
    assert ADDRESS_BYTES < MASKING_HELD_BYTES
    assert limits.SECRET_CHARS > 4096, "a private key of 4096 bits, which is masked in one piece"


GAP = " " * SECRET_SPREAD_BYTES
AT_THE_BOUNDS = [
    f"a first line{GAP}  second b",
    f"a first line{GAP}{GAP}{GAP}second b",
    f"a first{GAP}{GAP}line{GAP}{GAP}second b",
    f"a first{GAP}{GAP}line{GAP}{GAP}seco",
    f"a first{GAP}{GAP}line{GAP}{GAP}other b",
    f"a first{GAP}{GAP}liner{GAP} b",
    f"a first{GAP[:99]}{KEY}{GAP}",
    *(
        f"x://{'u' * user}:{'p' * (ADDRESS_BYTES - user + more)}{end}"
        for user in (0, 9)
        for more in (-3, -1, 0, 1)
        for end in ("@h c", " c")
    ),
    f"x://{'p' * 3 * ADDRESS_BYTES}:p@h/c",
    f"x://u:p@{'h' * 3 * ADDRESS_BYTES}@h/c",
    *(f"x://u:{'p' * (ADDRESS_BYTES - less)}{MASK}@h c" for less in range(14)),
]


@pytest.mark.parametrize("number", range(len(AT_THE_BOUNDS)))
@pytest.mark.parametrize("size", [also(61), 1000, also(5000)])
def test_where_a_bound_forces_a_decision_stream_and_whole_text_decide_alike(number: int, size: int) -> None:
    text = AT_THE_BOUNDS[number]
    assert streamed(SECRETS, text.encode(), repeat(size)).decode() == SECRETS.mask(text)
    assert SECRETS.mask(SECRETS.mask(text)) == SECRETS.mask(text)


@pytest.mark.parametrize("less", [-2, also(-1), 0, also(1), also(2), also(3), also(4), also(5)])
@pytest.mark.parametrize("end", ["@h c", " c", f"{MASK}@h c"])
def test_it_does_not_matter_where_an_address_of_the_longest_kind_is_split(less: int, end: str) -> None:
    text = f"x://u:{'p' * (ADDRESS_BYTES - 2 - less)}{end}"
    raw, whole = text.encode(), SECRETS.mask(text).encode()
    for place in (*range(8), *range(ADDRESS_BYTES - 12, len(raw))):
        stream = SECRETS.open_stream()
        assert stream.feed(raw[:place]) + stream.feed(raw[place:]) + stream.end() == whole


def test_two_streams_of_the_same_secrets_know_nothing_of_each_other() -> None:
    one, other = SECRETS.open_stream(), SECRETS.open_stream()
    assert isinstance(one, MaskedStream)
    assert (one.feed(KEY[:9].encode()), other.feed(KEY[9:].encode())) == (b"", KEY[9:].encode())
    assert one.end() == KEY[:9].encode()
