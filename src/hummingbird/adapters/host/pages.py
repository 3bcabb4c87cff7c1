"""Files and folders as a model reads them: lines with their numbers, names in order, and what was left out."""

import os
import stat

from hummingbird.adapters.host.below import OWN_NAMES, Below, Spot, shown
from hummingbird.domain.host_limits import LISTED_NAMES, READ_LINE_CHARS, READ_LINES, SHOWN_BYTES

_LOOKED_AT = 1 << 16  # for a NUL, by which git too tells what is no text


def numbered(path: str, content: bytes, offset: int, limit: int | None) -> str:
    """Lines from `offset` on, which counts from 1."""
    if b"\0" in content[:_LOOKED_AT]:
        return f"[{path}: {len(content)} bytes that are no text; look at it with a command such as file or xxd]"
    text = content.decode("utf-8", "replace")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = max(1, offset)
    wanted = lines[first - 1 : first - 1 + min(limit or READ_LINES, READ_LINES)]
    kept = _fitting([f"{number:6}\t{_shortened(line)}" for number, line in enumerate(wanted, first)])
    said = _said(path, len(lines), first, len(kept))
    if "\r\n" in text:
        said += " Lines end in CR LF."
    if b"\xef\xbf\xbd" not in content and "\ufffd" in text:
        said += " Some bytes are no UTF-8 and shown as \ufffd."
    return "\n".join([f"[{said}]", *kept])


def _fitting(lines: list[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > SHOWN_BYTES and kept:
            break
        kept.append(line)
    return kept


def _shortened(line: str) -> str:
    line = line.removesuffix("\r")
    more = len(line) - READ_LINE_CHARS
    return line if more <= 0 else f"{line[:READ_LINE_CHARS]}[… {more} more characters]"


def _said(path: str, lines: int, first: int, count: int) -> str:
    if not lines:
        return f"{path} is empty."
    if not count:
        return f"{path} has {lines} lines, none from {first} on."
    last = first + count - 1
    if count == lines:
        return f"{path}, all {lines} lines."
    return f"{path}, lines {first} to {last} of {lines}." + (f" Go on with offset {last + 1}." if last < lines else "")


def listed(below: Below, spot: Spot, offset: int, limit: int | None) -> str:
    with below.folder(spot) as folder, os.scandir(folder) as found:
        names = sorted((os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found)
        names = [(name, is_folder) for name, is_folder in names if name.decode("utf-8", "replace") not in OWN_NAMES]
        first = max(1, offset)
        page = names[first - 1 : first - 1 + min(limit or LISTED_NAMES, LISTED_NAMES)]
        lines = [f"{shown(name)}{'/' if is_folder else _suffix(folder, name)}" for name, is_folder in page]
    more = len(names) - (first - 1) - len(page)
    said = f"[{spot.shown}, a folder with {len(names)} names."
    return "\n".join([said + (f" Go on with offset {first + len(page)}.]" if more > 0 else "]"), *lines])


def _suffix(folder: int, name: bytes) -> str:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return f" -> {shown(os.readlink(name, dir_fd=folder))}"
    except OSError:
        return ""
    return f"  {found.st_size}" if stat.S_ISREG(found.st_mode) else "  [no regular file]"
