"""Secrets that stand nowhere else, every way in which they could be written down, and every place to look for them."""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote, quote_plus

CANARIES = {
    "orchestrator of all": "Zq7+vW3/kPx9=all.writes",
    "orchestrator of the project": "Hn4+tY8/sDf2=own.writes",
    "tool": "Kc5+rB1/gVz6=only.reads",
    "webhook": "/Jp9+xM4/wLq3=of.the.hook",
    "signing": "whsec_" + base64.b64encode(b"Ue2xN7aT5oSy8Fi3 signs").decode(),
    "vendor": "Wd6+bG3/mCh1=of.the.vendor",
}
# one for each tier of tokens that a deployment has
TIERS = CANARIES | {
    "testing farm": "Tf2+yH7/jRw5=of.the.farm",
    "konflux": "Kx8+uE4/zNb3=of.the.cluster",
    "dashboard": 'Dq9"vF&2<Lm\\6=of.the.board',
    "aws": "/Aw3+sK9xPb7/eJc5hTz2+Ug8yRn4vXd1mQo6fLi",  # may begin with a slash, and is no path
    "sentry": "https://Sn5tV8cR2wK7yB4m@sentry.example.invalid/42",
}
_MARKDOWN = re.compile("[\\\\*`~\u200b\u200c\u200d\u2060]|<[^<>]*>")


@cache
def ways(value: str) -> dict[str, str]:
    """By the name of the way, how it looks written so. Base64 shows another face at each of three places in a text."""
    raw, json_text = value.encode(), json.dumps(value)[1:-1]
    return {
        "plain": value,
        "in JSON": json_text,
        "in JSON in JSON": json.dumps(json_text)[1:-1],
        "in JSON for HTML": re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", json_text),
        "in JSON of PHP": json_text.replace("/", "\\/"),
        "in a path": quote(value, safe=""),
        "in a query": quote_plus(value),
        "in an address of small letters": re.sub("%..", lambda escape: escape[0].lower(), quote(value, safe="")),
        "in hexadecimal": raw.hex(),
        "in hexadecimal of capitals": raw.hex().upper(),
        "in Base64": base64.b64encode(raw).decode(),
        "in Base64 for addresses": base64.urlsafe_b64encode(raw).decode(),
        **{f"in Base64 behind {before}": _inside(raw, before) for before in range(3)},
    }


def _inside(raw: bytes, before: int) -> str:
    """The letters that hold nothing but the value, when so many bytes stand before it and others behind."""
    first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
    return base64.b64encode(bytes(before) + raw + bytes(3)).decode()[first:last]


def spellings(value: str) -> set[str]:
    return set(ways(value).values())


def found(text: str, names: Iterable[str] = CANARIES) -> list[str]:
    """Whose value it tells, also between signs that Markdown draws nothing for."""
    shown = _MARKDOWN.sub("", text)
    return [name for name in names if any(one in text or one in shown for one in spellings(TIERS[name]))]


def files(folder: Path) -> Iterator[tuple[str, str]]:
    """Everything below it, unpacked where it is packed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            yield str(path), (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("latin-1")
