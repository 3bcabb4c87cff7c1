"""Parse commands in people's notes, check the overrides they choose, and word the answers to faulty ones.

Text in code or in a quotation is not addressed to us. Every text can be parsed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from hummingbird.config.configuration import ResolvedWorkflow
from hummingbird.config.settings import Settings
from hummingbird.core.limits import ITERATIONS_FACTOR, MESSAGE_BYTES, MESSAGE_CHARS, QUOTED_CHARS
from hummingbird.core.orders import RunOverrides
from hummingbird.core.text import replace_surrogates, shorten_line

CUT_NOTICE = "\n\n[The rest of this note was left out: it is too long.]"
_LINE_END = re.compile(r"\r\n|\r|\n")  # splitlines splits at more characters than Markdown does
_OPENING = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*|(>{3,})\s*)")
_CHOICE = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedNote:
    """What a note says.

    `opens` means that the first line is addressed to us. `name` is the first word of a command, empty if it has none,
    and None if there is no command. `choices` are key and value of every option, as written. `message` is what is left.
    """

    opens: bool = False
    name: str | None = None
    choices: tuple[tuple[str, str], ...] = ()
    message: str = ""


def parse_note(text: str, prefix: str) -> ParsedNote:
    """Parse a note.

    A command is on the first line that is not empty. Options follow its name or stand on lines of their own.
    """
    lines = _LINE_END.split(replace_surrogates(text))
    begin = next((at for at, line in enumerate(lines) if line.strip()), 0)
    first = _text_after_prefix(lines[begin], prefix) if _lines_outside_quotes(lines)[begin] else None
    if first is None or _CHOICE.match(first):
        choices, kept = _split_choices(lines, prefix)
        return ParsedNote(opens=first is not None, choices=choices, message=_join_message(kept))
    name, rest = _split_first_word(first)
    behind, said = _split_leading_choices(rest)
    # The rest of the command's line is message text, even if it looks like an option line; later lines may be options.
    more, kept = _split_choices(lines[begin + 1 :], prefix)
    return ParsedNote(opens=True, name=name, choices=(*behind, *more), message=_join_message([said, *kept]))


def _split_choices(lines: Sequence[str], prefix: str) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """Return the options on lines of their own, and all lines without them."""
    found: list[tuple[str, str]] = []
    kept: list[str] = []
    for line, own in zip(lines, _lines_outside_quotes(lines), strict=True):
        rest = _text_after_prefix(line, prefix) if own else None
        if rest is None or not _CHOICE.match(rest):
            kept.append(line)
            continue
        choices, said = _split_leading_choices(rest)
        found += choices
        kept += [said] if said else []
    return tuple(found), kept


def _text_after_prefix(line: str, prefix: str) -> str | None:
    """Return the text after the prefix, or None; four spaces before it would make it code."""
    found = re.match(rf" {{0,3}}{re.escape(prefix)}(?=\s|$)", line, re.IGNORECASE)
    return line[found.end() :] if found else None


def _split_first_word(text: str) -> tuple[str, str]:
    name, *rest = text.split(maxsplit=1) or [""]
    return name, rest[0] if rest else ""


def _split_leading_choices(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return the options that a text begins with, and the rest of it."""
    found, at = [], 0
    while choice := _CHOICE.match(text, at):
        found.append((choice[1], choice[2]))
        at = choice.end()
    return found, text[at:].strip()


def _lines_outside_quotes(lines: Sequence[str]) -> list[bool]:
    return list(_iter_outside_quotes(lines))


def _iter_outside_quotes(lines: Sequence[str]) -> Iterator[bool]:
    """Yield for each line whether it is outside code fences and `>>>` blocks, GitLab's quotes of several lines."""
    fence = ""
    for line in lines:
        if fence:
            yield False
            fence = "" if _closes_fence(line, fence) else fence
        elif opening := _OPENING.fullmatch(line):
            yield False
            fence = opening[1] or opening[2] or opening[3]
        else:
            yield True


def _closes_fence(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0]) and not line.startswith(("    ", "\t"))


def _join_message(lines: Sequence[str]) -> str:
    """Join the lines and cut the text, because an order travels as one queue message."""
    text = "\n".join(lines).strip()
    if len(text) <= MESSAGE_CHARS and len(json.dumps(text)) <= MESSAGE_BYTES:
        return text
    kept = text[: MESSAGE_CHARS - len(CUT_NOTICE)]
    while len(json.dumps(kept)) > MESSAGE_BYTES:
        kept = kept[: len(kept) * 3 // 4]
    return kept + CUT_NOTICE


# Overrides: what a person may choose for a run, and the sentences about what is wrong with a choice.

MODEL = "model"
ITERATIONS = "max_iterations"
_DIGITS = 9  # longer numbers are above every limit
_HARMLESS = str.maketrans({"`": "'", "<": "‹", ">": "›"})


def quote_as_code(text: str) -> str:
    """Quote somebody's words as code in our sentence, so that they cannot end it or look like one of our markers."""
    shown = "".join(one if one.isprintable() else "?" for one in shorten_line(replace_surrogates(text), QUOTED_CHARS))
    return f"`{shown.translate(_HARMLESS)}`" if shown else "nothing"


def list_as_code(names: Iterable[str]) -> str:
    """Return our own names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def parse_overrides(choices: Sequence[tuple[str, str]]) -> tuple[RunOverrides, str]:
    """Return the last choice of each key, and the first fault in what was written."""
    made = RunOverrides()
    for key, value in choices:
        if key == MODEL and value:
            made = RunOverrides(model=value).merge_over(made)
        elif key == ITERATIONS and (number := _parse_number(value)):
            made = RunOverrides(max_iterations=number).merge_over(made)
        else:
            return RunOverrides(), _unreadable_choice_text(key, value)
    return made, ""


def _parse_number(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) <= _DIGITS else 0


def _unreadable_choice_text(key: str, value: str) -> str:
    if key == MODEL:
        return f"`{MODEL}=` needs the name of a model directly behind it."
    if key == ITERATIONS:
        return f"{quote_as_code(value)} is not a number for `{ITERATIONS}`: write a whole number from 1."
    return f"{quote_as_code(key)} is not an option: choose from {list_as_code((MODEL, ITERATIONS))}."


CanAsk: TypeAlias = Callable[[str], bool]


def can_ask_nothing(_: str) -> bool:
    """Say of every model that it cannot be asked: the default where the credentials are unknown."""
    return False


def find_override_fault(
    overrides: RunOverrides,
    applied: ResolvedWorkflow,
    models_allowed: Sequence[str],
    can_ask: CanAsk = can_ask_nothing,
) -> str:
    """Return what is wrong with the overrides for this workflow, as a sentence; empty if nothing is.

    Without `models_allowed`, every model may be chosen that `can_ask` knows credentials for.
    """
    most = ITERATIONS_FACTOR * applied.max_iterations
    if overrides.max_iterations > most:
        return (
            f"`{ITERATIONS}={overrides.max_iterations}` is too much: `{applied.workflow}` may be given {most} at most."
        )
    allowed = _selectable_models(applied, models_allowed)
    if not overrides.model or overrides.model in allowed:
        return ""
    if not models_allowed and can_ask(overrides.model):
        return ""
    why = "" if models_allowed else " This service does not know it, or has no credentials for its provider."
    if not allowed:
        return f"The model {quote_as_code(overrides.model)} cannot be chosen: no model can be chosen here.{why}"
    return (
        f"The model {quote_as_code(overrides.model)} cannot be chosen for `{applied.workflow}`: "
        f"choose from {list_as_code(allowed)}.{why}"
    )


def find_fault_for_all(
    overrides: RunOverrides,
    here: Sequence[ResolvedWorkflow],
    models_allowed: Sequence[str],
    can_ask: CanAsk = can_ask_nothing,
) -> str:
    """Return the fault if the overrides fit no workflow of the project, worded for the one that allows most."""
    widest_first = sorted(here, key=lambda one: -one.max_iterations)
    faults = [find_override_fault(overrides, one, models_allowed, can_ask) for one in widest_first]
    return faults[0] if all(faults) and faults else ""


def _selectable_models(applied: ResolvedWorkflow, models_allowed: Sequence[str]) -> tuple[str, ...]:
    every = (*models_allowed, applied.model, *applied.fallback_models)
    return tuple(dict.fromkeys(name for name in every if name))


def help_text(settings: Settings, here: Sequence[ResolvedWorkflow]) -> str:
    """Return the answer to `help`, as our own Markdown."""
    prefix = settings.trigger_prefix
    parts = [
        f"Write a comment that begins with `{prefix} WORKFLOW`. These workflows are for this project:",
        "\n".join(_workflow_line(one) for one in here),
        "The beginning of a name is enough if no other one begins like it. What you write behind it goes along as your "
        "question.",
        "Directly behind the name you may choose:",
        f"- {_model_option_text(settings)}\n- {_iterations_option_text(here)}",
        f"To go on, reply in a thread with a result. In a reply, a line `{prefix} {ITERATIONS}=NUMBER` of its own "
        "holds for the rest of that thread.",
        "To a finding on a line of the diff, reply `won't fix`, `by design` or `false positive`, with your reason "
        "behind it if you like: it is resolved, and not brought up again.",
    ]
    return "\n\n".join(parts)


def _workflow_line(applied: ResolvedWorkflow) -> str:
    text = applied.declared.description
    return f"- `{applied.workflow}`: {text}" if text else f"- `{applied.workflow}`"


def _model_option_text(settings: Settings) -> str:
    allowed = settings.models_allowed
    if allowed:
        return f"`{MODEL}=NAME`: {list_as_code(allowed)}, or a model that the workflow itself names"
    return f"`{MODEL}=NAME`: any model of a provider that this service has credentials for"


def _iterations_option_text(here: Sequence[ResolvedWorkflow]) -> str:
    bounds = ", ".join(f"{ITERATIONS_FACTOR * one.max_iterations} for `{one.workflow}`" for one in here)
    return f"`{ITERATIONS}=NUMBER`: at most {bounds}"


def ambiguous_workflow_text(word: str, candidates: Sequence[str]) -> str:
    return (
        f"More than one workflow begins with {quote_as_code(word)}: {list_as_code(candidates)}. "
        "Write one of these names in full."
    )


def unknown_workflow_text(word: str, names: Sequence[str], prefix: str) -> str:
    near = _closest_name(word[:QUOTED_CHARS].casefold(), names)
    meant = f" Did you mean `{near}`?" if near else ""
    return (
        f"There is no workflow {quote_as_code(word)} for this project.{meant} What there is: {list_as_code(names)}. "
        f"`{prefix} help` tells more."
    )


def _closest_name(word: str, names: Sequence[str]) -> str:
    """Return the most similar name; a name may be shortened, so its beginning may have the typing error."""
    whole = {name.casefold(): name for name in names}
    begun = {name[: len(word)]: full for name, full in reversed(whole.items())}
    found = get_close_matches(word, whole, n=1, cutoff=0.6) or get_close_matches(word, begun, n=1, cutoff=0.7)
    return (whole | begun).get(found[0], "") if found else ""


def missing_workflow_text(names: Sequence[str], prefix: str) -> str:
    return (
        f"Name a workflow first and what you choose behind it, as in `{prefix} {names[0]} {MODEL}=NAME`. "
        f"What there is: {list_as_code(names)}."
    )


def choice_fault_text(fault: str, prefix: str) -> str:
    return f"{fault} Nothing was started. `{prefix} help` tells more."
