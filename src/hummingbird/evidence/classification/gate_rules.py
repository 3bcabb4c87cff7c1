"""Rules for gates: audits, licences, changelogs, commit messages, coverage, policies, secrets, generated files."""

from hummingbird.evidence.classification.rule import make_rule
from hummingbird.evidence.regions import FailureClass

_SETUP = FailureClass.CONFIGURATION
_CODE = FailureClass.CODE

GATE_RULES = (
    make_rule(
        "vulnerable-dependency",
        _SETUP,
        0.87,
        "A check found a dependency with a known vulnerability.",
        (
            r"error: [1-9]\d* (?:\w+ )?vulnerabilit(?:y|ies) found",
            r"found [1-9]\d* (?:known|security) vulnerabilit",
            r"vulnerabilit(?:y|ies) found!",
            r"^[1-9]\d* vulnerabilities found$",
            r"advisories failed",
            r"^error\[vulnerability\]",
            r"^# npm audit report",
            r"^total: [1-9]\d* \(.*(?:critical|high): [1-9]",
            r"vulnerabilities at or above the severity threshold",
            r"\d+ issues?, [1-9]\d* vulnerable paths?",
            r"affected by [1-9]\d* known vulnerabilit",
            r"your code is affected by [1-9]\d* vulnerabilit",
            r"identified with (?:known )?vulnerabilities",
            r"^severity: [1-9]\d* \w+(?: \| [1-9]\d* \w+)*$",
        ),
        words="advisories advisory critical vulnerabilities vulnerability",
    ),
    make_rule(
        "licence-refused",
        _SETUP,
        0.87,
        "A check of licences found one that is not allowed, or a file without one.",
        (
            r"\blicenses failed",
            r"license is not explicitly allowed",
            r"failed to satisfy license requirements",
            r"is licensed under .{1,80} which is not permitted",
            r"\blicen[cs]es? .{0,60}\bnot (?:allowed|permitted|approved|whitelisted)",
            r"not compliant with version \S+ of the reuse",
            r"no copyright and licensing information",
            r"missing (?:the |a )?(?:license|licence|copyright) (?:header|notice)",
            r"(?:with|have) unapproved licenses?",
            r"files do not have the expected license",
            r"(?:incompatible|forbidden|disallowed|denied) licen[cs]e",
        ),
        words="copyright license licence licenses unapproved",
    ),
    make_rule(
        "contribution-rule-broken",
        _SETUP,
        0.87,
        "The change breaks a rule for contributions: its changelog, title, commit messages or sign-off.",
        (
            r"no (?:new |valid )?(?:newsfragments?|news fragments?|changelog(?: entry| entries)?"
            r"|release notes?)\b.{0,40}\bfound",
            (
                r"(?:missing|add|include|needs?|requires?|without) (?:an? |the )?(?:\w+ )?changelog (?:entry"
                r"|fragment|file|note)"
            ),
            r"changelog(?:\.\w+)?\b.{0,40}(?:is missing|not (?:been )?(?:updated|changed|modified)|must be updated)",
            r"(?:subject|type|scope|header|body|footer) (?:may|must) (?:not )?be (?:empty|lower|upper|one of)",
            r"\[(?:subject|type|scope|header|body|footer|signed-off-by)-[a-z-]+\]$",
            r"missing (?:a |the )?(?:dco|signed-off-by|sign-?off)",
            r"(?:dco|signed-off-by|sign-?off).{0,30}\b(?:missing|required|not found)",
            r"^\d+: [tb]\d+ (?:title|body)\b",
            r"commit (?:message|title|subject).{0,60}(?:does not|doesn't|must|is too|should|invalid)",
            r"(?:merge|pull) request (?:title|description).{0,60}(?:does not|doesn't|must|is too|should|invalid)",
            r"no release type found in pull request title",
            r"(?:found|contains?) (?:fixup|squash)!? commits?",
        ),
        words="body changelog commit dco footer header newsfragments scope sign signed signoff subject type",
    ),
    make_rule(
        "coverage-too-low",
        _CODE,
        0.87,
        "Too little of the code is covered by tests.",
        (
            r"\bcoverage\b.{0,80}(?:below|less than|does not meet|threshold|under|lower than) .{0,40}\d",
            r"coverage (?:failure|check failed)",
            r"required test coverage of \S+ not reached",
            r"coverage threshold .{0,60}not met",
            r"covered ratio is \S+, but expected minimum",
        ),
        words="coverage covered",
    ),
    make_rule(
        "quality-gate-failed",
        _CODE,
        0.87,
        "A service that judges code refused it.",
        (
            r"quality gate (?:status: |has |check )?(?:failed|error|not passed)",
            r"quality gate .{0,30}: (?:failed|error)\b",
        ),
    ),
    make_rule(
        "generated-files-stale",
        _CODE,
        0.85,
        "Files that are generated were not generated anew after what they come from had changed.",
        (
            r"(?:is|are) (?:not up[- ]to[- ]date|out[- ]of[- ]date|stale|outdated)\b.{0,40}\b(?:run|commit"
            r"|regenerate|please)\b",
            r"please (?:re-?run|run|regenerate|commit) .{0,80}\b(?:commit|generated|changes)\b",
            r"(?:uncommitted|unstaged) changes (?:were )?(?:detected|found) after",
            r"generated (?:files?|code) .{0,40}(?:differ|changed|out of sync|do(?:es)? not match)",
        ),
        words="commit date generated outdated regenerate run stale",
    ),
    make_rule(
        "secret-found",
        _CODE,
        0.87,
        "A scanner found something like a password or key in the code.",
        (
            r"leaks found: [1-9]",
            r"^found (?:verified|unverified) result",
            r"potential secrets? (?:about to be committed|detected|found)",
            r"^[1-9]\d* (?:secrets?|leaks?) (?:detected|found)",
        ),
        words="leak leaks secret secrets verified unverified",
    ),
    make_rule(
        "policy-refused",
        _SETUP,
        0.87,
        "A policy refused what was built or is to be deployed.",
        (
            r"^\W*\[violation\]",
            r"error: success criteria not met",
            r"^fail - \S+ - \S+ - ",
            r"\bviolations: [1-9]",
            r"admission webhook .{1,120} denied the request",
            r"(?:violates|denied by|blocked by|violated) (?:the |a )?\S* ?polic(?:y|ies)\b",
        ),
        words="fail policies policy violation",
    ),
    make_rule(
        "limit-exceeded",
        _CODE,
        0.8,
        "What was built is larger than the project allows.",
        (
            r"(?:package|bundle) size limit (?:has )?exceeded",
            r"exceeded maximum budget",
            r"exceeds the (?:maximum )?(?:bundle|binary|image|package) size",
        ),
    ),
    make_rule(
        "performance-regressed",
        FailureClass.TEST,
        0.65,
        "A benchmark is slower than before; slow machines bring that about as well.",
        (
            r"performance (?:regression|alert)",
            r"regression detected: ",
            r"benchmark .{0,60}(?:slower|regressed|exceeded)",
        ),
        words="benchmark performance regression",
    ),
    make_rule(
        "documentation-refused",
        _CODE,
        0.87,
        "The documentation has a broken reference or markup, which counts as an error here.",
        (
            r"^warning, treated as error",
            r"aborted with [1-9]\d* warnings in strict mode",
            r"build finished with problems, [1-9]\d* warnings? \(with warnings treated as errors\)",
            r"detected [1-9]\d* broken links?",
            r"\W[1-9]\d* (?:dead|broken) links?\b",
            r"🚫 [1-9]\d* errors?",
            r"^! (?:undefined control sequence|latex error|missing \S+ inserted|package \S+ error|emergency stop)",
            r"fatal error occurred, no output pdf",
        ),
        words="broken dead error errors latex missing package",
        soft=False,
    ),
)
