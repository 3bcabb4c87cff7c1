"""Rules for the project's own code: compilers, type checks, linters, formatters."""

from hummingbird.evidence.blame.rule import Rank, rule
from hummingbird.evidence.regions import Class

_CODE = Class.CODE

CODE = (
    rule(
        "rust-error",
        _CODE,
        0.93,
        "The Rust compiler refused the code.",
        (r"^error\[e\d{4}\]",),
    ),
    rule(
        "compiler-error",
        _CODE,
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
    rule(
        "java-error",
        _CODE,
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
    rule(
        "swift-error",
        _CODE,
        0.9,
        "The compiler refused a line of the code.",
        (r"❌ +(?:/|\S+/)\S+\.(?:swift|m|mm|h):\d+:\d+: ",),
        words="h m mm swift",
    ),
    rule(
        "go-error",
        _CODE,
        0.86,
        "The Go compiler or vet refused a line of the code.",
        (
            (
                r"^(?:vet: |# )?(?:\./|\.\./|/|[\w.-]+/)*[\w.-]+\.go:\d+:\d+: (?!.*(?:\b(?:warning|debug|info)\b"
                r"|get \"https?:|no required module|missing go\.sum))"
            ),
        ),
    ),
    rule(
        "symbol-missing",
        _CODE,
        0.85,
        "A part of the program uses a name that no other part defines, or two define.",
        (
            r"undefined reference to",
            r"undefined symbols? for architecture",
            r"unresolved external symbol",
            r"duplicate symbol\b",
        ),
    ),
    rule(
        "linking-failed",
        _CODE,
        0.78,
        "The parts of the program could not be linked.",
        (
            r"ld returned \d+ exit status",
            r"linker command failed",
            r"linking with .{1,40} failed",
        ),
        rank=Rank.FOLLOWS,
    ),
    rule(
        "lint-denied",
        _CODE,
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
    rule(
        "linter-finding",
        _CODE,
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
    rule(
        "not-formatted",
        _CODE,
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
    rule(
        "syntax-error",
        _CODE,
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
    rule(
        "program-raised",
        _CODE,
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
        rank=Rank.LIKELY,
    ),
    rule(
        "coverage-too-low",
        _CODE,
        0.85,
        "Too little of the code is covered by tests.",
        (
            r"coverage .{0,60}(?:below|less than|does not meet|threshold|under) .{0,30}\d",
            r"coverage (?:failure|check failed)",
        ),
        words="coverage",
    ),
    rule(
        "could-not-compile",
        _CODE,
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
        rank=Rank.FOLLOWS,
    ),
)
