"""What a model supplies stays below the operator's addresses, whoever reads it."""

from urllib.parse import unquote, urlsplit

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hummingbird.clients.address_policy import UrlAllowList
from hummingbird.core.errors import CallDenied, UsageError
from hummingbird.core.limits import URL_CHARS

pytestmark = pytest.mark.every_case

BASES = ("https://artifacts.example/", "https://osci.example/testing-farm/", "http://plain.example:8080/logs/")
ALLOWED = UrlAllowList(BASES)


@pytest.mark.parametrize(
    ("given_url", "asked"),
    [
        ("https://artifacts.example/id/a.log", "https://artifacts.example/id/a.log"),
        ("HTTPS://Artifacts.Example./id/", "https://artifacts.example/id/"),
        ("https://artifacts.example:443/id", "https://artifacts.example/id"),
        ("http://artifacts.example/id/a.log", "https://artifacts.example/id/a.log"),
        ("http://artifacts.example:80/id", "https://artifacts.example/id"),
        ("https://artifacts.example", "https://artifacts.example/"),
        ("https://osci.example/testing-farm//id///x", "https://osci.example/testing-farm/id/x"),
        ("https://osci.example/other/../testing-farm/id/.", "https://osci.example/testing-farm/id/"),
        ("https://osci.example/%74esting%2Dfarm/a%20b", "https://osci.example/testing-farm/a%20b"),
        ("https://artifacts.example/a?b=c/../d&e=%20", "https://artifacts.example/a?b=c/../d&e=%20"),
        ("https://artifacts.example/grün/[x]|{y}", "https://artifacts.example/gr%C3%BCn/%5Bx%5D%7C%7By%7D"),
        ("https://artifacts.example/c%2b%2B+%3a:", "https://artifacts.example/c%2B%2B+%3A:"),
        ("https://artifacts.example/caf%E9", "https://artifacts.example/caf%E9"),
        ("http://plain.example:8080/logs/a", "http://plain.example:8080/logs/a"),
    ],
)
def test_what_is_below_a_base_is_asked_for_in_one_spelling(given_url: str, asked: str) -> None:
    assert ALLOWED.admit(given_url) == asked
    assert ALLOWED.admit(asked) == asked


HOSTILE = [
    "",
    "artifacts.example/id",
    "//artifacts.example/id",
    "ftp://artifacts.example/id",
    "file:///etc/passwd",
    "https:artifacts.example/id",
    "https:///artifacts.example/id",
    "https://evil.example/id",
    "https://artifacts.example.evil.example/",
    "https://evil-artifacts.example/",
    "https://xartifacts.example/",
    "https://artifacts.example@evil.example/",
    "https://evil.example@artifacts.example/",
    "https://user:word@artifacts.example/",
    "https://artifacts.example%40evil.example/",
    "https://artifacts.example%2f@evil.example/",
    "https://artifacts.example#@evil.example/",
    "https://evil.example#@artifacts.example/",
    "https://evil.example?@artifacts.example/",
    "https://evil.example\\@artifacts.example/",
    "https://artifacts.example\\.evil.example/",
    "https://artifacts.example:444/id",
    "https://artifacts.example:0/id",
    "https://artifacts.example:65979/id",
    "https://artifacts.example:/id",
    "https://artifacts.example:٤٤٣/id",
    "https://artifacts.example..evil/id",
    "https://artifacts.example../id",
    "https://artifacts.example:443:80/id",
    "http://artifacts.example:8080/id",
    "http://artifacts.example:443/id",
    "https://plain.example:8080/logs/a",
    "http://plain.example/logs/a",
    "https://osci.example/",
    "https://osci.example/testing-farm",
    "https://osci.example/testing-farm-evil/id",
    "https://osci.example/testing-farm/../id",
    "https://osci.example/testing-farm/%2e%2e/id",
    "https://osci.example/testing-farm/.%2E/id",
    "https://osci.example/testing-farm/..%2fid",
    "https://osci.example/testing-farm/..%5cid",
    "https://osci.example/testing-farm/..\\id",
    "https://osci.example/testing-farm/%252e%252e/id",
    "https://osci.example/testing-farm/%25252e",
    "https://osci.example/testing-farm//../id",
    "https://osci.example/testing-farm/..;/id",
    "https://osci.example/testing-farm/a%00b",
    "https://osci.example/testing-farm/a%0d%0aX:1",
    "https://osci.example/testing-farm/%zz",
    "https://osci.example/TESTING-FARM/id",
    "https://osci.example/testing-farm%2fid",
    "https://artifacts.example/a b",
    " https://artifacts.example/a",
    "https://artifacts.example/a\n",
    "https://artifacts.example/a\tb",
    "https://artifacts.example/a\x00",
    "https://artifacts.example/a\u200b",
    "https://artifacts.example/\u202e",
    "https://artifacts.example/#frag",
    "https://artifacts．example/",
    "https://artifacts。example.evil/",
    "https://ａrtifacts.example/",
    "https://artifacts.example／evil/",
    "https://artifacts.example/．．/",
    "https://аrtifacts.example/",  # a Cyrillic а
    "https://osci.example/testing‐farm/",
    "https://127.0.0.1/id",
    "https://127.1/id",
    "https://2130706433/id",
    "https://0x7f000001/id",
    "https://0x7f.0.0.1/id",
    "https://0177.0.0.1/id",
    "https://017700000001/id",
    "https://127.0.0.1./id",
    "https://0/id",
    "https://169.254.169.254/latest/meta-data/",
    "https://8.8.8.8/id",
    "https://[::1]/id",
    "https://[::]/id",
    "https://[::ffff:127.0.0.1]/id",
    "https://[::ffff:7f00:1]/id",
    "https://[fe80::1%25eth0]/id",
    "https://[fe80::1%eth0]/id",
    "https://[2001:db8::1]:443/id",
    "https://[v1.x]/id",
    "https://[::1",
    "https://::1/id",
    "https://localhost/id",
    "https://artifacts.example/" + "a" * URL_CHARS,
    "javascript:alert(1)",
    "https://artifacts.example/a\ud800",
]


def test_anything_else_is_denied_with_the_addresses_that_are_allowed() -> None:
    assert [url for url in HOSTILE if not denied_well(url)] == []


def denied_well(url: str) -> bool:
    """Whether it is denied with a sentence that can be shown, names what is allowed and no password."""
    try:
        ALLOWED.admit(url)
    except CallDenied as denied:
        sentence = str(denied)
        sentence.encode()
        return sentence.isprintable() and all(base in sentence for base in BASES) and "word@" not in sentence
    return False


def test_an_address_literal_is_allowed_only_where_the_operator_wrote_that_very_one() -> None:
    allowed = UrlAllowList(("http://127.0.0.1:8080/a", "http://[::1]:81/"), private=True)
    assert allowed.bases == ("http://127.0.0.1:8080/a/", "http://[::1]:81/")
    assert allowed.admit("http://127.0.0.1:8080/a/b") == "http://127.0.0.1:8080/a/b"
    assert allowed.admit("http://[0:0:0::1]:81/b") == "http://[::1]:81/b"
    for other in ("127.0.0.2", "127.1", "0x7f.0.0.1", "[::ffff:127.0.0.1]", "localhost", "0177.0.0.1", "127.0.0.1%00"):
        with pytest.raises(CallDenied):
            allowed.admit(f"http://{other}:8080/a/b")


@pytest.mark.parametrize(
    "base",
    [
        "artifacts.example",
        "https://user:word@artifacts.example/",
        "https://artifacts.example/?a",
        "https://artifacts.example/#a",
        "https://*.example/",
        "http://127.0.0.1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/",
    ],
)
def test_an_operators_base_that_makes_no_sense_is_refused_at_once(base: str) -> None:
    with pytest.raises(UsageError) as caught:
        UrlAllowList((base,), private=base.endswith("169.254.169.254/"))
    assert "word" not in str(caught.value)


@pytest.mark.parametrize("host", ["169.254.170.2", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:a9fe:a9fe]"])
def test_a_metadata_service_cannot_be_allowed(host: str) -> None:
    with pytest.raises(UsageError, match=r"name a public host\.$"):
        UrlAllowList((f"http://{host}/",), private=True)


def test_without_bases_nothing_is_allowed() -> None:
    with pytest.raises(CallDenied, match="the operator allows no addresses here"):
        UrlAllowList(()).admit("https://artifacts.example/")


HOSTS = st.sampled_from(
    ["osci.example", "OSCI.example.", "osci.example:443", "evil.example", "[::1]", "127.1", "osci.example@evil"]
)
DOTS = [".", "..", "%2e", "%2E%2e", ".%2e", "%252e", "..;"]
MARKS = ["%2f", "%5c", "\\", ";", "@", ":", "//", "?", "#", "&", "=", "%00", "%25", "%", " ", "\t", ""]
PARTS = st.sampled_from([*DOTS, *MARKS, "testing-farm", "a", "%61", "ü", "%FF"])
PATHS = st.lists(PARTS, max_size=9).map("/".join) | st.lists(PARTS, max_size=9).map("".join) | st.text(max_size=30)
URLS = st.builds(
    lambda scheme, host, slash, path: f"{scheme}://{host}{slash}{path}",
    st.sampled_from(["https", "http", "HTTPS", "httpſ"]),
    HOSTS | st.text(max_size=12),
    st.sampled_from(["/testing-farm/", "/", "", "\\"]),
    PATHS,
)


GENTLE = st.sampled_from(
    [".", "..", "%2e", "%2E%2e", "testing-farm", "a", "%61", "ü", "%FF", "@", "%3b", ";", "", "%20", "+"]
)
NEAR = st.builds(
    lambda parts, end: "https://osci.example/testing-farm/" + "/".join(parts) + end,
    st.lists(GENTLE, max_size=6),
    st.sampled_from(["", "/", "?a=..", "?", ":", "&"]),
)


@given(URLS | NEAR)
@example("https://osci.example/testing-farm/a/../../testing-farm/%2e./testing-farm/b")
def test_whatever_is_admitted_is_below_a_base_for_every_parser(url: str) -> None:
    try:
        asked = ALLOWED.admit(url)
    except CallDenied:
        return
    split, parsed = urlsplit(asked), httpx2.URL(asked)
    assert (split.scheme, split.hostname, split.port, split.username) == ("https", "osci.example", None, None)
    assert (parsed.scheme, parsed.host, parsed.port, parsed.userinfo) == ("https", "osci.example", None, b"")
    assert str(parsed) == asked
    for path in (split.path, parsed.raw_path.decode().partition("?")[0]):
        assert path.startswith("/testing-farm/")
        meant = unquote(path, errors="surrogateescape")
        assert not {"..", "."} & set(meant.split("/"))
        assert "//" not in meant
        assert unquote(meant, errors="surrogateescape") == meant
    assert ALLOWED.admit(asked) == asked
