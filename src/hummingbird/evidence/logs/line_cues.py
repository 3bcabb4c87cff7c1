"""Table of the words and patterns by which each sort of log line is recognised.

Covers test runners, compilers, package managers and CI runners. A cue is found by its literal (lower case, all of them
searched at once); where the literal says too little, a pattern confirms it. What a cue is worth is in `weights`,
learned from labelled logs.
"""

import re
from dataclasses import dataclass
from enum import IntEnum, auto


class LineSort(IntEnum):
    """Sorts of lines; a line may have several."""

    HEAD = 0  # names one failed test or task
    COMPILER = auto()
    LINT = auto()
    SETTING = auto()  # something the job needs is missing, refused or broken
    THROWN = auto()  # an exception, a crash, an assertion
    DETAIL = auto()  # expected and actual values, carets, notes
    FRAME = auto()  # a frame of a stack trace
    SUMMARY = auto()  # how many failed
    CASCADE = auto()  # printed by the caller of what failed
    ADVICE = auto()
    NOISE = auto()
    PASSED = auto()
    SKIPPED = auto()
    WARNING = auto()
    RULE = auto()  # a line drawn with characters
    ERROR = auto()  # the word, anywhere in the line
    FAIL = auto()
    NEGATION = auto()
    ABORT = auto()
    LOUD = auto()  # in capitals
    ZERO = auto()  # "0 failures"
    PLACE = auto()  # file and line
    LINK = auto()
    INDENTED = auto()
    COMMAND = auto()
    ITEM = auto()
    RED = auto()
    GREEN = auto()
    BLANK = auto()
    NETWORK = auto()
    MEMORY = auto()
    TIMEOUT = auto()
    SPACE = auto()
    RUNNER = auto()
    SURE = auto()  # printed only where something failed


@dataclass(frozen=True, slots=True)
class LineCue:
    """A literal that gives a line its sort, if `pattern` and `word` agree."""

    literal: str  # lower case
    sort: LineSort
    pattern: re.Pattern[str] | None = None  # must match the line in its original case
    word: bool = False  # the literal must be a whole word

    @property
    def is_anchored(self) -> bool:
        """Whether the pattern matches only at the beginning of a line, where trying it is much cheaper."""
        return self.pattern is not None and self.pattern.pattern.startswith("^")


def _word_cues(sort: LineSort, words: str) -> list[LineCue]:
    return [LineCue(word, sort, word=True) for word in words.split("|")]


def _substring_cues(sort: LineSort, parts: str) -> list[LineCue]:
    return [LineCue(part, sort) for part in parts.split("|")]


def _pattern_cues(sort: LineSort, *shapes: tuple[str, str]) -> list[LineCue]:
    """Each shape has literals separated by bars and the pattern that confirms each of them; `.` confirms always."""
    return [
        LineCue(literal, sort, None if part == "." else re.compile(part))
        for literals, pattern in shapes
        for part in _split_anchored(pattern)
        for literal in literals.split("|")
    ]


def _split_anchored(pattern: str) -> list[str]:
    """Split the alternatives of a pattern into those anchored at the beginning and the others."""
    parts, depth, in_class, escaped = [""], 0, False, False
    for letter in pattern:
        if not escaped:
            if letter == "|" and depth == 0 and not in_class:
                parts.append("")
                continue
            in_class = letter != "]" if in_class else letter == "["
            depth += 0 if in_class else (letter == "(") - (letter == ")")
        escaped = letter == "\\" and not escaped
        parts[-1] += letter
    begins = [part[1:] for part in parts if part.startswith("^")]
    anywhere = [part for part in parts if not part.startswith("^")]
    return [*([f"^(?:{'|'.join(begins)})"] if begins else []), *(["|".join(anywhere)] if anywhere else [])]


_HEADS = _pattern_cues(
    LineSort.HEAD,
    ("--- fail", r"^\s*-{2,4} FAIL\b"),  # go
    ("fail", r"^\s*FAIL(?:ED)?[\t :!]\s*\S|: FAIL(?:ED)?\b|\bFAIL!|\[FAIL\]|\bFAILED$"),
    ("___ ", r"^_{3,} .+ _{3,}$"),  # pytest
    ("error", r"^ERROR \S+(?:\.py|::)\S*|^ERROR: \w+ \(|^ERROR in |^\s*Errors?:\s*$|^\[ERROR\]\s{2,}\S+[.:]\S+"),
    ("... fail|... error", r"\.\.\. (?:FAILED|FAIL|ERROR)\b"),
    ("stdout ---|stderr ---", r"^-{2,} .+ (?:stdout|stderr) -{2,}"),  # cargo
    ("<<< ", r"<<< (?:FAILURE|ERROR)"),  # surefire
    ("failed", r" (?:>|›|»|→) .*\bFAILED\b|^\s*Failed\s+\w[\w.]+\s+\[|\*\*\*\s?(?:FAILED|Failed|failed)|\*failed\*"),
    ("failed on line", r"failed on line \d"),  # common test
    ("failed test", r"# +Failed test"),
    ("[  failed|[ failed", r"\[\s*FAILED\s*\]"),
    ("●|✕|✖|✗|✘|❌|×|⨯", r"^(?:nl)?\s*[●✕✖✗✘❌×⨯] ?\S"),
    ("not ok", r"^\s*(?:# )*not ok \d"),
    ("test-unexpected-|process-crash|failed consistently", r"."),
    ("failed [|fail [|error [", r"^(?:SUB)?(?:FAILED|FAIL|ERROR) \[[\d.]+s\]"),
    ("failed!", r"^RuntimeError: \S+ .*failed!"),
    ("lint for", r"^>+ Lint for \S"),
    (": failure", r":\d+: Failure|^\s*Failure:"),
    ("***exception|***timeout|*** exception", r"\*\*\*\s?(?:Exception|Timeout)"),
    ("test failed at|error during test", r"."),
    ("── ", r"── (?:Failure|Error)"),
    ("#test_", r"^\w+#test_"),
    ("found errors in|caught exception in", r"."),
    ("[e]", r"\[E\]"),
    ("### ", r"### (?:Failure|Error) in"),
    ("test case", r"[Tt]est [Cc]ase .* failed"),
    ("what went wrong", r"."),
    ("there was|there were", r"^There (?:was|were) \d+ (?:failure|error)"),
    ("failures:|failure:", r"^\s*Failures?:\s*$"),
    ("> task", r"> Task .* FAILED"),
    ("fail in|error in", r"^(?:FAIL|ERROR) in "),
    ("panicked at", r"."),
)
_COMPILERS = _pattern_cues(
    LineSort.COMPILER,
    (
        "error",
        r"[:(]\[?\d+(?:[:,.]\d+)?[\])]*:? ?-? ?(?:fatal |syntax |internal |type )?error"
        r"|\berror\[\w+\]|\berror [A-Z]{1,4}\d{3,5}\b|^\s*(?:fatal )?error: |: (?:fatal )?error: "
        r"|^\[(?:ERROR|error)\] .*\.\w+:\[?\d",
    ),
    (
        "syntax error|syntaxerror|parse error|parseerror|compile error|compilation error|typeerror|nameerror|type error"
        "|referenceerror|reference error",
        r".",
    ),
    (
        "undefined reference|undefined symbol|cannot find symbol|symbol not found|multiple definition|redefinition of",
        r".",
    ),
    (
        "ld: |collect2|rustc: |ghc: |javac: |clang: |gcc: |g++: ",
        r"^\s*(?:\S*ld|collect2|clang|gcc|g\+\+|rustc|ghc|javac): ",
    ),
    (
        ".go:|.java|.kt|.scala:|.cs(|.swift:|.rs:|.hs:|.c:|.cc:|.cpp|.h:|.hpp|.ml:|.ts|.tsx|.dart|.nim|.cr:|.m:|.vue"
        "|.elm",
        r"\.(?:go|java|kts?|scala|cs|swift|rs|hs|c|cc|cpp|cxx|h|hpp|mli?|tsx?|dart|nim|cr|m|mm|vue|elm)"
        r" ?[:(]\[?\d+[:,]\d+",
    ),
    ("! ", r"^! "),  # TeX
    (
        "compilation failed|failed to compile|could not compile|does not compile|compilation error|unable to compile",
        r".",
    ),
    ("# ", r"^# [\w.-]+(?:/[\w.-]+)+$"),
)
_LINTS = _pattern_cues(
    LineSort.LINT,
    ("error|warning|✖|×", r"^\s+\d+:\d+\s+(?:error|warning|✖|×)"),
    (": c: |: w: |: e: |: f: |: r: ", r"."),
    ("offense|violation", r"\boffenses? detected|\bviolations?\b"),
    ("would reformat|not formatted|n't formatted|needs formatting|need formatting", r"."),
    ("found ", r"FOUND \d+ ERROR"),
    (" line ", r"^In .+ line \d+:$"),
    ("unused|never used|trailing space|trailing whitespace|missing semicolon|extra semicolon|not being used", r"."),
)
_SETTINGS = [
    *_substring_cues(
        LineSort.SETTING,
        "command not found|no such file or directory|permission denied|modulenotfounderror|importerror|loaderror"
        "|module not found|cannot find module|can't find module|cannot find package|noclassdeffound|classnotfound"
        "|could not find|could not resolve|could not load|could not connect|could not fetch|could not download"
        "|could not open|could not access|could not determine|could not locate|could not read|could not get"
        "|unable to locate|unable to resolve|unable to find|unable to fetch|unable to connect|unable to access"
        "|unable to download|unable to open|no matching distribution|no matching version|no matching package"
        "|failed to fetch|failed to download|failed to load|failed to resolve|failed to connect|failed to clone"
        "|failed to open|failed to install|failed to build|failed to find|failed to start|failed to create"
        "|failed to run|failed to parse|failed to get|failed to retrieve|failed to push|failed to pull"
        "|failed building|requirements could not be resolved|requested package|conflicts with|unmet|incompatible with"
        "|aborted!|hash mismatch|checksum mismatch|not in sync|is not installed|is not recognized|is not available"
        "|is not supported|invalid option|invalid argument|invalid configuration|unknown option|unknown argument"
        "|unknown command|unknown flag|unrecognized|has been stopped|has been terminated|eresolve|eintegrity"
        "|bad interpreter|cannot open shared object|repository not found|authentication failed|unauthorized"
        "|lockfile|unsupported class|access denied|rakefile found|makefile found|no rule to make target",
    ),
    *_pattern_cues(
        LineSort.SETTING,
        ("fatal", r"^(?:fatal|FATAL|Fatal)\b"),
        ("enoent|eacces|eperm|e404", r"\bE(?:NOENT|ACCES|PERM|404)\b"),
        ("failed with error", r"failed with error -\d"),
        ("dependency failed for|emergency mode|direct firmware load|not accessible by integration", r"."),
        (
            "http error|http/1.1 4|http/1.1 5|http/2 4|http/2 5|http 40|http 50|404 not found|403 forbidden|503 service"
            "|502 bad|504 gateway|500 internal|status code 4|status code 5|404 client|401 client",
            r".",
        ),
    ),
]
_TROUBLE = [
    *_substring_cues(
        LineSort.NETWORK,
        "connection refused|connection reset|connection timed|connection error|connection closed|network is unreachable"
        "|name or service not known|getaddrinfo|temporary failure in name|could not resolve host"
        "|rate limit|too many requests|service unavailable|bad gateway|gateway time|tls handshake"
        "|ssl_error|unexpected disconnect|early eof|hung up unexpectedly|rpc failed|no route to host",
    ),
    *_word_cues(LineSort.NETWORK, "econnrefused|econnreset|etimedout|enotfound|eai_again"),
    *_substring_cues(
        LineSort.MEMORY,
        "out of memory|outofmemory|cannot allocate memory|oomkilled|oom-kill|memory limit|java heap space",
    ),
    *_pattern_cues(LineSort.MEMORY, ("killed", r"^Killed\b|\bKilled$|\bKilled signal\b|signal 9|SIGKILL")),
    *_substring_cues(
        LineSort.TIMEOUT,
        "timed out|time limit|exceeded the maximum|no output has been received|deadline exceeded|took too long"
        "|returning 124",
    ),
    *_pattern_cues(  # a setting such as `--timeout=10` is none
        LineSort.TIMEOUT, ("timeout", r"(?i)(?<![-_])timeout(?!s?['\"]?\s?[=:]? ?\d|[-_\w]*=|-)")
    ),
    *_substring_cues(
        LineSort.SPACE, "no space left|exceeded quota|disk quota|disk full|quota exceeded|maximum log length|log length"
    ),
    *_substring_cues(
        LineSort.RUNNER,
        "runner system failure|system failure|lost communication with the server|the runner has received a shutdown"
        "|pod was evicted|preempted|has been stopped|cannot connect to the docker daemon|error response from daemon",
    ),
]
_THROWN = [
    *_pattern_cues(
        LineSort.THROWN,
        (
            "error|exception|failure|throwable",
            r"[a-z](?:Error|Exception|Throwable|Failure)\b|\.[a-z]*exception\b",
        ),
        ("sigsegv|sigabrt|sigkill|sigbus|sigill|signal 6|signal 9|signal 11|signal 15", r"."),
        ("** (", r"^\s*\*\* \("),
        ("assertion|xctassert|assert fail|assertequal|assert_equal|asserterror", r"."),
        ("assert", r"^\s*(?:E\s+)?assert\b|^\s*>\s+assert\b"),
        ("panic", r"\bpanic(?:ked)?\b"),
        ("traceback", r"^\s*Traceback|TRACEBACK"),
        ("caused by", r"^\s*[Cc]aused by"),
        ("bug: |oops", r"\bBUG: |\bOops\b"),  # the kernel, and what looks for its mistakes
        ("kasan|kcsan|kmsan|ubsan", r"\b(?:KASAN|KCSAN|KMSAN|UBSAN): "),
    ),
    *_substring_cues(
        LineSort.THROWN,
        "kernel panic|call trace:|unable to handle kernel|general protection fault|internal error:|detected stall"
        "|soft lockup|hard lockup|blocked for more than|unable to mount root|###!!! |assertion failure|access violation"
        "|stack overflow|heap corruption|abort trap|illegal hardware|fatal python error|unhandled exception",
    ),
    *_substring_cues(
        LineSort.THROWN,
        "exception in thread|unhandled|uncaught|terminate called|segmentation fault|core dumped|sanitizer|runtime error"
        "|badmatch|timetrap|function_clause|stack smashing|double free|bus error|illegal instruction|fatal signal"
        "|crashed",
    ),
]
_DETAILS = [
    *_word_cues(LineSort.DETAIL, "expected|expecting|expectation|expects|actual|received|got"),
    *_substring_cues(
        LineSort.DETAIL,
        "but was|but got|but found|but received|instead of|should be|should have|should equal|should not|required:"
        "|found:|reason:|symbol:|location:|doesn't match|does not match|do not match|did not match|not equal|differ",
    ),
    *_pattern_cues(
        LineSort.DETAIL,
        (
            "message|error trace|detail|note:|help:|context|diff:|file:|line:",
            r"^\s*(?:[Mm]essages?|[Ee]rror [Tt]race|[Ee]rror [Mm]essage|[Dd]etails?|[Nn]ote|[Hh]elp|[Cc]ontext|[Dd]iff"
            r"|[Ff]ile|[Ll]ine)\s?:",
        ),
        ("= note|= help|-->", r"^\s*(?:= (?:note|help)|-->)"),
    ),
]
_FRAMES = _pattern_cues(
    LineSort.FRAME,
    ('file "', r'^\s*File ".*", line \d+'),
    (":in ", r":\d+:in [`']"),
    (
        ".rb:|.ex:|.exs:|.erl:|.php:|.pl |.py:|.js:|.ts:|.clj:|.lua:|.cr:|.jl:|.go:",
        r"\S+\.(?:rb|exs?|erl|php|pl|py|m?js|ts|clj|lua|cr|jl|go):\d+(?::in|:|\)|$| \()|^\s+\S+\.\w+:\d+(?::\d+)?\)?$",
    ),
    ("goroutine", r"^goroutine \d"),
    ("+0x", r"^\s+(?:\? )?[\w.]+\+0x[0-9a-f]+/0x"),  # the kernel
    ("@", r"^\s*[\w./<>$*-]*@\S+:\d+(?::\d+)?$"),  # Firefox
    ("found by: |.so|.dll", r"^\s*Found by: |^\s?\d+ {1,2}[\w.-]+\.(?:so|dll)\S*!"),  # crash dumps
    (" = 0x", r"^\s+r?\w{2,3} = 0x"),
)
_SUMMARIES = [
    *_substring_cues(
        LineSort.SUMMARY,
        "build fail|test failed **|build failed **|failures!|tests failed|failed tests|failing tests|tests failed"
        "|failed test summary|some tests|following tests|failures were|short test summary",
    ),
    *_pattern_cues(
        LineSort.SUMMARY,
        ("tests run", r"[Tt]ests run: ?\d"),
        (
            "fail|error|problem|offense|broken",
            r"\b[1-9]\d*(?:/\d+)? (?:\w+ )?(?:failed|failing|failures?|errors?|problems?|offenses?|broken|FAILED)\b"
            r"|(?:Failures|Errors|Failed|FAILED|failed)[:=] ?[1-9]|^FAILURE:|TOTAL: \d+ FAILED",
        ),
    ),
]
_CASCADES = [
    *_substring_cues(
        LineSort.CASCADE,
        "npm err!|elifecycle|lifecycle script|recipe for target|failed to execute goal|process completed with exit"
        "|returned non-zero|returned a non-zero|exit status|job failed|marked build as failure|finished: failure"
        "|your build exited|tasks: top|see full trace|command failed|calledprocesserror|exited with code|exit code"
        "|taskexecutionexception|lifecycleexecutionexception|mojofailureexception|mojoexecutionexception|buildexception"
        "|execution failed for task|build step|there were failing tests|one or more tests failed|test suite failed",
    ),
    *_pattern_cues(
        LineSort.CASCADE,
        ("make|ninja|rake", r"^(?:g?make|ninja|rake)(?:\[\d+\])?: "),
        ("exited with", r"exited with [1-9]"),
        ("error ", r"Error \d+$"),
        ("[error]|[help", r"^\[ERROR\]\s*$|\[Help \d\]"),
        ("error: command", r"^error Command failed|^ERROR: [\w\"' -]+ exited"),
        (
            "return code|return status|retcode",
            r"[Rr]eturn(?:ed with| with|ed)? (?:code|status):? \"?[1-9A-Z]|retcode=[1-9]",
        ),
    ),
    *_substring_cues(
        LineSort.CASCADE,
        "got exit code|subcommand failed|unsuccessful task run|nonzero exit|did not run successfully|tbpl failure"
        "|errors while running ctest",
    ),
]
# What harnesses, sanitizers and the kernel print only where something failed, however much noise is around it. None of
# the labelled logs has them, so what they are worth was set by hand (`line_scores.SURE_WORTH`).
SURE_WORDS = (
    "test-unexpected-", "process-crash", "assertion failure:", "sanitizer:", "kernel panic", "call trace:", "oops:",
    " bug: ", "kasan:", "ubsan:", "unable to handle kernel", "warning: cpu:", "self-detected stall", "detected stalls",
    "soft lockup", "hard lockup", "blocked for more than", "possible circular", "possible recursive",
    "unable to mount root", "###!!! abort", "failed consistently", "data race", "the runner has received a shutdown",
    "lost communication with the server", "runner system failure",
)  # fmt: skip
_REST = [
    *_substring_cues(LineSort.SURE, "|".join(SURE_WORDS)),
    *_pattern_cues(
        LineSort.SURE,
        ("bug: ", r"^BUG: "),
        ("failed [|fail [|error [", r"^(?:SUB)?(?:FAILED|FAIL|ERROR) \[[\d.]+s\]"),
        ("not ok", r"^\s*(?:# )*not ok \d(?!.*# (?:TODO|SKIP|todo|skip))"),
    ),
    *_substring_cues(
        LineSort.ADVICE,
        "re-run|rerun|run with|for more information|for more details|to see the full|additional logging|complete log"
        "|probably not a problem|please read|please see|please report|please file|please try|please check|see above"
        "|get more|--stacktrace|learn more|visit |to run it again|troubleshoot",
    ),
    *_substring_cues(LineSort.NOISE, "to cache|changes detected|store build cache|orphan process|.extraheader"),
    LineCue("ok", LineSort.PASSED, re.compile(r"(?i)(?<!not )\bok\b")),
    *_word_cues(LineSort.PASSED, "pass|passed|passing|success|successful|successfully|succeeded|done|yes"),
    *_substring_cues(LineSort.PASSED, "✓|✔|√"),
    *_word_cues(LineSort.SKIPPED, "skip|skipped|skipping|xfail|pending|ignored|ignore|disabled|xskip"),
    *_substring_cues(  # said by what is tested, or tried again later
        LineSort.SKIPPED,
        "javascript error:|javascript warning:|console.error:|console.warn:|eprobe_defer|deferring probe"
        "|using dummy regulator|tainting kernel|warnings.warn(",
    ),
    *_substring_cues(LineSort.PASSED, "test-pass|test-ok|test-known-fail"),
    *_word_cues(LineSort.WARNING, "warn|warning|warnings|deprecated|deprecation|notice|info|debug|wrn"),
    *_word_cues(LineSort.ERROR, "error|errors|err!"),
    *_word_cues(LineSort.FAIL, "fail|failed|fails|failing|failure|failures"),
    *_word_cues(
        LineSort.NEGATION,
        "cannot|can't|can’t|couldn't|could not|unable|not found|not defined|not exist|not allowed|not supported"
        "|not declared|not available|not valid|no such|missing|invalid|illegal|unexpected|unknown|undefined"
        "|undeclared|must|denied|refused|rejected|is not|does not|doesn't|did not|incompatible|mismatch|conflict"
        "|conflicts|wrong|bad|broken|unresolved|unsupported|malformed|not in scope|forbidden",
    ),
    *_word_cues(LineSort.ABORT, "fatal|abort|aborted|aborting|panic|killed|crash|crashed|critical|severe|terminated"),
    *_substring_cues(  # warnings by name, failures by nature
        LineSort.ABORT,
        "warning: cpu:|data race|possible circular locking|possible recursive locking|suspicious rcu"
        "|self-detected stall|detected stalls|blocked for more than",
    ),
    *_substring_cues(
        LineSort.ZERO,
        "no errors|without error|failures: 0|failures:0|failures=0|errors: 0|errors:0|errors=0|failed: 0|failed=0"
        "|fail: 0",
    ),
    *_word_cues(LineSort.ZERO, "0 failures|0 failed|0 errors|0 error|0 offenses|0 problems|0 failing|0 warnings"),
    *_substring_cues(LineSort.LINK, "http://|https://"),
]

CUES: tuple[LineCue, ...] = (
    *_HEADS, *_COMPILERS, *_LINTS, *_SETTINGS, *_TROUBLE, *_THROWN, *_DETAILS, *_FRAMES, *_SUMMARIES, *_CASCADES,
    *_REST,
)  # fmt: skip


def sort_bits(*sorts: LineSort) -> int:
    """Return a set of sorts as bits of one number."""
    return sum(1 << sort for sort in sorts)
