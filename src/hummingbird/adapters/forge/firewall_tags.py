"""Which HTML a model may use in a note: tags that only lay out text, bare, and each closed again (N5).

What is left open would swallow what we put behind the model's text. Knows no Markdown.
"""

import re
from dataclasses import dataclass, field

VOID = frozenset({"br", "hr", "wbr"})
_NAMES = """
abbr b blockquote code dd del details div dl dt em h1 h2 h3 h4 h5 h6 i ins kbd li mark ol p q s samp small span
strong sub summary sup table tbody td tfoot th thead tr tt u ul var
"""
KNOWN = VOID | frozenset(_NAMES.split())
TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,15})([ \t][^<>`\n]*?)?([ \t]*/?)>")


@dataclass(slots=True)
class Tags:
    """Those that are open, in the order of the text."""

    _open: list[str] = field(default_factory=list)

    def kept(self, tag: re.Match[str]) -> str | None:
        """The tag as it may be posted; None if it may not."""
        name = tag[2].lower()
        if name not in KNOWN or (tag[1] and name in VOID):
            return None
        if tag[1]:
            return self._closed(name)
        said = tag[3] or ""
        words = " open" if name == "details" and said.strip().lower() == "open" else ""
        if name not in VOID:
            self._open.append(name)
        return f"<{tag[2]}{words}>" if said.strip() else tag[0]

    def _closed(self, name: str) -> str | None:
        if name not in self._open[-50:]:
            return None
        closed: list[str] = []
        while not closed or closed[-1] != name:
            closed.append(self._open.pop())
        return "".join(f"</{each}>" for each in closed)

    def rest(self) -> str:
        """What closes all that is still open."""
        return "".join(f"\n\n</{name}>" for name in reversed(self._open))
