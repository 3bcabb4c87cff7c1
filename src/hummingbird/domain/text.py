"""Text from outside, made safe to store and send: Python strings may hold lone surrogates, UTF-8 may not."""


def plain(text: str) -> str:
    """The same text; what UTF-8 cannot hold becomes a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def shortened(text: str, chars: int) -> str:
    """At most `chars` characters on one line, for sentences that quote somebody."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1] + "…"
