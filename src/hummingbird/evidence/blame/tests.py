"""Rules for tests: those that failed on what they check, and those that fail by chance."""

from hummingbird.evidence.blame.rule import Rank, rule
from hummingbird.evidence.regions import Class

_TEST = Class.TEST
_FLAKY = Class.FLAKY

TESTS = (
    rule(
        "passed-on-retry",
        _FLAKY,
        0.85,
        "A test passed when it was tried again, or is known to fail by chance.",
        (
            r"passed (?:on|after) (?:a )?(?:retry|rerun|\d+ retries)",
            r"^\s*(?:\[\w+\] )?flakes?: ",
            r"\b[1-9]\d* flaky\b",
            r"known (?:flake|flaky)",
            r"(?:marked|detected|reported) (?:as )?flaky",
            r"(?:test|failure|this) is (?:known to be )?flaky",
            r"^\s*flaky(?: tests?)?:",
        ),
        words="flake flakes flaky rerun retries retry",
        soft=False,
    ),
    rule(
        "address-in-use",
        _FLAKY,
        0.8,
        "A port was taken by another process, which depends on what else runs at that moment.",
        (
            r"address already in use",
            r"\beaddrinuse\b",
            r"port \d+ (?:is )?already (?:in use|allocated)",
            r"only one usage of each socket address",
        ),
        words="address bind eaddrinuse port",
    ),
    rule(
        "race-detected",
        _FLAKY,
        0.78,
        "Two parts of the program got in each other's way; whether they do depends on the moment.",
        (
            r"warning: data race",
            r"data race detected",
            r"race detected during execution",
            r"deadlock (?:detected|found)",
            r"database (?:table )?is locked",
            r"concurrentmodificationexception",
            r"lock wait timeout exceeded",
        ),
        words="concurrentmodificationexception deadlock locked race",
        soft=False,
    ),
    rule(
        "test-timed-out",
        _FLAKY,
        0.65,
        "A test waited for something in vain, which slow machines bring about as well as faults do.",
        (
            r"timeout of \d+ ?ms exceeded",
            r"exceeded timeout of \d+",
            r"\btests? timed out",
            r"panic: test timed out",
            r"asynchronous wait failed",
            r"async callback was not invoked",
            r"(?:test|spec|case|hook)\b.{0,80}\btimed out\b",
            r"timed? ?out (?:after|waiting)(?! for (?:the build|pod))",
            r"\btimeout(?:error|exception)\b",
            r"timetrap_timeout",
            r"process timed out",
            r"expected to eventually",
            r"eventually .{0,60}timed out",
            r"waiting for .{0,60}timed out",
        ),
        words="callback eventually exceeded timed timedout timeout timeouterror timeoutexception timetrap wait waiting",
    ),
    rule(
        "timing-assertion",
        _FLAKY,
        0.6,
        "A test checks how long something took.",
        (
            (
                r"(?:elapsed|took|duration)\b.{0,30}(?:\d+(?:\.\d+)? ?m?s)\b.{0,40}(?:expected|limit|more than"
                r"|longer than|exceed)"
            ),
            (
                r"(?:expected|should|must).{0,60}(?:within|less than|under|at most) \d+(?:\.\d+)? ?(?:ms"
                r"|milliseconds|s|seconds|sec)\b"
            ),
        ),
        words="duration elapsed slow took within",
    ),
    rule(
        "test-crashed",
        _FLAKY,
        0.6,
        "A program under test crashed with a memory fault; such faults often come and go.",
        (
            r"segfault occurred while executing tests",
            r"\bsegmentation fault(?: \(core|:? ?\d*$)",
            r"access violation (?:in|at)\b",
            r"signal: 11, sigsegv",
            r"\bsigsegv\b(?!.*printing)",
        ),
    ),
    rule(
        "assertion-failed",
        _TEST,
        0.86,
        "A test found another result than it expects.",
        (
            r"\bassertion(?:failed)?error\b",
            r"assertion .?(?:left == right|left != right|failed|violated)",
            r"^e +assert ",
            r"failed asserting that",
            r"\bxctassert\w* failed",
            r"\bcomparisonfailure\b",
            (
                r"^\s*(?:error: )?expected:? .{0,200}(?:\bgot\b|but was|to (?:be|equal|eq|have|match|throw|contain"
                r"|include)\b)"
            ),
            r"\bexpect(?:ed)?\b.{0,200}\b(?:to have been called|but got|received|instead got|but was)\b",
            r"assert(?:eq|_eq)!? failed",
            r"\bassert\.\w+\(\) failure",
        ),
        words="assert asserteq assertequal asserting assertion assertionerror assertionfailederror"
        " comparisonfailure expect expected expecting panicked xctassert xctassertequal xctassertfalse"
        " xctassertnil xctasserttrue",
    ),
    rule(
        "test-failed",
        _TEST,
        0.84,
        "A test failed.",
        (
            r"^test result: failed",
            r"error: test failed, to rerun",
            r"^test .* \.\.\. failed",
            r"^\s*--- fail: ",
            r"^fail\s+\S+\s+[\d.]+s",
            r"^fail: ",
            r"^failed \S+::",
            r"^=+ .*\b[1-9]\d* failed\b",
            r"tests run: ?\d+, +(?:failures: [1-9]|failures: 0, +errors: [1-9])",
            r"there (?:were|are) (?:failing|test) ?(?:tests|failures)",
            r"\d+ examples?, [1-9]\d* failures?",
            r"^rspec \./",
            r"\b[1-9]\d* failing\b",
            r"^\s*not ok \d+",
            r"#\s+failed test",
            r"(?:^|\s)[1-9]\d* tests? failed",
            r"looks like your? (?:failed|test exited|planned)",
            r"^(?:failures|errors)!$",
            r"tests: \d+, assertions: \d+, .*(?:errors|failures): [1-9]",
            r"\d+ tests?,(?: \d+ assertions,)? [1-9]\d* (?:failures?|errors?)",
            r"tests? failed out of",
            r"\*\*\*(?:failed|exception)",
            r"executed \d+ of \d+ .*\([1-9]\d* failed\)",
            r"executed \d+ tests?, with [1-9]\d* failures?",
            r"^(?=.* failed$)\S.* > ",
            r"tests:\s+[1-9]\d* failed",
            r"^fail .*\.phpt\]",
            r"\[fail\]$",
            r"^test\w* failed$",
            r"\w:\w+ failed on line \d+",
            r"running (?:the )?(?:tests|examples) in .* failed",
            r"some tests (?:did not pass|failed)",
            r"test suite failed",
            r"^failed: [1-9]\d*",
            r"found errors in test_",
            r"_suite:\S+ failed",
        ),
        words="errors examples exception executed fail failed failing failure failures ok returned rspec running"
        " specs suite test tests there",
        rank=Rank.LIKELY,
    ),
    rule(
        "test-panicked",
        _TEST,
        0.7,
        "The program under test gave up.",
        (
            r"^thread '(?!rustc)[^']+' panicked at",
            r"^panic: (?!test timed out)",
        ),
        rank=Rank.LIKELY,
    ),
)
