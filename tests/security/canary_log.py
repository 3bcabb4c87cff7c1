"""A job's log in which a project printed every credential: in every spelling, and torn where pieces of it end."""

import base64
from collections.abc import Iterator

from hummingbird.core.limits import HTTP_PIECE_BYTES
from tests.security.canaries import TIERS, ways

_FREQUENT = 16 * 1024  # a credential lies across each multiple of it, so across the borders of all larger pieces


def log_pieces(tail: bytes) -> Iterator[bytes]:
    """A job log in HTTP chunks: each spelling of each credential in one of them, then torn over two; then ordinary
    lines with credentials across the borders of pieces; `tail` is why it failed."""
    texts = [spelt for value in TIERS.values() for spelt in ways(value).values()]
    texts += [
        base64.b64encode(f"{'x' * n}{value}:rest".encode()).decode() for value in TIERS.values() for n in range(3)
    ]
    for text in texts:
        yield f"$ export OURS='{text}' # whole\n".encode()
        half = len(text) // 2
        yield f"$ curl --header 'Token: {text[:half]}".encode()
        yield f"{text[half:]}' torn\n".encode()
    yield from _across_borders()
    failed = " ".join(TIERS.values())
    yield (
        b"LogDifferTest > testGithubParsing() FAILED\n    java.lang.IllegalArgumentException: "
        + failed.encode()
        + b"\n"
    )
    yield tail


def _across_borders() -> Iterator[bytes]:
    made, values = 0, list(TIERS.values())
    while made < HTTP_PIECE_BYTES + 2 * _FREQUENT:
        value = values[made // _FREQUENT % len(values)].encode()
        fill = _FREQUENT - len(value)
        ordinary = b"".join(b"step %d of the build is done\n" % number for number in range(made, made + fill))[:fill]
        piece = b" " + ordinary[: fill - len(value) // 2] + value + ordinary[fill - len(value) // 2 :]
        yield piece
        made += len(piece)


# how everything is set up
