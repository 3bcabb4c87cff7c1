"""Whether the merge request did it: as rules have told in the order, or else as the same rules judge the material.

Knows neither how verdicts are gathered nor how a report looks.
"""

from hummingbird.adapters.models.digest.findings import Finding
from hummingbird.adapters.models.digest.material import Material
from hummingbird.adapters.models.digest.roles import Kind
from hummingbird.adapters.models.digest.wording import code
from hummingbird.domain.verdicts import Judgement, Origin
from hummingbird.evidence.regions import INTERMITTENT
from hummingbird.evidence.verdicts.facts import JobFacts, OnTarget
from hummingbird.evidence.verdicts.judging import judged

_CANNOT = "Whose it is: rules cannot tell."
_MAY_PASS = f"{_CANNOT} The job's output looks like trouble that a second run may get over, which proves nothing."
_LIKELY = "Caused by this merge request: likely."
_NOT_OURS = {
    Origin.TARGET: "Not caused by this merge request: red on the target branch too.",
    Origin.FLAKY: "Not caused by this merge request, by all signs: flaky, a second run may pass.",
    Origin.INFRASTRUCTURE: "Not caused by this merge request, by all signs: a second run may pass.",
}


def guilt(finding: Finding, material: Material) -> str:
    """A sentence, where it can be known at all."""
    if (known := _told(finding, material)) is not None:
        origin, why = known
        return f"{_said(origin)} {why}".rstrip()
    if not finding.sure:
        return "Whose it is: cannot be known from what was read."
    own = judged(_facts(finding, material), tuple(sorted(material.changed)) or None)
    if own.origin is Origin.UNKNOWN:
        return _hinted(own, finding, material)
    return f"{_said(own.origin)} {own.reasons[0].told(code)}"


def origin_told(finding: Finding, material: Material) -> Origin | None:
    known = _told(finding, material)
    return known[0] if known is not None else None


def _told(finding: Finding, material: Material) -> tuple[Origin, str] | None:
    return material.told.of(finding.name, finding.log.key if finding.log is not None else "")


def _said(origin: Origin) -> str:
    return _LIKELY if origin is Origin.CHANGE else _NOT_OURS.get(origin, _CANNOT)


def _facts(finding: Finding, material: Material) -> JobFacts:
    text = finding.cause.excerpt if finding.cause is not None else ""
    said = "\n".join([text, *(f"{case.name}\n{case.output}" for case in finding.cases)])
    branch = next(iter(material.facts.of(Kind.BRANCH)), "")
    target = OnTarget(branch=branch, passed=(True,)) if material.branch_red is False else None
    return JobFacts(name=finding.name, analysis=finding.analysis, said=finding.said, text=said, target=target)


def _hinted(own: Judgement, finding: Finding, material: Material) -> str:
    if finding.blame.class_ in INTERMITTENT:
        return _MAY_PASS
    if material.branch_red:
        return "Whose it is: doubtful, the newest finished pipeline of the target branch failed too."
    hint = next((one for one in own.reasons if one.sign == "names-a-changed-file"), None)
    return f"Whose it is: possibly this merge request's. {hint.told(code)}" if hint is not None else _CANNOT
