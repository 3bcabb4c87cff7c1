"""Rules for the project's own code (compilers, type checks, linters, formatters) and for its tests."""

from hummingbird.evidence.classification.rule import RuleRank, make_rule
from hummingbird.evidence.regions import FailureClass

_CODE_CLASS = FailureClass.CODE

CODE_RULES = (
    make_rule(
        "rust-error",
        _CODE_CLASS,
        0.93,
        "The Rust compiler refused the code.",
        (r"^error\[e\d{4}\]",),
    ),
    make_rule(
        "compiler-error",
        _CODE_CLASS,
        0.92,
        "A compiler refused a line of the code.",
        (
            (
                r"[\w+@-]\.(?:c|cc|cpp|cxx|h|hh|hpp|m|mm|swift|hs|lhs|java|kt|kts|scala|rs|go|ts|tsx|py|f90|d|zig"
                r"|cs|vb|fs|pas|ml|erl|ex|exs|groovy|cu|proto|vala|nim|cr|dart)\b['\"]?(?:[:(\[]\d+[,:.]?\d*"
                r"(?:-\d+)?[\])]?:?|, line \d+:?)\s{1,4}(?:fatal |syntax |type )?errors?\b"
            ),
            r"\berror (?:ts|cs|fs|bc|c|lnk)\d{4}\b",
            r"^error found:$",
            r"^\S+\.erl:\d+: (?!warning).*(?:undefined|unbound|error|bad|head)",
        ),
        words="erl error errors found",
    ),
    make_rule(
        "java-error",
        _CODE_CLASS,
        0.9,
        "The compiler of a JVM language refused the code.",
        (
            r"(?:\[error\]|^e:|❌) ?\S+\.(?:java|kt|kts|scala|groovy):(?:\[?\d+[,:]\d+|\d+)",
            r"error: cannot find symbol",
            r"^\[error\] compilation (?:failure|error)",
            r"compilation error\b",
            r"compilation failed; see the compiler",
            r"execution failed for task ':.*compile\w*'",
        ),
        words="compilation groovy java kotlin kt kts scala symbol",
    ),
    make_rule(
        "swift-error",
        _CODE_CLASS,
        0.9,
        "The compiler refused a line of the code.",
        (r"❌ +(?:/|\S+/)\S+\.(?:swift|m|mm|h):\d+:\d+: ",),
        words="h m mm swift",
    ),
    make_rule(
        "go-error",
        _CODE_CLASS,
        0.86,
        "The Go compiler or vet refused a line of the code.",
        (
            (
                r"^(?:vet: |# )?(?:\./|\.\./|/|[\w.-]+/)*[\w.-]+\.go:\d+:\d+: (?!.*(?:\b(?:warning|debug|info)\b"
                r"|get \"https?:|no required module|missing go\.sum))"
            ),
        ),
    ),
    make_rule(
        "symbol-missing",
        _CODE_CLASS,
        0.85,
        "A part of the program uses a name that no other part defines, or two define.",
        (
            r"undefined reference to",
            r"undefined symbols? for architecture",
            r"unresolved external symbol",
            r"duplicate symbol\b",
        ),
    ),
    make_rule(
        "linking-failed",
        _CODE_CLASS,
        0.78,
        "The parts of the program could not be linked.",
        (
            r"ld returned \d+ exit status",
            r"linker command failed",
            r"linking with .{1,40} failed",
        ),
        rank=RuleRank.FOLLOWS,
    ),
    make_rule(
        "lint-denied",
        _CODE_CLASS,
        0.9,
        "A warning of the compiler counts as an error here.",
        (
            r"implied by .-(?:d|f) ",
            r"the lint level is defined here",
            r"\[-werror[=\]]",
            r"warnings being treated as errors",
            r"-werror=[\w-]+\]",
            r"no warnings can be incurred and -werror",
            r"found warnings and .*(?:strict|deny)",
        ),
        words="deny implied lint warnings werror",
    ),
    make_rule(
        "linter-finding",
        _CODE_CLASS,
        0.87,
        "A linter or type check refused the code.",
        (
            r"^\s*\d+:\d+\s+error\s+\S",
            r"✖ \d+ problems?(?! \(0 errors)",
            r"\w:\d+:\d+: [cwef]: (?:\[\w+\] )?\w+/\w+",
            r"\d+ offenses? detected",
            r"\.py:\d+:\d+: [a-z]{1,3}\d{3,4} ",
            r": \d+:? md\d{3}/",
            r"\bsc\d{4}\b.*\(",
            r":\d+: tldr\d{3} ",
            r"found \d+ (?:lint|style|code style) (?:error|issue|violation)",
            r"you have \d+ checkstyle violations",
            r"^\[error\] .*checkstyle",
            r"found [1-9]\d* errors? in \d+ files?",
            r":\d+: error: .* \[[a-z][\w-]+\]$",
            r"tslint",
            r":\d+:line longer than",
            r"lint(?:ing)? failed",
            r"pep8.*(?:fail|error)",
            r"^\S+\.(?:jsx?|tsx?|css|scss|less|coffee|md|vue|es6):\d+(?::\d+)? .+\([a-z][\w@/-]+\)$",
            r"failed (?:indent_char|max_line_length|insert_final)",
            r"detected [1-9]\d* broken links?",
        ),
        words="broken c checkstyle coffee css e error errors es6 f indent info issue js jsx less lint linting md"
        " offense offenses pep8 problem problems py scss style ts tslint tsx violation violations vue w",
    ),
    make_rule(
        "not-formatted",
        _CODE_CLASS,
        0.88,
        "The code is not formatted as the project wants it.",
        (
            r"^diff in \S+ (?:at line|\d)",
            r"^diff in /",
            r"would (?:be reformatted|reformat)",
            r"(?:files?|code) (?:is|are) not (?:properly )?formatted",
            r"code style issues (?:found|in)",
            r"run .{0,20}(?:prettier|gofmt|rustfmt|cargo fmt|black|format).{0,40}(?:to fix|fix|format)",
            r"not (?:gofmt|clang-format|black|prettier)",
            r"please run .{0,20}fmt",
        ),
        words="black clang diff fmt format formatted gofmt prettier reformat reformatted run rustfmt style whitespace",
    ),
    make_rule(
        "syntax-error",
        _CODE_CLASS,
        0.86,
        "A file cannot be parsed.",
        (
            r"\b(?:syntaxerror|indentationerror|taberror|compileerror)\b",
            r"php parse error",
            r"(?:^|: )syntax error\b",
            r"error: parse error on line",
            r"== compilation error",
        ),
        words="compileerror indentationerror parse syntax syntaxerror taberror",
    ),
    make_rule(
        "program-raised",
        _CODE_CLASS,
        0.6,
        "A program of the job stopped with an error of its own.",
        (
            (
                r"^(?:e +)?(?:\w+\.)*(?:nameerror|attributeerror|typeerror|referenceerror|nomethoderror|importerror"
                r"|keyerror): "
            ),
            r"\buncaught (?:\w+error|exception)",
            r"nullpointerexception",
            r"undefinedfunctionerror",
            r"php fatal error",
            r"unhandled (?:promise )?rejection",
            r"unhandled exception",
            r"^\*\* \((?:throw|exit|\w*error)\) ",
        ),
        words="attributeerror fatal importerror keyerror nameerror nomethoderror nullpointerexception"
        " referenceerror runtimeerror throw typeerror uncaught undefinedfunctionerror unhandled",
        rank=RuleRank.LIKELY,
    ),
    make_rule(
        "coverage-too-low",
        _CODE_CLASS,
        0.85,
        "Too little of the code is covered by tests.",
        (
            r"coverage .{0,60}(?:below|less than|does not meet|threshold|under) .{0,30}\d",
            r"coverage (?:failure|check failed)",
        ),
        words="coverage",
    ),
    make_rule(
        "could-not-compile",
        _CODE_CLASS,
        0.78,
        "The code did not compile.",
        (
            r"could not compile .{1,80}due to (?:\d+ )?previous errors?",
            r"aborting due to (?:\d+ )?previous errors?",
            r"\d+ errors? generated",
            r"unable to compile",
            r"failed to compile",
            r"compilation (?:failed|terminated|aborted)",
            r"build failed with \d+ error",
            r"could not compile",
            r"\[(?:build|setup) failed\]",
        ),
        words="abort build compilation compile errors generated previous",
        rank=RuleRank.FOLLOWS,
    ),
)

# Tests: those that fail on what they check, and those that fail by chance.


_TEST = FailureClass.TEST
_FLAKY = FailureClass.FLAKY

TEST_RULES = (
    make_rule(
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
    make_rule(
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
    make_rule(
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
    make_rule(
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
    make_rule(
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
    make_rule(
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
    make_rule(
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
    make_rule(
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
        rank=RuleRank.LIKELY,
    ),
    make_rule(
        "test-panicked",
        _TEST,
        0.7,
        "The program under test gave up.",
        (
            r"^thread '(?!rustc)[^']+' panicked at",
            r"^panic: (?!test timed out)",
        ),
        rank=RuleRank.LIKELY,
    ),
)
