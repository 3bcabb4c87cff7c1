"""The short list of commands that are refused in every mode, whatever anybody approves (C6): those after which there is
no machine, or no home, to take anything back on.

A net for accidents and for plain malice, not a border: a command can be hidden in a file, in an unknown variable or in
another language, and rules, questions and sandboxes are there for that. It reads a command as a shell would
(`shell_evaluation`), so it sees through spelling and does not mind such words where they are only talked about.
"""

import re
import unicodedata

from hummingbird.domain.shell_evaluation import ShellEvaluation, evaluate_command
from hummingbird.domain.shell_words import TooInvolved

_INVOLVED = "It is too long or too involved to be looked through; make several commands of it."
_LONG_GAP = re.compile(r" {17,}")
_LONG_BREAK = re.compile(r"\n(?:[ ]*\n){2,}")


def catastrophe(command: str, folder: str = "") -> str:
    """Why this command, run in this folder (empty: not known), is refused, as a sentence; empty if it is not."""
    readings: list[ShellEvaluation] = []
    try:
        for reading in evaluate_command(command, folder):
            readings.append(reading)
            if len(readings) > 1 and readings[-2].reason:
                break
    except TooInvolved:
        return next((each.reason for each in readings if each.reason), _INVOLVED)
    return next((each.reason for each in readings if each.reason), "")


def normalised(command: str) -> str:
    """For people who are asked about it: on as few lines as it has, and everything that a screen would not show, or
    show as something else, written as its escape."""
    joined = command.replace("\\\n", "")
    shown = "".join(c if c in " \n" or (c.isprintable() and not _poses(c)) else _escape(c) for c in joined)
    closer = _LONG_GAP.sub(lambda gap: f" [{len(gap[0])} spaces] ", shown)
    return _LONG_BREAK.sub("\n\n", closer).strip()


def _poses(letter: str) -> bool:
    """Whether it looks like one or several of ASCII, as full-width letters do, and is none."""
    return not letter.isascii() and unicodedata.normalize("NFKC", letter).isascii()


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
