"""Write the report: what failed, why as far as rules can tell, quoted evidence, and what could not be read.

All text from outside goes through `code_span`, `link_or_code` or `quote_lines`, so that it cannot act as Markdown. The
report states only what a rule or a record says.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from hummingbird.core.limits import DIGEST_REPORT_CHARS
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.verdicts import FailureOrigin, JobJudgement, confidence_word
from hummingbird.evidence.regions import TRANSIENT_CLASSES, Blame, EvidenceLine, FailureClass, Region
from hummingbird.evidence.verdict_rules import JobFacts, TargetHistory, judge_job
from hummingbird.models.rules_report.analysis_tools import ParameterKind
from hummingbird.models.rules_report.findings import (
    ConversationEvidence,
    RulesFinding,
    UnreadSource,
    merge_same_failures,
)
from hummingbird.models.rules_report.records import FailedCase
from hummingbird.models.rules_report.tool_results import GAP_LINE, UNKNOWN_LINE

# Text from outside, made safe for Markdown: a job may have any name.

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./~%:@&=+,;?#-]*)?", re.ASCII)
_RUN = re.compile("`+")
_NAME_CHARS = 120
_LINE_CHARS = 400


def code_span(text: str, chars: int = _NAME_CHARS) -> str:
    """Put text into a code span, so that nothing in it is Markdown, a mention or a quick action."""
    inside = shorten_line(_HIDDEN.sub(" ", replace_surrogates(text)).replace("`", "'"), chars)
    return f"`{inside}`" if inside else "`(no name)`"


def link_or_code(text: str, address: str) -> str:
    """Put text into a code span, with a link if the address is harmless."""
    usable = len(address) <= 1000 and _ADDRESS.fullmatch(address)
    return f"[{code_span(text)}]({address})" if usable else code_span(text)


def quote_lines(lines: Iterable[EvidenceLine]) -> str:
    """Quote lines verbatim, with their numbers, in a fence that none of them can close."""
    shown = [_format_line(line) for line in lines]
    width = max((len(run) for line in shown for run in _RUN.findall(line)), default=0)
    fence = "`" * max(3, width + 1)
    return "\n".join([f"{fence}text", *shown, fence])


def _format_line(line: EvidenceLine) -> str:
    text = _HIDDEN.sub("", replace_surrogates(line.text).replace("\n", " ").replace("\r", " ")).rstrip()
    text = text if len(text) <= _LINE_CHARS else f"{text[: _LINE_CHARS - 1]}…"
    return text if line.number == UNKNOWN_LINE else f"{line.number}: {text}"


# Whether the merge request caused a failure: the verdict in the order, else the same rules applied to the evidence.

# `service/note_text.py` reads the origin back from the verdict line: "cannot tell" and "cannot be known" mean unknown.
_CANNOT = "Whether this merge request caused it: rules cannot tell."
_MAY_PASS = f"{_CANNOT} The job's output looks like a temporary problem: a second run may pass, but that is no proof."
_NAMING_SIGNS = ("names-a-changed-file", "tests-a-changed-file", "mentions-a-changed-file")
_LIKELY = "Caused by this merge request: likely."
_NOT_OURS = {
    FailureOrigin.TARGET: "Not caused by this merge request: red on the target branch too.",
    FailureOrigin.FLAKY: "Not caused by this merge request, by all signs: flaky, a second run may pass.",
    FailureOrigin.INFRASTRUCTURE: "Not caused by this merge request, by all signs: a second run may pass.",
}


def describe_origin(finding: RulesFinding, material: ConversationEvidence) -> str:
    """Return a sentence that says whether the merge request caused the failure, as far as it can be known."""
    if (known := _order_verdict(finding, material)) is not None:
        origin, why = known
        return f"{_origin_sentence(origin)} {why}".rstrip()
    if not finding.is_sure:
        return "Whether this merge request caused it cannot be known from what was read."
    own = judge_job(_job_facts(finding, material), tuple(sorted(material.changed_files)) or None)
    if own.origin is FailureOrigin.UNKNOWN:
        return _hint_sentence(own, finding, material)
    return f"{_origin_sentence(own.origin)} {own.reasons[0].render(code_span)}"


def order_origin(finding: RulesFinding, material: ConversationEvidence) -> FailureOrigin | None:
    """Return the origin of a failure according to the order; None if it has no verdict."""
    known = _order_verdict(finding, material)
    return known[0] if known is not None else None


def _order_verdict(finding: RulesFinding, material: ConversationEvidence) -> tuple[FailureOrigin, str] | None:
    return material.order_verdicts.find(finding.name, finding.log.key if finding.log is not None else "")


def _origin_sentence(origin: FailureOrigin) -> str:
    return _LIKELY if origin is FailureOrigin.CHANGE else _NOT_OURS.get(origin, _CANNOT)


def _job_facts(finding: RulesFinding, material: ConversationEvidence) -> JobFacts:
    text = finding.cause.excerpt if finding.cause is not None else ""
    said = "\n".join([text, *(f"{case.name}\n{case.output}" for case in finding.cases)])
    branch = next(iter(material.facts.get(ParameterKind.BRANCH)), "")
    target = TargetHistory(branch=branch, passed=(True,)) if material.is_target_red is False else None
    return JobFacts(
        name=finding.name, analysis=finding.analysis, platform_blame=finding.reported_blame, text=said, target=target
    )


def _hint_sentence(own: JobJudgement, finding: RulesFinding, material: ConversationEvidence) -> str:
    if finding.blame.class_ in TRANSIENT_CLASSES:
        return _MAY_PASS
    if material.is_target_red:
        return "It may be older than this merge request: the newest finished pipeline of the target branch failed too."
    hint = next((one for one in own.reasons if one.sign in _NAMING_SIGNS), None)
    return f"This merge request may have caused it. {hint.render(code_span)}" if hint is not None else _CANNOT


NO_MODEL = (
    "_No language model took part in this report: it was written by rules alone (model `digest`). They can be wrong; "
    "each one is named so that you can disagree._"
)
_CAUSE_LINES = 30
_OTHER_LINES = 8
_OTHER_REGIONS = 2
_CASES = 8
_CASE_LINES = 12
_NAMES = 12


def write_report(material: ConversationEvidence, findings: Sequence[RulesFinding]) -> str:
    """Write the whole report in Markdown."""
    groups = merge_same_failures(findings)
    sections = ["\n".join(_header_lines(material, groups))]
    groups = [group for group in groups if _has_content(group)] or groups[:_NAMES]
    left = DIGEST_REPORT_CHARS
    for number, group in enumerate(groups, 1):
        section = "\n".join(_section_lines(number, group, material))
        left -= len(section)
        if left < 0:
            sections.append(_omission_note(groups[number - 1 :]))
            break
        sections.append(section)
    sections += filter(
        None, ["\n".join(_flaky_and_skipped_lines(material)), "\n".join(_missing_lines(material, findings)), NO_MODEL]
    )
    return "\n\n".join(sections)


def _has_content(finding: RulesFinding) -> bool:
    """Tell whether the report can say more about a finding than that it failed and was not read."""
    return finding.log is not None or finding.is_sure or finding.cause is not None or bool(finding.cases)


def write_verdict(material: ConversationEvidence, groups: Sequence[RulesFinding]) -> str:
    """Return one line: the class of the failure, the confidence, and whether this merge request caused it."""
    leading = next((group for group in groups if group.is_sure and not group.caused_by), groups[0] if groups else None)
    if leading is None:
        return "**Verdict: unknown.** Nothing that failed was found in what could be read."
    blame = leading.blame
    others = {group.blame.class_ for group in groups if group.is_sure} - {blame.class_}
    more = f" Other failures here: {', '.join(sorted(others))}." if others else ""
    class_, sure = _history_verdict(leading, material) or (str(blame.class_), confidence_word(blame.confidence))
    return f"**Verdict: {class_}** ({sure}), in {code_span(leading.name)}. {describe_origin(leading, material)}{more}"


def _history_verdict(leading: RulesFinding, material: ConversationEvidence) -> tuple[str, str] | None:
    """Return the verdict "flaky" of the order, if the log does not settle it: only a job's history shows flakiness."""
    settled = leading.is_sure and leading.blame.class_ in TRANSIENT_CLASSES
    told = order_origin(leading, material)
    return (str(told), "by its history") if told is FailureOrigin.FLAKY and not settled else None


def _header_lines(material: ConversationEvidence, groups: Sequence[RulesFinding]) -> Iterator[str]:
    yield "## Failure report"
    yield ""
    yield write_verdict(material, groups)
    if groups:
        yield ""
        yield _summary_line(material, groups)


def _summary_line(material: ConversationEvidence, groups: Sequence[RulesFinding]) -> str:
    failed = sum(1 + len(group.same_failures) for group in groups)
    causes = len(groups)
    what = "1 failure" if failed == 1 else f"{failed} failures"
    kinds = "" if causes == failed else f", {causes} distinct"
    order = " Look at them in this order: root causes come first." if causes > 1 else ""
    listed = f" of {len(material.jobs)} jobs and statuses" if material.jobs else ""
    return f"{what}{kinds}{listed}.{order}"


def _section_lines(number: int, finding: RulesFinding, material: ConversationEvidence) -> Iterator[str]:
    blame = finding.blame
    yield f"### {number}. {link_or_code(finding.name, finding.url)}: {blame.class_}"
    yield ""
    yield " ".join(_about_sentences(finding, blame))
    yield describe_origin(finding, material)
    for region in finding.analysis.regions[:1]:
        yield from (
            "",
            f"{_region_heading(finding)}, {_region_label(region)}:",
            "",
            quote_lines(_clip_region(region, _CAUSE_LINES)),
        )
    for region in _other_regions(finding):
        yield from (
            "",
            f"Also in this log, {_region_label(region)}:",
            "",
            quote_lines(_clip_region(region, _OTHER_LINES)),
        )
    if finding.cases:
        yield from _case_lines(finding.cases)
    if finding.same_failures:
        yield from ("", f"The same failure: {_list_names(finding.same_failures)}.")
    if finding.consequences:
        yield from ("", f"Failed or did not run because of it: {_list_names(finding.consequences)}.")


def _about_sentences(finding: RulesFinding, blame: Blame) -> Iterator[str]:
    if finding.stage:
        yield f"Stage {code_span(finding.stage)}."
    if finding.reason:
        yield f"Reported as {code_span(finding.reason, 300)}."
    if finding.allowed:
        yield "It is allowed to fail."
    if finding.caused_by:
        yield f"It waits for {code_span(finding.caused_by)}, which failed: look there first."
    if finding.log is None and not finding.cases:
        yield "Its log was not read."
    else:
        yield f"{blame.why.rstrip('.')}. Rule {code_span(blame.rule)}, {confidence_word(blame.confidence)}."


def _region_label(region: Region) -> str:
    """Return where the region is. The rule says what kind it is; a few lines may look like another kind."""
    numbers = [line.number for line in region.lines if line.number]
    if not numbers:
        return "as printed"
    return f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]} to {numbers[-1]}"


def _region_heading(finding: RulesFinding) -> str:
    if finding.blame is not finding.analysis.blame:
        return "What its log shows"
    return "The cause" if finding.is_sure else "The likeliest place"


def _other_regions(finding: RulesFinding) -> list[Region]:
    """Return further regions of the log, unless they are the same failure or overlap with a region shown before."""
    seen: set[str] = set()
    shown: set[EvidenceLine] = set()
    found: list[Region] = []
    for region in finding.analysis.regions:
        if region.fingerprint not in seen and shown.isdisjoint(region.lines):
            seen.update(filter(None, (region.fingerprint,)))
            shown.update(region.lines)
            found.append(region)
    return found[1 : 1 + _OTHER_REGIONS]


def _clip_region(region: Region, most: int) -> Sequence[EvidenceLine]:
    """Return the region's lines; of a long one, its beginning and its end."""
    lines = region.lines
    if len(lines) <= most:
        return lines
    return [*lines[: most // 2], GAP_LINE, *lines[-(most - most // 2) :]]


def _case_lines(cases: Sequence[FailedCase]) -> Iterator[str]:
    yield from ("", f"Failed tests by the test report ({len(cases)}):")
    for case in cases[:_CASES]:
        yield f"- {code_span(case.name, 200)}"
    if len(cases) > _CASES:
        yield f"- and {len(cases) - _CASES} more"
    if output := next((case.output for case in cases if case.output.strip()), ""):
        yield from ("", quote_lines(EvidenceLine(0, line) for line in output.split("\n")[:_CASE_LINES]))


def _flaky_and_skipped_lines(material: ConversationEvidence) -> Iterator[str]:
    if material.failure_order.flaky:
        yield f"Failed, then passed when tried again: {_list_names(material.failure_order.flaky)}."
    if material.failure_order.stopped:
        yield f"Not run, and nothing that failed explains why: {_list_names(material.failure_order.stopped)}."


def _missing_lines(material: ConversationEvidence, findings: Iterable[RulesFinding]) -> Iterator[str]:
    """Yield a section that names what is missing from this report."""
    lines = [f"- {_source_label(trouble)}: {code_span(trouble.said, 300)}" for trouble in material.troubles]
    named = {trouble.about for trouble in material.troubles}
    unread = [f.name for f in findings if f.log is None and not f.cases and f.name not in named]
    if unread:
        lines.append(f"- not read: {_list_names(unread)}")
    lines += [
        f"- {code_span(finding.name)}: only parts of its log were seen"
        for finding in findings
        if finding.log is not None and finding.log.was_read and not finding.log.whole and not finding.is_sure
    ]
    if not material.calls and not material.logs:
        lines.append("- nothing was asked for: no tool was offered, or none that takes what is known here")
    if lines:
        yield from ("### What could not be read", "", *lines[: _NAMES * 2])


def _source_label(trouble: UnreadSource) -> str:
    return f"{code_span(trouble.tool)} {code_span(trouble.about)}" if trouble.about else code_span(trouble.tool)


def _list_names(names: Sequence[str]) -> str:
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - _NAMES} more" if len(listed) > _NAMES else ""
    return ", ".join(map(code_span, listed[:_NAMES])) + more


def _omission_note(groups: Sequence[RulesFinding]) -> str:
    return f"Left out here for length: {_list_names([group.name for group in groups])}."


_ORIGIN_STARTS = (_CANNOT, _LIKELY, *_NOT_OURS.values(), "Whether this merge request caused it cannot be known")
_SECTION = "### "
_NUMBERED = re.compile(rf"^({_SECTION}\d+\. .*): (?:{'|'.join(FailureClass)})$")


def report_details(report: str) -> str:
    """Return a report without what a note shows above it: the verdict, the counts, and whose failure each one is."""
    first = report.find(f"\n{_SECTION}")
    lines = report[first + 1 :].split("\n") if first >= 0 else report.split("\n")
    return "\n".join(_NUMBERED.sub(r"\1", line) for line in lines if not line.startswith(_ORIGIN_STARTS))


# Answers other than the report.

GREETING = (
    "I am `digest`, the model that needs no key: I find out by rules why a CI job failed, from a pipeline or job that "
    "you name or a log that you paste, and cannot hold a conversation beyond that. For anything else set a key such as "
    "`ANTHROPIC_API_KEY`, `GOOGLE_API_KEY` or `OPENAI_API_KEY` and name a model of that provider."
)
NO_REVIEW = (
    "Reviewing code needs a language model, and `digest` only finds out by rules why pipelines fail. Set a key such as "
    "`ANTHROPIC_API_KEY`, `GOOGLE_API_KEY` or `OPENAI_API_KEY`, name a model of that provider, and ask again."
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


def answer_question(words: str, material: ConversationEvidence, findings: Sequence[RulesFinding]) -> str:
    """Answer with the log lines that contain words of the question, else with the report again."""
    matching = list(_matching_lines(words, findings))
    if not matching:
        return f"{_ANSWER}\n\n{write_report(material, findings)}"
    parts = [_ANSWER, write_verdict(material, merge_same_failures(findings))]
    for name, lines in matching[:3]:
        parts += [f"What {code_span(name)} says about it:", quote_lines(lines)]
    return "\n\n".join([*parts, NO_MODEL])


def _matching_lines(words: str, findings: Sequence[RulesFinding]) -> Iterator[tuple[str, list[EvidenceLine]]]:
    wanted = [word.lower().strip("./-") for word in _WORD.findall(words) if word.lower() not in _COMMON]
    for finding in findings:
        lines = finding.log.lines() if finding.log is not None else []
        if found := [line for line in lines if any(word and word in line.text.lower() for word in wanted)]:
            yield finding.name, found[:_LINES]
