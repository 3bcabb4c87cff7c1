"""Makes what a model wrote fit to be posted with the bot's rights (N5, I10): it may be read, and does nothing else.

The text is rewritten until rewriting changes nothing any more, so that what is posted was itself looked at. A text
that does not settle is posted as one block of code; a very long one is not parsed, but made harmless character by
character. Ordinary Markdown looks as before. Pure: knows neither GitLab's address nor who posts.
"""

import html
import re

from hummingbird.adapters.forge.firewall_blocks import DRAWING, Block, Kind, blocks, closed, ends, top_fences
from hummingbird.adapters.forge.firewall_inline import Inline, in_html, strict
from hummingbird.adapters.forge.firewall_signs import JOINER, plain
from hummingbird.adapters.forge.firewall_tags import Tags
from hummingbird.domain.limits import NOTE_CHARS, NOTE_PARSED_CHARS, NOTE_ROUNDS
from hummingbird.domain.secrets import Secrets

CUT = "\n\n*This text was too long for a note and was cut here. The full text is in the session.*"
_QUOTES = re.compile(r"^([^\S\n]*(?:[-+*0-9.)>]+[^\S\n]+)*)(>{3,})", re.MULTILINE)
_CELLS = re.compile(r"(?<!\\)(\|)")
_MATTER = re.compile(r"((?:[^\n]*coding:[^\n]*\n)?\s*)(---|\+\+\+|;;;)([^\n]*)")
_COMMAND = re.compile(r" {0,3}/")
_HIDING = re.compile(rf"\\(?=[!-/:-@\[-`{{-~])|{JOINER}|<[^<>\n]*>")


def safe(markdown: str, secrets: Secrets, marker_prefix: str, most: int = NOTE_CHARS) -> str:
    """At most `most` characters, which has to leave room for the sentence that says that some are missing."""
    text = _trimmed(secrets.mask(plain(markdown)))
    rest = CUT if len(text) > most else ""
    room = most - len(rest)
    for _ in range(NOTE_ROUNDS):
        made = _made(_cut(text, room) if rest else text, secrets, marker_prefix)
        if len(made) + len(rest) <= most:
            return made + rest
        room, rest = room * (most - len(CUT)) // len(made), CUT  # what makes it harmless makes it longer
    return _unmarked(_as_code(_cut(text, most // 4).replace("`", "'")), marker_prefix) + CUT


def _cut(text: str, most: int) -> str:
    """Before a line if one begins nearby; what it leaves open is closed like everything else."""
    room = most - most // 100
    line = text.rfind("\n", most // 2, room + 1)
    return text if len(text) <= room else text[: line if line >= 0 else room]


def _made(text: str, secrets: Secrets, marker_prefix: str) -> str:
    for _ in range(NOTE_ROUNDS):
        parsed = len(text) <= NOTE_PARSED_CHARS
        again = _trimmed(secrets.mask(_rewritten(text) if parsed else _strictly(text)))
        told = _unmarked(_unsaid(again, secrets), marker_prefix)
        if (parsed and told == text and ends(text)) or (not parsed and told == again):
            return told
        text = told
    return _unmarked(_as_code(secrets.mask(text)), marker_prefix)


def _trimmed(text: str) -> str:
    return text.lstrip("\n").rstrip()


def _rewritten(text: str) -> str:
    tags = Tags()
    lines = [line for block in blocks(_without_matter(text)) for line in _block(block, tags)]
    return "\n".join(lines) + tags.rest()


def _strictly(text: str) -> str:
    return "\n".join(line for block in top_fences(_without_matter(text)) for line in _block(block, Tags()))


def _block(block: Block, tags: Tags) -> list[str]:
    if block.kind is Kind.FENCE:
        return closed(block.lines)
    if block.kind is Kind.INDENTED:
        return [_indented(line) for line in block.lines]
    text = _QUOTES.sub(lambda found: found[1] + " ".join(found[2]), "\n".join(block.lines))
    if block.kind is Kind.DOUBT:
        made = strict(text)
    elif block.kind is Kind.HTML:
        made = in_html(text, tags)
    elif block.kind is Kind.ROW:
        made = "\n".join(_row(line, tags) for line in text.split("\n"))
    else:
        made = Inline(text, tags, code=block.kind is Kind.TEXT).safe()
    return [_harmless(line) for line in made.split("\n")]


def _row(line: str, tags: Tags) -> str:
    """Code ends with its cell; if it would not without the table, it is not believed."""
    cells = _CELLS.split(line)
    contested = "\\\\|" in line or any(cell.count("`") % 2 for cell in cells)
    return "".join(cell if cell == "|" else Inline(cell, tags, contested=contested).safe() for cell in cells)


def _indented(line: str) -> str:
    return "    " + line[1:] if re.match(r"\t[^\S\n]*/", line) else line


def _harmless(line: str) -> str:
    """The simple rule that holds whatever was thought of the line: no slash comes first."""
    rest = line.lstrip()
    return JOINER + rest if rest.startswith("/") and _COMMAND.match(line.expandtabs(4)) else line


def _without_matter(text: str) -> str:
    """GitLab hides what stands between such lines at the very beginning, or below a line that names an encoding;
    others read it as something else."""
    matter = _MATTER.match(text)
    if matter is None:
        return text
    line = matter[2] + matter[3]
    plain_line = line.replace("-", "*") if not line.strip("- \t") else "\\" + line
    return matter[1] + plain_line + text[matter.end() :]


def _unmarked(text: str, prefix: str) -> str:
    """Also in code: whoever looks for our marker does not ask where it stands. And no drawing in places where GitLab
    sees a fence and we saw none."""
    text = DRAWING.sub(rf"\g<0>{JOINER}", text)
    return re.sub(rf"<!(?=--\s*{re.escape(prefix)})", f"<!{JOINER}", text, flags=re.IGNORECASE)


def _unsaid(text: str, secrets: Secrets) -> str:
    """Without secrets that can be read only once the page is drawn: written with escapes, entities, tags, emphasis."""
    if not any(_hidden(secrets, shown) for shown in _shown(text) if shown != text):
        return text
    return "\n".join(_line_unsaid(line, secrets) for line in text.split("\n"))


def _line_unsaid(line: str, secrets: Secrets) -> str:
    for shown in _shown(line):
        if _hidden(secrets, shown):
            return strict(secrets.mask(shown))
    return line


def _hidden(secrets: Secrets, shown: str) -> bool:
    return secrets.mask(shown) != shown


def _shown(text: str) -> tuple[str, ...]:
    drawn = html.unescape(_HIDING.sub("", text))
    return drawn, re.sub(r"[*`~]|\b_|_\b", "", drawn)


def _as_code(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
