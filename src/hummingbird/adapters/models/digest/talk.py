"""Answers that are no report: what this model is, what it cannot do, and what it has when somebody asks further."""

import re
from collections.abc import Iterator, Sequence

from hummingbird.adapters.models.digest.findings import Finding, together
from hummingbird.adapters.models.digest.material import Material
from hummingbird.adapters.models.digest.report import NO_MODEL, report, verdict
from hummingbird.adapters.models.digest.wording import code, quoted
from hummingbird.evidence.regions import Line

GREETING = (
    "I am `digest`, the model that needs no key: I find out by rules why a CI job failed, from a pipeline or job that "
    "you name or a log that you paste, and cannot hold a conversation beyond that. For anything else set a key such as "
    "`ANTHROPIC_API_KEY`, `GOOGLE_API_KEY` or `OPENAI_API_KEY` and name a model of that provider."
)
REVIEW = (
    "No review was made: reviewing code needs a language model, and none was available. `digest` works by rules and "
    "only finds out why pipelines fail. Set a key such as `ANTHROPIC_API_KEY`, `GOOGLE_API_KEY` or `OPENAI_API_KEY`, "
    "name a model of that provider, and ask for the review again."
)
_ANSWER = (
    "I work by rules, without a language model, so I cannot answer in my own words. This is what the material of this "
    "session shows."
)
_WORD = re.compile(r"[\w./-]{4,80}")
_COMMON = frozenset(
    _WORD.findall(
        "about again also because been could does doing done from have here into just know like make more need only "
        "other please really same should some than that their them then there these they think this those what when "
        "where which while will with would your yours fail failed fails failure failing error"
    )
)
_LINES = 12


def answer(words: str, material: Material, findings: Sequence[Finding]) -> str:
    """Lines that the question speaks of, if there are any, else the report again."""
    matching = list(_matching(words, findings))
    if not matching:
        return f"{_ANSWER}\n\n{report(material, findings)}"
    parts = [_ANSWER, verdict(material, together(findings))]
    for name, lines in matching[:3]:
        parts += [f"What {code(name)} says about it:", quoted(lines)]
    return "\n\n".join([*parts, NO_MODEL])


def _matching(words: str, findings: Sequence[Finding]) -> Iterator[tuple[str, list[Line]]]:
    wanted = [word.lower().strip("./-") for word in _WORD.findall(words) if word.lower() not in _COMMON]
    for finding in findings:
        lines = finding.log.lines() if finding.log is not None else []
        if found := [line for line in lines if any(word and word in line.text.lower() for word in wanted)]:
            yield finding.name, found[:_LINES]
