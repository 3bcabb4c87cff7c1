"""Do the costly work on a note within a bound of CPU time, whatever its text is.

Neither comrak nor a regular expression lets go of the interpreter while it works, so a hostile text could hold up the
whole service, in a thread too. Short texts are harmless in any case; longer ones are worked on in a child process,
which ends when its time is up. The child is given no credential.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from hummingbird.adapters.forge.gitlab_markdown import render_html
from hummingbird.adapters.forge.markdown_rebuild import join_blocks, rebuild_markdown
from hummingbird.adapters.forge.note_check import find_fault, keeps_apart

CPU_LIMIT_S = 1
_MEMORY_LIMIT_BYTES = 2 * 1024**3
_SHORT_CHARS = 4 * 1024  # the worst text of this length takes about 0.2 s
_WALL_LIMIT_S = 120.0  # on a busy machine a second of CPU time may take long
_CHILD_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT")
OUT_OF_TIME = "no end within its time"


class RebuiltNote(NamedTuple):
    """`visible_text` is what a reader sees of it; `fault` says what could still act, and is empty if nothing could."""

    markdown: str
    visible_text: str
    fault: str


def rebuild_note(markdown: str, max_chars: int, *, was_cut: bool = False) -> RebuiltNote:
    """Parse, rebuild and check the text of a note. `was_cut`: some of it is missing already."""
    if len(markdown) <= _SHORT_CHARS:
        return _rebuild(markdown, max_chars, was_cut)
    answer = _run_child("rebuild", markdown, max_chars, was_cut)
    return RebuiltNote(*map(str, answer)) if answer is not None else RebuiltNote("", "", OUT_OF_TIME)


def parts_keep_apart(parts: Sequence[str], joined: str) -> bool:
    """Tell whether no part of a note reaches into another; no, if that cannot be found out in time."""
    if len(joined) <= _SHORT_CHARS:
        return keeps_apart(parts, joined)
    return _run_child("keeps_apart", list(parts), joined) == [True]


def _rebuild(markdown: str, max_chars: int, was_cut: bool) -> RebuiltNote:
    blocks, visible_text = rebuild_markdown(render_html(markdown))
    note = join_blocks(blocks, max_chars, was_cut=was_cut)
    return RebuiltNote(note, visible_text, find_fault(note) or "")


def _run_child(*request: object) -> list[object] | None:
    environment = {name: value for name in _CHILD_VARIABLES if (value := os.environ.get(name)) is not None}
    try:
        child = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=_WALL_LIMIT_S,
            check=True,
            env=environment,
        )
    except (subprocess.SubprocessError, OSError):
        return None
    answer: list[object] = json.loads(child.stdout)
    return answer


def _answer_parent() -> None:
    import resource  # noqa: PLC0415 - for the child alone, and unknown to Windows

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    operation, *arguments = json.load(sys.stdin)
    answer: Sequence[object] = [keeps_apart(*arguments)] if operation == "keeps_apart" else _rebuild(*arguments)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _answer_parent()
