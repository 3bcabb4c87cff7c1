"""What a person may want otherwise in a session (R6), and the sentence for what not.

Knows the settings that can be chosen and their bounds, not where they were written.
"""

from collections.abc import Iterable, Sequence

from hummingbird.config.configuration import Applied
from hummingbird.domain.limits import ITERATIONS_FACTOR, QUOTED_CHARS
from hummingbird.domain.orders import Overrides
from hummingbird.domain.text import plain, shortened

MODEL = "model"
ITERATIONS = "max_iterations"
_DIGITS = 9  # of a number that is worth comparing
_HARMLESS = str.maketrans({"`": "'", "<": "‹", ">": "›"})


def quoted(text: str) -> str:
    """Somebody's words as code within a sentence of ours. They cannot end it, nor be taken for a marker of ours."""
    shown = "".join(one if one.isprintable() else "?" for one in shortened(plain(text), QUOTED_CHARS))
    return f"`{shown.translate(_HARMLESS)}`" if shown else "nothing"


def listed(names: Iterable[str]) -> str:
    """Our own names as code, with commas between."""
    return ", ".join(f"`{name}`" for name in names)


def overrides_of(choices: Sequence[tuple[str, str]]) -> tuple[Overrides, str]:
    """What was chosen, the last one of each key, and the first fault of what was written."""
    made = Overrides()
    for key, value in choices:
        if key == MODEL and value:
            made = Overrides(model=value).over(made)
        elif key == ITERATIONS and (number := _number(value)):
            made = Overrides(max_iterations=number).over(made)
        else:
            return Overrides(), _unreadable(key, value)
    return made, ""


def _number(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) <= _DIGITS else 0


def _unreadable(key: str, value: str) -> str:
    if key == MODEL:
        return f"`{MODEL}=` needs the name of a model directly behind it."
    if key == ITERATIONS:
        return f"{quoted(value)} is no number for `{ITERATIONS}`: write a whole number from 1."
    return f"{quoted(key)} is nothing that can be chosen: what can be is {listed((MODEL, ITERATIONS))}."


def overrides_fault(overrides: Overrides, applied: Applied, models_allowed: Sequence[str]) -> str:
    """What speaks against them for this workflow, as a sentence; empty if nothing does."""
    most = ITERATIONS_FACTOR * applied.max_iterations
    if overrides.max_iterations > most:
        return (
            f"`{ITERATIONS}={overrides.max_iterations}` is too much: `{applied.workflow}` may be given {most} at most."
        )
    allowed = _models(applied, models_allowed)
    if not overrides.model or overrides.model in allowed:
        return ""
    if not allowed:
        return f"The model {quoted(overrides.model)} cannot be chosen: no model can be here."
    return (
        f"The model {quoted(overrides.model)} cannot be chosen for `{applied.workflow}`: "
        f"what can be is {listed(allowed)}."
    )


def fault_anywhere(overrides: Overrides, here: Sequence[Applied], models_allowed: Sequence[str]) -> str:
    """What speaks against them for every workflow of a project: the words of the one that allows most."""
    widest_first = sorted(here, key=lambda one: -one.max_iterations)
    faults = [overrides_fault(overrides, one, models_allowed) for one in widest_first]
    return faults[0] if all(faults) and faults else ""


def _models(applied: Applied, models_allowed: Sequence[str]) -> tuple[str, ...]:
    every = (*models_allowed, applied.model, *applied.fallback_models)
    return tuple(dict.fromkeys(name for name in every if name))
