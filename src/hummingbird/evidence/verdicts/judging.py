"""Whose a failure is, by rules that a person can dispute (N8). Each rule has a name, looks at one fact or two, and says
its reason in a sentence.

    of one job                                              of all that failed
    signs that agree              their origin              CHANGE as soon as anything is
    not ours in several ways      the one that explains     another origin if everything has it
                                  the others                else UNKNOWN
    CHANGE and anything else      UNKNOWN
    nothing strong enough         UNKNOWN, with what is missing

A wrong verdict costs more than none: what only hints never decides. Knows nothing of where the facts come from.

The author of a merge request decides what its jobs print. So what a job's script may have printed can accuse the merge
request and never excuses it: words of a full disk or a lost network only hint. Infrastructure needs GitLab's word, or a
log that the runner wrote alone. What other merge requests have had only hints as well: anybody can open a second one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from hummingbird.domain.verdicts import CERTAIN, LIKELY, Judgement, Origin, Reason, Verdict
from hummingbird.evidence.regions import SURE, Class, Kind
from hummingbird.evidence.verdicts.facts import Facts, JobFacts
from hummingbird.evidence.verdicts.naming import is_place_of_work, is_setting, named_file

GREEN_ON_TARGET, SEEN_ELSEWHERE = "green-on-target", "seen-in-other-merge-requests"
_PASSED_TOO, _PASSED_IN_OTHERS = 0.95, 0.8
_SAME_THERE = 0.85  # the branch is red for sure; that it is so in the same way, the logs alone say
_NAMED, _NAMED_UNSEEN, _HINT = 0.85, 0.75, 0.5
_SETTING = 0.8
_REFUSED_HERE = 0.75
_STEADY = 2  # green runs in a row on the target branch, from which it counts for more
_PLACED = (Kind.COMPILER, Kind.LINT)  # what names a file because that file is wrong
# what explains the others: a machine that breaks is red on the target branch too, and passes another time
_NOT_OURS = (Origin.INFRASTRUCTURE, Origin.FLAKY, Origin.TARGET)


@dataclass(frozen=True, slots=True)
class Sign:
    """`sure` below LIKELY only hints. `against`: an origin that it takes back, while it speaks for none. `weakens`:
    origins that are LIKELY at most where this is."""

    reason: Reason
    sure: float = 0.0
    against: Origin | None = None
    weakens: tuple[Origin, ...] = ()


Changed: TypeAlias = tuple[str, ...] | None
Rule: TypeAlias = Callable[[JobFacts, Changed], Sign | None]


def judge(facts: Facts) -> Verdict:
    jobs = tuple(judged(job, facts.changed) for job in facts.jobs)
    origin = _together([job.origin for job in jobs])
    sures = [job.sure for job in jobs if job.origin is origin]
    sure = (max if origin is Origin.CHANGE else min)(sures, default=0.0)
    return Verdict(origin=origin, sure=sure, jobs=jobs, unseen=facts.unseen)


def judged(job: JobFacts, changed: Changed) -> Judgement:
    found = [sign for rule in RULES if (sign := rule(job, changed)) is not None]
    origin, sure = _decided(found)
    reasons = [sign.reason for sign in found]
    if origin is Origin.UNKNOWN:
        reasons += _why_not(found, job, changed)
    return Judgement(
        job=job.name,
        job_id=job.id,
        origin=origin,
        sure=sure,
        reasons=_telling(reasons, origin),
        fingerprints=job.fingerprints,
    )


def _telling(reasons: list[Reason], origin: Origin) -> tuple[Reason, ...]:
    """What decided comes first. What could not be known is told by all there is."""
    if origin is Origin.UNKNOWN:
        return tuple(reasons)
    return tuple(sorted(reasons, key=lambda reason: reason.speaks_for is not origin))


def _together(origins: list[Origin]) -> Origin:
    if Origin.CHANGE in origins:
        return Origin.CHANGE
    return origins[0] if len(set(origins)) == 1 else Origin.UNKNOWN


def _decided(found: list[Sign]) -> tuple[Origin, float]:
    strong = {sign.reason.speaks_for: sign.sure for sign in sorted(found, key=lambda one: one.sure) if _decides(sign)}
    if Origin.CHANGE in strong:
        disputed = len(strong) > 1 or any(sign.against is Origin.CHANGE for sign in found)
        origin = Origin.UNKNOWN if disputed else Origin.CHANGE
    else:
        doubted = {sign.against for sign in found}
        origin = next((one for one in _NOT_OURS if one in strong and one not in doubted), Origin.UNKNOWN)
    sure = strong.get(origin, 0.0)
    return origin, min(sure, LIKELY) if any(origin in sign.weakens for sign in found) else sure


def _decides(sign: Sign) -> bool:
    return sign.sure >= LIKELY and sign.reason.speaks_for is not Origin.UNKNOWN


def _why_not(found: list[Sign], job: JobFacts, changed: Changed) -> Iterator[Reason]:
    if any(map(_decides, found)):
        yield _unknown("contradiction", "These signs contradict each other.")
        return
    if job.analysis is None and job.said is None:
        yield _unknown("log-not-read", "Its log was not read.")
    if job.target is None:
        yield _unknown("target-not-seen", "How it does on the target branch was not seen.")
    if changed is None:
        yield _unknown("diff-not-read", "Which files the merge request changes was not seen.")
    if job.analysis is not None and changed is not None and not _names_anything(found):
        yield _unknown("nothing-decides", "What failed names no file that this merge request changes, and no machine.")
    if not job.tries.passed and not job.tries.passed_in_others:
        yield _unknown("not-tried-again", "A second run of the same commit would tell whether it comes and goes.")


def _names_anything(found: list[Sign]) -> bool:
    return any(sign.reason.sign not in (GREEN_ON_TARGET, SEEN_ELSEWHERE) for sign in found)


def _passed_too(job: JobFacts, _: Changed) -> Sign | None:
    here, others = job.tries.passed, job.tries.passed_in_others
    if here:
        text = f"The same commit passed it {_times(here)} in the same pipeline."
        return _sign("passed-on-the-same-commit", Origin.FLAKY, _PASSED_TOO, text)
    if others:
        text = f"The same commit passed it {_times(others)} in another pipeline."
        return _sign("passed-on-the-same-commit", Origin.FLAKY, _PASSED_IN_OTHERS, text)
    return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _red_there(job: JobFacts, _: Changed) -> Sign | None:
    there = job.target
    if there is None or not there.red:
        return None
    where = f"in pipeline {there.pipeline_id} of {{0}}" if there.pipeline_id else "on {0}"
    if there.fingerprints is None or not job.fingerprints:
        text = f"It is red {where} too; whether in the same way was not seen."
        return _sign("red-on-target", Origin.TARGET, _HINT, text, there.branch)
    if set(job.fingerprints) <= set(there.fingerprints):
        text = f"It fails in the same way {where}."
        return _sign("red-on-target-in-the-same-way", Origin.TARGET, _SAME_THERE, text, there.branch)
    if set(job.fingerprints) & set(there.fingerprints):
        text = f"Part of what fails in it fails {where} too, and part does not."
        return _sign("red-on-target-in-part", Origin.TARGET, _HINT, text, there.branch)
    reason = _unknown("red-on-target-in-another-way", f"It is red {where} too, but in another way.", there.branch)
    return Sign(reason, against=Origin.CHANGE)


def _machine_said(job: JobFacts, _: Changed) -> Sign | None:
    if job.said is None or job.said.class_ is not Class.INFRASTRUCTURE or job.said.sure < SURE:
        return None
    return _sign(job.said.rule, Origin.INFRASTRUCTURE, job.said.sure, job.said.why)


def _machine_in_log(job: JobFacts, _: Changed) -> Sign | None:
    """Certain where the runner wrote the whole log. Else anybody may have printed it, and it weakens the accusation at
    most: a test of a changed file may fail because the network did."""
    blame = job.analysis.blame if job.analysis is not None else None
    if blame is None or blame.class_ is not Class.INFRASTRUCTURE or blame.sure < SURE or job.in_green_log:
        return None
    if job.only_runner_wrote:
        return _sign(blame.rule, Origin.INFRASTRUCTURE, blame.sure, blame.why)
    text = f"{blame.why} The job's own commands can print such lines, so this alone proves nothing."
    return replace(_sign(blame.rule, Origin.INFRASTRUCTURE, _HINT, text), weakens=(Origin.CHANGE,))


def _asked_too_much(job: JobFacts, changed: Changed) -> Sign | None:
    """A change can name a host, an image or a runner that is not there, and need more memory than there is: unless the
    target branch is red as well."""
    if job.target is not None and not job.target.green:
        return None
    if _machine_said(job, changed) is None and _machine_in_log(job, changed) is None:
        return None
    regions = job.analysis.regions if job.analysis is not None else ()
    if any(region.kind is Kind.MEMORY for region in regions):
        text = "This merge request may need more memory: that the target branch has too little as well was not seen."
        return Sign(_unknown("may-need-more-memory", text), against=Origin.INFRASTRUCTURE)
    if named := next(filter(is_place_of_work, changed or ()), ""):
        text = "This merge request changes {0}, which may say what the job asks of its machine."
        return Sign(_unknown("changes-where-it-runs", text, named), against=Origin.INFRASTRUCTURE)
    return None


def _report_missing(job: JobFacts, changed: Changed) -> Sign | None:
    """Without its test report a job cannot be held against its tests. A runner that broke down uploads none either."""
    if not job.lacks_report or job.target is None or job.only_runner_wrote:
        return None
    origin, sure = (Origin.CHANGE, _HINT) if _machine_said(job, changed) is None else (Origin.UNKNOWN, 0.0)
    text = "It uploaded no test report; on {0} the same job does."
    return replace(_sign("test-report-missing", origin, sure, text, job.target.branch), weakens=_NOT_OURS)


def _names_changed(job: JobFacts, changed: Changed) -> Sign | None:
    named = named_file(job.text, changed or ())
    if not named or job.in_green_log:
        return None
    there = job.target
    if there is not None and there.green:
        steady = len(there.passed) >= _STEADY and all(there.passed)
        sure = CERTAIN if steady else _NAMED
    else:
        sure = _NAMED_UNSEEN if there is None and _is_refused(job, *_PLACED) else _HINT
    return _sign("names-a-changed-file", Origin.CHANGE, sure, "It names {0}, which this merge request changes.", named)


def _is_refused(job: JobFacts, *kinds: Kind) -> bool:
    """A compiler or a checker says that the code is wrong: it would say so anywhere, whatever else the job prints."""
    analysis = job.analysis
    if analysis is None or analysis.lasting.class_ is not Class.CODE or analysis.lasting.sure < SURE:
        return False
    return analysis.lasting_kind in kinds


def _green_there(job: JobFacts, _: Changed) -> Sign | None:
    """What a compiler refuses it refuses each time: where it does so here and not there, here is the cause."""
    if job.target is None or not job.target.green:
        return None
    if _is_refused(job, Kind.COMPILER) and not job.in_green_log:
        text = "A compiler refuses the code here, and the same job is green on {0}."
        return _sign("refused-here-alone", Origin.CHANGE, _REFUSED_HERE, text, job.target.branch)
    return _sign(GREEN_ON_TARGET, Origin.CHANGE, _HINT, "The same job is green on {0}.", job.target.branch)


def _setting_changed(job: JobFacts, changed: Changed) -> Sign | None:
    blame = job.analysis.lasting if job.analysis is not None else None
    if blame is None or blame.class_ is not Class.CONFIGURATION or blame.sure < SURE or job.in_green_log:
        return None
    setting = next(filter(is_setting, changed or ()), "")
    if not setting:
        return None
    green = job.target is not None and job.target.green
    text = "It looks like a fault of the configuration, and this merge request changes {0}."
    return _sign("changes-the-configuration", Origin.CHANGE, _SETTING if green else _HINT, text, setting)


def _seen_elsewhere(job: JobFacts, _: Changed) -> Sign | None:
    """Counted by authors, not by merge requests: an author can open as many of those as they like."""
    if not job.elsewhere or not job.other_authors:
        return None
    count = len(job.elsewhere)
    others = "another merge request, {0}" if count == 1 else f"{count} other merge requests, {{0}} among them"
    by = "another author" if job.other_authors == 1 else f"{job.other_authors} other authors"
    reason = _unknown(SEEN_ELSEWHERE, f"The same failure was seen in {others}, of {by}.", job.elsewhere[0])
    return Sign(reason, weakens=(Origin.CHANGE,))


def _in_green_log(job: JobFacts, _: Changed) -> Sign | None:
    if not job.in_green_log:
        return None
    text = "What stands out in its log stands in that of a green run too, so it is not the cause."
    return Sign(_unknown("stands-in-the-green-log", text), against=Origin.CHANGE)


def _comes_and_goes(job: JobFacts, _: Changed) -> Sign | None:
    blame = job.analysis.blame if job.analysis is not None else None
    if blame is None or blame.class_ is not Class.FLAKY or blame.sure < SURE:
        return None
    return _sign(blame.rule, Origin.FLAKY, _HINT, blame.why)


RULES: tuple[Rule, ...] = (
    _passed_too,
    _red_there,
    _machine_said,
    _machine_in_log,
    _asked_too_much,
    _report_missing,
    _names_changed,
    _green_there,
    _setting_changed,
    _seen_elsewhere,
    _in_green_log,
    _comes_and_goes,
)


def _sign(name: str, origin: Origin, sure: float, text: str, *names: str) -> Sign:
    return Sign(Reason(sign=name, speaks_for=origin, text=text, names=names), sure)


def _unknown(name: str, text: str, *names: str) -> Reason:
    return Reason(sign=name, speaks_for=Origin.UNKNOWN, text=text, names=names)
