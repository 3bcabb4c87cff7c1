"""What GitLab makes of a file when somebody applies a suggestion with a click: written from how its releases do it, and
apart from our own code, which it judges."""

import re

_BLANK = re.compile(r"[\s\u0085\u00a0\u3000]*")


def clicked(content: str, line: int, above: int, block: str) -> str:
    """`block` is what stands in the fence. Lines end with a line feed; the text of a block has no last one."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", content)
    text = block.removesuffix("\n")
    begin, end = line - above - 1, line
    if _BLANK.fullmatch(text):
        put = ""
    else:
        found = re.search(r"\r\n|\r|\n", lines[end - 1])
        put = text + (found[0] if found else "")
    return "".join(lines[:begin]) + put + "".join(lines[end:])
