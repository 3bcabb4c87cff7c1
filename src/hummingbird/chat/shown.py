"""Text of others on a screen: models, tools and file names must not move the cursor, set titles or ring bells.

Everything that is shown passes here; what a terminal would act upon is written out instead.
"""

from enum import StrEnum

from prompt_toolkit.utils import get_cwidth

from hummingbird.evidence.visible import visible


class Tone(StrEnum):
    """How a line looks. Without colours they all look the same."""

    PLAIN = "plain"
    DIM = "dim"
    BOLD = "bold"
    GOOD = "good"
    BAD = "bad"
    ASKED = "asked"


_CODES = {Tone.DIM: "2", Tone.BOLD: "1", Tone.GOOD: "32", Tone.BAD: "31", Tone.ASKED: "1;33"}


def shown(text: str) -> str:
    """Several lines; nothing but newlines is left of what is not printable."""
    return "\n".join(map(visible, text.replace("\r\n", "\n").split("\n")))


def coloured(text: str, tone: Tone) -> str:
    """ANSI around each line, so that no pager or wrapped line carries a colour on. `text` is safe to be shown."""
    code = _CODES.get(tone)
    if code is None:
        return text
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in text.split("\n"))


def fitted(line: str, columns: int) -> str:
    """One line that does not wrap: cut with an ellipsis where it is wider."""
    if len(line) <= columns and line.isascii():
        return line
    if get_cwidth(line) <= columns:
        return line
    return wrapped(line, max(1, columns - 1))[0] + "…"


def wrapped(line: str, columns: int) -> list[str]:
    """As many lines as it takes."""
    if line.isascii():
        return [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
    rows, row, width = [], "", 0
    for letter in line:
        cells = get_cwidth(letter)
        if width + cells > columns:
            rows.append(row)
            row, width = "", 0
        row, width = row + letter, width + cells
    return [*rows, row]


def tail(text: str, columns: int, rows: int) -> list[str]:
    """The last rows of a text that is still growing, at the price of those rows alone. Rows break where they would if
    all of it was wrapped, so that what stands there does not move with each letter."""
    cut = max(0, len(text) - columns * rows)
    begins = text.rfind("\n", 0, cut) + 1
    cut -= (cut - begins) % columns
    lines = [row for line in shown(text[cut:]).split("\n") for row in wrapped(line, columns)]
    return lines[-rows:]
