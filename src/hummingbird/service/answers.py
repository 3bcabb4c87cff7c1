"""What is answered to a command that starts nothing: help, or what is wrong with it (R3). Markdown of ours; what a
person wrote is quoted as code. Decides nothing."""

from collections.abc import Sequence
from difflib import get_close_matches

from hummingbird.config.configuration import Applied
from hummingbird.config.settings import Settings
from hummingbird.domain.limits import ITERATIONS_FACTOR, QUOTED_CHARS
from hummingbird.service.overrides import ITERATIONS, MODEL, listed, quoted


def helping(settings: Settings, here: Sequence[Applied]) -> str:
    prefix = settings.trigger_prefix
    parts = [
        f"Write a comment that begins with `{prefix} WORKFLOW`. These workflows are for this project:",
        "\n".join(_described(one) for one in here),
        "The beginning of a name is enough if no other one begins like it. What you write behind it goes along as your "
        "question.",
        "Directly behind the name you may choose:",
        f"- {_models(settings)}\n- {_iterations(here)}",
        f"To go on, reply in a thread with a result. In a reply, a line `{prefix} {ITERATIONS}=NUMBER` of its own "
        "holds for the rest of that thread.",
        "To a finding on a line of the diff, reply `won't fix`, `by design` or `false positive`, with your reason "
        "behind it if you like: it is resolved, and not brought up again.",
    ]
    return "\n\n".join(parts)


def _described(applied: Applied) -> str:
    text = applied.declared.description
    return f"- `{applied.workflow}`: {text}" if text else f"- `{applied.workflow}`"


def _models(settings: Settings) -> str:
    own = "a model that the workflow itself names"
    allowed = settings.models_allowed
    return f"`{MODEL}=NAME`: {listed(allowed)}, or {own}" if allowed else f"`{MODEL}=NAME`: {own}"


def _iterations(here: Sequence[Applied]) -> str:
    bounds = ", ".join(f"{ITERATIONS_FACTOR * one.max_iterations} for `{one.workflow}`" for one in here)
    return f"`{ITERATIONS}=NUMBER`: at most {bounds}"


def ambiguous(word: str, candidates: Sequence[str]) -> str:
    return f"More than one workflow begins with {quoted(word)}: {listed(candidates)}. Write one of these names in full."


def unknown(word: str, names: Sequence[str], prefix: str) -> str:
    near = _near(word[:QUOTED_CHARS].casefold(), names)
    meant = f" Did you mean `{near}`?" if near else ""
    return (
        f"There is no workflow {quoted(word)} for this project.{meant} What there is: {listed(names)}. "
        f"`{prefix} help` tells more."
    )


def _near(word: str, names: Sequence[str]) -> str:
    """Names may be shortened, so a slip may be one in the beginning of a name."""
    whole = {name.casefold(): name for name in names}
    begun = {name[: len(word)]: full for name, full in reversed(whole.items())}
    found = get_close_matches(word, whole, n=1, cutoff=0.6) or get_close_matches(word, begun, n=1, cutoff=0.7)
    return (whole | begun).get(found[0], "") if found else ""


def nameless(names: Sequence[str], prefix: str) -> str:
    return (
        f"Name a workflow first and what you choose behind it, as in `{prefix} {names[0]} {MODEL}=NAME`. "
        f"What there is: {listed(names)}."
    )


def faulty(fault: str, prefix: str) -> str:
    return f"{fault} Nothing was started. `{prefix} help` tells more."
