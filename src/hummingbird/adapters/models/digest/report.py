"""The report: what failed, why as far as rules can tell, word for word evidence, and what could not be read (W1).

Everything that outsiders wrote goes through `wording`. Says nothing that no rule or record says.
"""

from collections.abc import Iterable, Iterator, Sequence

from hummingbird.adapters.models.digest.findings import Finding, together
from hummingbird.adapters.models.digest.guilt import guilt, origin_told
from hummingbird.adapters.models.digest.logs import GAP
from hummingbird.adapters.models.digest.material import Material, Trouble
from hummingbird.adapters.models.digest.records import Case
from hummingbird.adapters.models.digest.wording import code, linked, quoted
from hummingbird.domain.limits import DIGEST_REPORT_CHARS
from hummingbird.domain.verdicts import Origin, sureness
from hummingbird.evidence.regions import INTERMITTENT, Blame, Kind, Line, Region

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


def report(material: Material, findings: Sequence[Finding]) -> str:
    groups = together(findings)
    sections = ["\n".join(_head(material, groups))]
    groups = [group for group in groups if _tells(group)] or groups[:_NAMES]
    left = DIGEST_REPORT_CHARS
    for number, group in enumerate(groups, 1):
        section = "\n".join(_section(number, group, material))
        left -= len(section)
        if left < 0:
            sections.append(_shortened(groups[number - 1 :]))
            break
        sections.append(section)
    sections += filter(None, ["\n".join(_beside(material)), "\n".join(_unread(material, findings)), NO_MODEL])
    return "\n\n".join(sections)


def _tells(finding: Finding) -> bool:
    """Whether there is more to say of it than that it failed and was not read."""
    return finding.log is not None or finding.sure or finding.cause is not None or bool(finding.cases)


def verdict(material: Material, groups: Sequence[Finding]) -> str:
    """One line: what is to blame, how sure that is, and whether it was this merge request."""
    leading = next((group for group in groups if group.sure and not group.because), groups[0] if groups else None)
    if leading is None:
        return "**Verdict: unknown.** Nothing that failed was found in what could be read."
    blame = leading.blame
    others = {group.blame.class_ for group in groups if group.sure} - {blame.class_}
    more = f" Other failures here: {', '.join(sorted(others))}." if others else ""
    class_, sure = _judged(leading, material) or (str(blame.class_), sureness(blame.sure))
    return f"**Verdict: {class_}** ({sure}), in {code(leading.name)}. {guilt(leading, material)}{more}"


def _judged(leading: Finding, material: Material) -> tuple[str, str] | None:
    """What comes and goes is known by its history, which a log does not hold."""
    settled = leading.sure and leading.blame.class_ in INTERMITTENT
    told = origin_told(leading, material)
    return (str(told), "by its history") if told is Origin.FLAKY and not settled else None


def _head(material: Material, groups: Sequence[Finding]) -> Iterator[str]:
    yield "## Failure report"
    yield ""
    yield verdict(material, groups)
    if groups:
        yield ""
        yield _summary(material, groups)


def _summary(material: Material, groups: Sequence[Finding]) -> str:
    failed = sum(1 + len(group.same) for group in groups)
    causes = len(groups)
    what = "1 failure" if failed == 1 else f"{failed} failures"
    kinds = "" if causes == failed else f", {causes} distinct"
    order = " They stand in the order in which to look at them: first causes first." if causes > 1 else ""
    listed = f" of {len(material.jobs)} jobs and statuses" if material.jobs else ""
    return f"{what}{kinds}{listed}.{order}"


def _section(number: int, finding: Finding, material: Material) -> Iterator[str]:
    blame = finding.blame
    yield f"### {number}. {linked(finding.name, finding.url)}: {blame.class_}"
    yield ""
    yield " ".join(_about(finding, blame))
    yield guilt(finding, material)
    for region in finding.analysis.regions[:1]:
        yield from ("", f"{_role(finding)}, {_kind(region)}:", "", quoted(_clipped(region, _CAUSE_LINES)))
    for region in _others(finding):
        yield from ("", f"Also in this log, {_kind(region)}:", "", quoted(_clipped(region, _OTHER_LINES)))
    if finding.cases:
        yield from _cases(finding.cases)
    if finding.same:
        yield from ("", f"The same failure: {_names(finding.same)}.")
    if finding.drags:
        yield from ("", f"It drags along: {_names(finding.drags)}.")


def _about(finding: Finding, blame: Blame) -> Iterator[str]:
    if finding.stage:
        yield f"Stage {code(finding.stage)}."
    if finding.reason:
        yield f"Reported as {code(finding.reason, 300)}."
    if finding.allowed:
        yield "It is allowed to fail."
    if finding.because:
        yield f"It waits for {code(finding.because)}, which failed: look there first."
    if finding.log is None and not finding.cases:
        yield "Its log was not read."
    else:
        yield f"{blame.why.rstrip('.')}. Rule {code(blame.rule)}, {sureness(blame.sure)}."


def _kind(region: Region) -> str:
    numbers = [line.number for line in region.lines if line.number]
    where = f", line {numbers[0]}" if len(numbers) == 1 else f", lines {numbers[0]} to {numbers[-1]}" if numbers else ""
    return f"{region.kind}{where}" if region.kind is not Kind.OTHER else where.removeprefix(", ") or "as it was said"


def _role(finding: Finding) -> str:
    if finding.blame is not finding.analysis.blame:
        return "What its log shows"
    return "The cause" if finding.sure else "The likeliest place"


def _others(finding: Finding) -> list[Region]:
    """What else the log says, unless it is the same failure or stands in what is shown already."""
    seen: set[str] = set()
    shown: set[Line] = set()
    found: list[Region] = []
    for region in finding.analysis.regions:
        if region.fingerprint not in seen and shown.isdisjoint(region.lines):
            seen.add(region.fingerprint)
            shown.update(region.lines)
            found.append(region)
    return found[1 : 1 + _OTHER_REGIONS]


def _clipped(region: Region, most: int) -> Sequence[Line]:
    """Both ends of a long one: where it begins and what it comes to."""
    lines = region.lines
    if len(lines) <= most:
        return lines
    return [*lines[: most // 2], GAP, *lines[-(most - most // 2) :]]


def _cases(cases: Sequence[Case]) -> Iterator[str]:
    yield from ("", f"Failed tests by the test report ({len(cases)}):")
    for case in cases[:_CASES]:
        yield f"- {code(case.name, 200)}"
    if len(cases) > _CASES:
        yield f"- and {len(cases) - _CASES} more"
    if output := next((case.output for case in cases if case.output.strip()), ""):
        yield from ("", quoted(Line(0, line) for line in output.split("\n")[:_CASE_LINES]))


def _beside(material: Material) -> Iterator[str]:
    if material.order.flaky:
        yield f"Failed, then passed when tried again: {_names(material.order.flaky)}."
    if material.order.stopped:
        yield f"Not run, and nothing that failed explains why: {_names(material.order.stopped)}."


def _unread(material: Material, findings: Iterable[Finding]) -> Iterator[str]:
    """What is missing from this report, by name."""
    lines = [f"- {_asked(trouble)}: {code(trouble.said, 300)}" for trouble in material.troubles]
    named = {trouble.about for trouble in material.troubles}
    unread = [f.name for f in findings if f.log is None and not f.cases and f.name not in named]
    if unread:
        lines.append(f"- not read: {_names(unread)}")
    lines += [
        f"- {code(finding.name)}: only parts of its log were seen"
        for finding in findings
        if finding.log is not None and finding.log.read and not finding.log.whole and not finding.sure
    ]
    if not material.made and not material.logs:
        lines.append("- nothing was asked for: no tool was offered, or none that takes what is known here")
    if lines:
        yield from ("### What could not be read", "", *lines[: _NAMES * 2])


def _asked(trouble: Trouble) -> str:
    return f"{code(trouble.tool)} {code(trouble.about)}" if trouble.about else code(trouble.tool)


def _names(names: Sequence[str]) -> str:
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - _NAMES} more" if len(listed) > _NAMES else ""
    return ", ".join(map(code, listed[:_NAMES])) + more


def _shortened(groups: Sequence[Finding]) -> str:
    return f"Left out here for length: {_names([group.name for group in groups])}."
