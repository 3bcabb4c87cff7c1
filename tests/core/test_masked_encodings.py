"""A known secret is masked in whatever way tools write its bytes, and wherever a chunk of a stream ends."""

import base64
import html
import re
from collections.abc import Callable
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.masking import MASK, Secrets

pytestmark = pytest.mark.every_case

KEY = "k3y-of-no-known-shape/äß"
OTHER = "an0ther~s3cret-of-f0rty-letters-all-in-all"
SECRETS = Secrets([KEY, OTHER])
BEFORE = b"some words that nobody minds, then user:"
STAMP = "2025-01-01T12:00:00.123456Z 01O "


def wrap(text: str, width: int, between: str = "\n") -> str:
    return between.join(text[at : at + width] for at in range(0, len(text), width))


def as_base64(raw: bytes, *, safe: bool = False) -> str:
    return (base64.urlsafe_b64encode if safe else base64.b64encode)(raw).decode()


def dump(raw: bytes, form: str) -> str:
    """Write bytes as the named tool does, sixteen in a line."""
    lines = []
    for at in range(0, len(raw), 16):
        part = raw[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        pairs = [f"{byte:02x}" for byte in part]
        both = ["".join(pairs[n : n + 2]) for n in range(0, len(pairs), 2)]
        words = [f"{int.from_bytes(part[n : n + 2], 'little'):04x}" for n in range(0, len(part), 2)]
        octal = [f"{int.from_bytes(part[n : n + 2], 'little'):06o}" for n in range(0, len(part), 2)]
        lines.append(
            {
                "xxd": f"{at:08x}: {' '.join(both):<39}  {text}",
                "xxd -g1": f"{at:08x}: {' '.join(pairs):<47}  {text}",
                "xxd -u": f"{at:08X}: {' '.join(pairs).upper():<47}  {text}",
                "xxd -i": "  " + ", ".join(f"0x{pair}" for pair in pairs) + ",",
                "hexdump -C": f"{at:08x}  {' '.join(pairs[:8])}  {' '.join(pairs[8:])}  |{text}|",
                "hexdump": f"{at:07x} {' '.join(words)}",
                "od -tx1": f"{at:07o} {' '.join(pairs)}",
                "od -An -tx1": " " + " ".join(pairs),
                "od -x": f"{at:07o} {' '.join(words)}",
                "od": f"{at:07o} {' '.join(octal)}",
                "od -b": f"{at:07o} {' '.join(f'{byte:03o}' for byte in part)}",
                "od -c": f"{at:07o}" + "".join(f"   {chr(b)}" if 32 <= b < 127 else f" {b:03o}" for b in part),
                "with stamps": f"{STAMP}{at:08x}  {' '.join(pairs[:8])}  {' '.join(pairs[8:])}  |{text}|",
            }[form]
        )
    return "\n".join(lines)


TOOLS = [
    "xxd",
    "xxd -g1",
    "xxd -u",
    "xxd -i",
    "hexdump -C",
    "hexdump",
    "od -tx1",
    "od -An -tx1",
    "od -x",
    "od",
    "od -b",
]
TOOLS += ["od -c", "with stamps"]
ESCAPES: dict[str, Callable[[str], str]] = {
    "percent": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "percent in small letters": lambda value: "".join(f"%{byte:02x}" for byte in value.encode()),
    "percent here and there": lambda value: "".join(
        f"%{ord(c):02x}" if n % 3 == 0 and c.isascii() else c for n, c in enumerate(value)
    ),
    "u": lambda value: "".join(f"\\u{ord(c):04x}" for c in value),
    "u in large letters": lambda value: "".join(f"\\u{ord(c):04X}" for c in value),
    "u in braces": lambda value: "".join(f"\\u{{{ord(c):x}}}" for c in value),
    "U": lambda value: "".join(f"\\U{ord(c):08x}" for c in value),
    "x": lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode()),
    "octal": lambda value: "".join(f"\\{byte:03o}" for byte in value.encode()),
    "html": lambda value: "".join(f"&#{ord(c)};" for c in value),
    "html hexadecimal": lambda value: "".join(f"&#x{ord(c):x};" for c in value),
    "html of what needs it": html.escape,
}


def check(text: str, *shown: str) -> None:
    """Nothing of the secret is left that could be read, and a stream shows the same wherever it is cut."""
    masked = SECRETS.mask(text)
    assert MASK in masked
    assert SECRETS.mask(masked) == masked
    for words in shown:
        assert words in masked
    raw = text.encode()
    for size in (1, 29):
        stream = SECRETS.open_stream()
        chunks = [stream.feed(raw[at : at + size]) for at in range(0, len(raw), size)]
        assert (b"".join(chunks) + stream.end()).decode() == masked


def decoded(masked: str) -> bytes:
    letters = re.sub(r"\s", "", masked.partition(MASK)[0])
    return base64.b64decode(letters + "A" * (-len(letters) % 4), altchars=b"-_" if {*letters} & {*"-_"} else None)


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("before", [38, 39, 40])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\n    ", "\\n", f"\n{STAMP}"], ids=repr)
@pytest.mark.parametrize("safe", [False, True])
def test_wrapped_base64_is_masked(width: int, before: int, between: str, *, safe: bool) -> None:
    text = wrap(as_base64(BEFORE[:before] * (width // 64) + KEY.encode() + b" behind" * 20, safe=safe), width, between)
    check(f"a: {text}\nthe end\n", "\nthe end\n")
    assert KEY[:4].encode() not in decoded(SECRETS.mask(text))


def test_wrapped_hexadecimal_is_masked() -> None:
    check(wrap((BEFORE + OTHER.encode() + BEFORE).hex(), 60) + "\nthe end\n", "\nthe end\n")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("before", [0, 15])
def test_dump_is_masked(tool: str, before: int) -> None:
    text = dump(BEFORE[:before] + KEY.encode() + b" and so on" * 3, tool)
    check(f"$ {tool}\n{text}\nthe end\n", f"$ {tool}\n", "\nthe end\n")
    masked = SECRETS.mask(f"{text}\n")
    assert "known" not in masked
    assert not re.search(r"\b6b ?33\b|\b336b\b|153 063|k   3", masked)


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("value", [KEY, OTHER])
def test_escaped_value_is_masked(escape: str, value: str) -> None:
    escaped = ESCAPES[escape](value)
    assert SECRETS.mask(f"a {escaped}, b") == f"a {MASK}, b"
    check(f"100% of a\\b & c: {escaped}, b", "100% of a\\b & c: ", ", b")


def test_pair_of_escapes_is_one_letter() -> None:
    assert Secrets(["pass\N{GRINNING FACE}word"]).mask("a pass\\ud83d\\ude00word b") == f"a {MASK} b"


@pytest.mark.parametrize("colour", ["\x1b[0m", "\x1b[1;31m", "\x1b[K", "\x1b[38;5;196m\x1b[1m", "\x1b]8;;x\x07"])
@pytest.mark.parametrize("step", [1, 5, 11])
def test_value_split_by_colours_is_masked(colour: str, step: int) -> None:
    check(f"a {wrap(KEY, step, colour)} b\x1b[0m c", "a ", " b\x1b[0m c")


def test_dump_of_long_value_is_masked() -> None:
    value = "".join(f"{number:x}." for number in range(400, 1000))
    masked = Secrets([value]).mask(dump(value.encode(), "hexdump -C"))
    assert len(masked) < 300


@pytest.mark.parametrize(
    "text",
    [
        dump(b"nothing that anybody would hide, in four lines of sixteen bytes", "hexdump -C"),
        wrap(as_base64(b"nothing that anybody would hide " * 9), 76),
        "%6b%33 \\u006b\\x33 &#107; \x1b[1mk3y\x1b[0m-of",
        "12:30:45 99 100 101 ab cd ef 0000 1111 2222\n" * 3,
    ],
)
def test_innocent_encodings_stay(text: str) -> None:
    assert SECRETS.mask(text) == text


WHOLE = [
    *(escape(KEY) for escape in ESCAPES.values()),
    *(dump(BEFORE[:7] + KEY.encode(), tool) + "\n" for tool in TOOLS),
    wrap(as_base64(BEFORE + OTHER.encode()), 64),
    wrap(KEY, 3, "\x1b[0m"),
    KEY,
    STAMP,
    "\n",
    "\r\n",
    " ",
    "%",
    "\\",
    "\x1b[",
    "ab cd ef\n",
    "00000000: ",
    "k3y",
]


@given(
    st.lists(st.one_of(st.sampled_from(WHOLE), st.text(max_size=4)), max_size=6),
    st.lists(st.integers(1, 90), min_size=1),
)
def test_stream_shows_what_the_whole_text_shows(pieces: list[str], sizes: list[int]) -> None:
    raw = "".join(pieces).encode()
    stream, shown, at = SECRETS.open_stream(), b"", 0
    for size in cycle(sizes):
        if at >= len(raw):
            break
        shown += stream.feed(raw[at : at + size])
        at += size
    assert (shown + stream.end()).decode() == SECRETS.mask(raw.decode())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "unit",
    [
        b"%6b",
        b"\\u006b",
        b"&#107;",
        b"k\x1b[0m",
        b"6b 33 79 2d\n",
        b"00000000: 6b33\n",
        b"A" * 76 + b"\n",
        b"ab cd ef ",
    ],
    ids=repr,
)
def test_endless_encodings_are_bounded_in_time_and_in_what_is_held(unit: bytes) -> None:
    stream, most = SECRETS.open_stream(), 0
    for _ in range(4):
        stream.feed(unit * (32_768 // len(unit)))
        most = max(most, stream.pending_bytes)
    assert most < 16_384
