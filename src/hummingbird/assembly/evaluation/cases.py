"""Which cases are meant: names of ours, a case's folder, or a folder of such folders. Reads no case."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.eval_limits import EVAL_CASES
from hummingbird.lab.case import FOLDER, Case, names

CASE_FILE = "case.json"


def chosen(said: Iterable[str]) -> list[Case]:
    """Each once, in the order in which they were said; all of ours if none was. Raises UsageFault."""
    found = [case for one in said for case in _meant(one)] or [Case(FOLDER / name) for name in names()]
    once = list({case.folder: case for case in found}.values())
    if len(once) > EVAL_CASES:
        raise UsageFault(f"{len(once):,} cases are more than the {EVAL_CASES:,} of one evaluation: name fewer.")
    return once


def _meant(said: str) -> Iterator[Case]:
    try:
        folder = next(one for one in (FOLDER / said, Path(said)) if said and one.is_dir())
        inside = sorted(one.parent for one in folder.glob(f"*/{CASE_FILE}"))
    except StopIteration:
        known = ", ".join(names())
        raise UsageFault(f"There is no case {said!r}: name one of {known}, or a folder that holds cases.") from None
    except OSError as error:
        raise UsageFault(f"The folder {said} cannot be read: {error.strerror}. Name another one.") from error
    if (folder / CASE_FILE).is_file():
        yield Case(folder.resolve())
    elif inside:
        yield from (Case(one.resolve()) for one in inside)
    else:
        raise UsageFault(f"{said} holds no {CASE_FILE}, and no folder in it does: name a case, or a folder of cases.")
