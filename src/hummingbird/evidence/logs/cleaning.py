"""A log line as its author wrote it: without what terminals, runners and build tools put around it (V2).

Works on one line at a time, so numbers of lines never change. Does not know which lines matter.
"""

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?:]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+][A-Za-z0-9]|[=>78cDEHMNOZ])"
    r"|[\x00-\x07\x0e-\x1a\x7f]"
)
# only what runners write: an application's own time stamp is part of what it said
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_PREFIX = re.compile(
    r"\ufeff?(?:"
    # GitHub (with job and step before it), GitLab (with the stream behind it), kubectl
    rf"(?:[\w .()/-]{{1,60}}\t[\w .()/:-]{{1,80}}\t)?\ufeff?{_STAMP}(?: [0-9a-f]{{2}}[OE](?:[ +]|$))? ?"
    r"|\[step-[\w-]{1,60}\] "  # tkn
    r"|\[[\w-]{1,60} : [\w-]{1,60}\] "  # tkn, a whole pipeline
    r"|(?:DEBUG|INFO|WARNING|ERROR) \w+\.py:\d+: +"  # mock
    r"|\[[ \d]{1,6}\.\d{6}\] "  # the kernel
    r")"
)
_MARKERS = re.compile(r"(?:section_(?:start|end):\d+:[\w.-]+(?:\[[^\]]*\])?|travis_(?:fold|time):[\w:=.,-]+)")
# Codes for red, also bold or bright: build tools paint in it what they want seen.
RED = re.compile(rb"\x1b\[(?:\d+;)*(?:31|91)(?:;\d+)*m")
GREEN = re.compile(rb"\x1b\[(?:\d+;)*(?:32|92)(?:;\d+)*m")
_WRITTEN_OVER = 3
_PROGRESS = re.compile(r"\d%|\d+/\d+|\.\.\.$")


def cleaned(raw: bytes) -> str:
    """Of a line that was overwritten (progress bars), what stood there at the end."""
    text = raw.decode("utf-8", "replace").rstrip()
    if not text.isprintable():
        text = _last_written(text) if "\r" in text else _plain(text)
    head = text[:1]
    if head.isdigit() or head in "[DIWE\ufeff" or "\t" in text[:64]:
        text = _without_prefixes(text)
    return text.rstrip()


def _last_written(text: str) -> str:
    """Sections and folds end their marker with a carriage return and put the title behind it. Where two or three
    different things were written over each other, all of them are told, each on a line of its own."""
    written: list[str] = []  # the last first
    for piece in dict.fromkeys(reversed(text.split("\r"))):
        plain = _MARKERS.sub("", _without_prefixes(_plain(piece))).rstrip()
        if plain.strip() and plain not in written:
            written.append(plain)
        if len(written) > _WRITTEN_OVER:
            return written[0]
    if any(_PROGRESS.search(piece) for piece in written):
        return written[0]
    return "\n".join(reversed(written))


def _plain(text: str) -> str:
    text = _ESCAPES.sub("", text)
    return _without_backspaced(text) if "\x08" in text else text


def _without_backspaced(text: str) -> str:
    """A backspace takes the letter before it; at the start of the line there is none to take."""
    first, *others = text.split("\x08")
    kept = list(first)
    for piece in others:
        del kept[-1:]
        kept += piece
    return "".join(kept)


def _without_prefixes(text: str) -> str:
    """One or two deep: a runner's time stamp before a tool's own prefix."""
    for _ in range(2):
        found = _PREFIX.match(text)
        if found is None or found.end() == 0:
            return text
        text = text[found.end() :]
    return text
