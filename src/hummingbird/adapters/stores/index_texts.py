"""What becomes of a text that enters the index of sessions (S4), and of one that leaves it: masked, bounded, and such
that every word in it can be found."""

import re
from collections.abc import Callable, Sequence

import msgspec

from hummingbird.domain.journal import Entry
from hummingbird.domain.session_limits import INDEXED_CHARS, SUMMARY_CHARS
from hummingbird.domain.session_words import whole_title
from hummingbird.domain.sessions import Summary
from hummingbird.domain.text import plain, shortened
from hummingbird.ports.session_index import MATCH_BEGINS, MATCH_ENDS

Mask = Callable[[str], str]

_JOINER = "\u2060"  # invisible, and the end of a word to SQLite
_CUT = "\n…\n"
_TAKEN_OUT = {0: " ", ord(_JOINER): None, ord(MATCH_BEGINS): None, ord(MATCH_ENDS): None}
# Chinese and Japanese write no spaces: SQLite would take a sentence for one word
_BETWEEN = re.compile(
    "(?<=[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])(?=\\w)"
    "|(?<=\\w)(?=[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)


def indexed(text: str, mask: Mask) -> str:
    """Masked before anything is cut: half a secret is not recognised."""
    return spread(_capped(mask(clean(text))))


def clean(text: str) -> str:
    """Without what SQLite cannot hold, and without the signs that mean something here."""
    return plain(text).translate(_TAKEN_OUT)


def spread(text: str) -> str:
    return text if text.isascii() else _BETWEEN.sub(_JOINER, text)


def shown(text: str) -> str:
    return text.replace(_JOINER, "")


def _capped(text: str) -> str:
    half = INDEXED_CHARS // 2
    return text if len(text) <= INDEXED_CHARS else text[:half] + _CUT + text[len(text) - half :]


def masked_summary(made: Summary, entries: Sequence[Entry], mask: Mask) -> Summary:
    """Its id stays: it is the name of files."""
    begun = made.about
    title = shortened(mask(clean(whole_title(made, entries))), SUMMARY_CHARS)
    about = msgspec.structs.replace(
        begun, workflow=mask(clean(begun.workflow)), project=mask(clean(begun.project)), sha=mask(clean(begun.sha))
    )
    return msgspec.structs.replace(
        made, about=about, title=title, model=mask(clean(made.model)), reason=mask(clean(made.reason))
    )
