"""Compute fingerprints of failures: short hashes that stay the same when the same failure happens again.

Lines are first reduced to stable words, without what differs in the next run: times, sizes, numbers, hashes, addresses
and the path of the checkout. Digits are dropped where they count something and kept in names: `utf8`, `E0308`,
`test_case_2`, `HTTP 404`. The text before a digit decides. Sets of letters are written out, because `\\w` grows with
every version of Unicode.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache
from hashlib import blake2b
from itertools import islice

from hummingbird.core.limits import FINGERPRINT_LINE_CHARS, FINGERPRINT_LINES, FINGERPRINT_WORDS
from hummingbird.evidence.changed_files import name_failed_test

# Colour codes without their escape character are removed only when complete: `[C]` and `[19s]` are real text.
_COLOUR = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b.?|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,5}m|\[0?K"
)
_PATH = re.compile(
    r"""(?:(?<![\w./\\~-])|(?<=\s-[A-Za-z]))(?:file://)?(?:[A-Za-z]:)?(?=[\\/][^\\/\s])
    (?:[\\/](?:(?:                                            # where a checkout or a temporary file lies
        builds[\\/](?:[\w-]{6,12}[\\/][0-9]+[\\/])?[^\\/\s:]+[\\/][^\\/\s:]+
      | (?:home|Users)[\\/][^\\/\s:]+[\\/](?:work|builds?)[\\/][^\\/\s:]+[\\/][^\\/\s:]+
      | (?:home|Users)[\\/][^\\/\s:]+(?:[\\/]AppData[\\/]Local[\\/]Temp[\\/][^\\/\s:]+)?
      | (?:a|__w)[\\/][^\\/\s:]+[\\/][^\\/\s:]+
      | github[\\/]workspace | workspace[\\/]source | root
      | (?:private[\\/])?(?:var[\\/])?tmp[\\/][^\\/\s:]+
      | (?:private[\\/])?var[\\/]folders[\\/][^\\/\s:]+[\\/][^\\/\s:]+[\\/]T[\\/][^\\/\s:]+
    )(?=[\\/])
      | (?:var[\\/])?tmp[\\/]tmp\.?\w{8,10}(?![\w.])            # as `mktemp` and Python name them
    ))?
    (?P<rest>(?:[\\/]+[^\s\\/:;,"'`()<>|*?\[\]{}]*)*)""",
    re.VERBOSE,
)
# These contain `-` or `:`, so they are found before the line is split into words: UUIDs, IPv6, MAC addresses.
_ADDRESS = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:{1,2}){3,7}[0-9a-fA-F]{1,4}(?![\w:])"
)
_OBJECT_ID = re.compile(r"(?<=[\w;$\]])@[0-9a-f]{5,16}\b")  # `java.lang.Object@a7e666`
# An environment of a test matrix, in which the same failure comes again: `py36`, `python2.7`, `pypy3`.
_ENVIRONMENT = re.compile(
    r"(?<![\w.])(?:(?:py|cp)[23][0-9]{1,2}|python[23](?:\.[0-9]{1,2}){1,2}|pypy-?(?:[23](?:\.[0-9]{1,2}){0,2})?)(?!\w)"
)
_LETTER = "A-Za-z\u00c0-\u1fff\u2c00-\u2fff\u3040-\ud7ff\uf900-\U0010ffff"
_WORD = re.compile(f"[0-9_{_LETTER}]+")
_LETTERS_OR_DIGITS = re.compile(f"[0-9]+|[{_LETTER}]+")
_HEX = re.compile(r"[0-9a-f]{7,}|[0-9A-F]{7,}|[0-9][0-9a-f]{3,}")
_WINDOWS_STATUS = re.compile(r"0x(?:800|[cC]00)[0-9a-fA-F]{5}")  # 0x80070005 means access denied; it is not an address
_LONG_NUMBER = re.compile(r"[0-9]{6,}")


def _word_set(words_of_it: str) -> frozenset[str]:
    return frozenset(words_of_it.split())


_UNITS = _word_set(
    "ns us μs ms s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days week weeks ago "
    "b kb mb gb tb kib mib gib tib bytes byte k g t e w x z am pm st nd rd th "
    "utc gmt cet cest est edt pst pdt cst cdt mst mdt bst ist jst"
)
_CALENDAR = _word_set(
    "mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday jan feb mar apr may jun jul "
    "aug sep sept oct nov dec january february march april june july august september october november december"
)
_COUNTED_THINGS = _word_set(
    "thread worker gw pid tid port runner node fork executor proc process run job build shard cpu slot "
    "proxy generatedmethodaccessor generatedconstructoraccessor"
)
_STATUS_WORDS = _word_set("exit exited status code signal errno http")
_KEPT_DIGITS = 5  # `bug60120` is a name; six or more digits are a time or a count
_WORDS_CACHED = 8192


def clean_line(line: str) -> str:
    """Cut the line to a bounded length and remove its colours."""
    line = line[:FINGERPRINT_LINE_CHARS]
    return _COLOUR.sub("", line) if "\x1b" in line or "[" in line else line


def stable_words(line: str) -> list[str]:
    """Return the first words of a cleaned line that stay the same in another run."""
    if "/" in line or "\\" in line:
        line = _PATH.sub(_path_tail, line)
    if line.count("-") > 3 or line.count(":") > 2:
        line = _ADDRESS.sub(" 0 ", line)
    if "@" in line:
        line = _OBJECT_ID.sub(" ", line)
    if "py" in line or "cp" in line:
        line = _ENVIRONMENT.sub("py", line)
    return list(islice(_stable_tokens(_WORD.findall(line)), FINGERPRINT_WORDS))


def _path_tail(path: re.Match[str]) -> str:
    """Keep two names of a file and one of a directory, whose parent may be the checkout."""
    names = [name for name in path["rest"].replace("\\", "/").split("/") if name]
    return " " + "/".join(names[-2:] if names and "." in names[-1] else names[-1:])


def _stable_tokens(tokens: list[str]) -> Iterator[str]:
    last = before = ""
    counted = False  # the previous token is a number
    for at, token in enumerate(tokens):
        word = token if token.isalpha() else _strip_variable_parts(token)
        if not word:
            if _is_status(token, last, before):
                yield token
            counted = True
            continue
        low = word.lower()
        if low in _CALENDAR and (counted or _is_date_part(tokens, at)):
            counted = True
        elif not (counted and low in _UNITS):
            yield _singular(word) if counted else word
            before, last, counted = last, low, False


def _is_date_part(tokens: list[str], at: int) -> bool:
    following = tokens[at + 1] if at + 1 < len(tokens) else ""
    return following[:1].isdigit() or following.lower() in _CALENDAR


def _is_status(token: str, last: str, before: str) -> bool:
    """Return whether the number is a status, as in `exit code 137` and `HTTP 404`: what happened, not how often."""
    if len(token) > 3 or not token.isdigit():
        return False
    return (
        last in _STATUS_WORDS
        or (last == "with" and before in _STATUS_WORDS)
        or (last == "error" and token[0] in "45" and len(token) == 3)
    )


def _singular(word: str) -> str:
    """Make `1 error` and `2 errors` the same."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


@lru_cache(maxsize=_WORDS_CACHED)
def _strip_variable_parts(token: str) -> str:
    """Return the part of a word that is a name; "" if the word is a number, a hash or a random id."""
    parts = token.split("_")
    if not any(
        part and not part.isdigit() and not _is_quantity(part, _LETTERS_OR_DIGITS.findall(part)) for part in parts
    ):
        return token if _WINDOWS_STATUS.fullmatch(token) else ""
    return "_".join(kept for part in parts if part and (kept := _stable_part(part)))


def _stable_part(part: str) -> str:
    if part.isalpha():
        return part
    if part.isdigit():
        return part if len(part) <= _KEPT_DIGITS else ""
    if _WINDOWS_STATUS.fullmatch(part):
        return part
    runs = _LETTERS_OR_DIGITS.findall(part)
    numbers = [run for run in runs if run.isdigit()]
    if _is_quantity(part, runs) or _is_random(part, numbers):
        return ""
    if runs[0].lower() in _COUNTED_THINGS and len(runs) == 2:
        return str(runs[0])
    return _LONG_NUMBER.sub("", part)


def _is_quantity(part: str, runs: list[str]) -> bool:
    """Recognise `30s`, `5m32s`, `10MiB`, `27T19` and `0x7f00`."""
    return part[0].isdigit() and (
        part[:2] in ("0x", "0X") or all(run.isdigit() or run.lower() in _UNITS for run in runs)
    )


def _is_random(part: str, numbers: list[str]) -> bool:
    """Recognise a hash, or letters and digits mixed as in a generated id: `dIBV1K0J1d`, but not `Utf8ToUtf16Test`."""
    if _HEX.fullmatch(part):
        return True
    return len(part) >= 8 and len(numbers) >= 2 and sum(map(len, numbers)) * 10 >= len(part) * 3


_RULES_VERSION = b"words 4"  # part of every fingerprint, so that changed rules give no false matches
_ENOUGH_WORDS = 2  # telling words; with fewer, the lines around are needed to tell failures apart
_ENOUGH_PLACED_WORDS = 4

# In lower case, and each alternative begins with a literal character: so `re` skips to the next possible first letter,
# which is 5 times as fast.
_WRONG = re.compile(
    r"error|exception|expect|fail|fatal|panic|abort|assert|cannot|can't|could ?n[o']t|conflict|unable|undefined"
    r"|unresolved|unknown|unsupported|not found|not ok|not installed|no such|missing|mismatch|denied|refused|required"
    r"|timed? ?out|throw|killed|no [a-z.-]+ found|not available|unavailable|segmentation|violation|invalid|crash"
    r"|duplicate|✖|✗|\[[45][0-9][0-9]\]"
)
_HEADING = re.compile(
    r"\s*[0-9]+\) |\s+\w+_test\.go:[0-9]|[\w./-]+\.\w+[:(][0-9]"
)  # `1) name of a test`, `file.c:12: message`
# Frames, and the source code that some tools show of them.
_FRAME = re.compile(
    r"\s*(?:\[error\]\s+)?(?:at\s+\S|File \"|#\s*\d+[\s:]|\d+:\s+0x|from \S+:\d+:in|# \.?/|\.\.\. \d+ more"
    r"|goroutine \d|\S+:\d+ \+0x|\[C\]: in |\[string |\S+:\d+:in [`']|[\w./\\@+-]+\.\w+:\d+(?::\d+)?:?\s*$)"
    r"|[>\s]*(?:raise|except|throw|catch)\b.*[:;)]$"
)
# What tools add after any failure. Another run of the same failure may end a line earlier.
_AFTERMATH = re.compile(
    r"travis_(?:time|fold):|\] error [0-9]|recipe for target |^\W*(?:error\W+)?(?:-> )?\[help"
    r"|see (?:the )?full |full log|complete log"
    r"|exited with|command failed|failed with (?:exit|status)|completed with exit|job failed|build failed|aborted!"
    r"|re-run maven|^(?:> task )?:[\w:.-]+ failed$|execution failed for task|build failed with an exception"
    r"|build failure$|please refer to (?:\S+ for the individual|dump files)"
    r"|✖ [0-9]+ problems?\b"
    r"|there (?:are|were) (?:test failures|failing tests)|^\W*what went wrong:"
    r"|failed to execute goal .*(?:compilation failure|there (?:are|were) test failures)|^\W*the command .* failed"
    r"|for more information about the errors|full stack trace of|after correcting the problems"
    r"|^\W*(?:error\W+)?mvn <|see \S+ (?:log|report)\b"
    r"|^\W*(?:issues?|problems?|synopsis|errors?|failures?|error report)\W*$"
    r"|test failed, to rerun|^\W*npm err(?:!|or) (?:code elifecycle|errno|test failed|lifecycle|this is probably not)"
    r"|^\W*(?:failed|not ok) \d+(?:/| of )\d+|returned (?:a )?non-?zero|^\W*make(?:\[\d\])?: \*{3} .*error \d"
    r"|^\W*(?:error: )?script returned exit code|marked build as|^\W*finished: failure|^\W*error: job failed: exit"
    r"|^\W*\* (?:try|exception is|get more help)\b|^\W*run with --|^\W*build step '.*' (?:marked|failed)"
    r"|^\W*errors? while running \w+$|concurrent test workers? running|^\W*shrunk|recipe for target"
    r"|^\W*(?:tests?|specs?|suites?|test suites|test files|examples)\b.{0,20}\d+ (?:failed|passed|total)"
)
# Names a failed test, by other words than its class, module or file.
_NAMES_TEST = re.compile(
    r"\s*--- FAIL: \w|\[\s*FAILED\s*\] \w|\s*not ok \d+ \S|\s*[✗✕✖×] \S|● \S.* › "
    r"|test \S+ \.\.\. FAILED|\s*FAIL \[ *[\d.]+s\]"
)
# Of a command with a purpose of its own that prints nothing, such as a linter, its name is all there is.
_NAMED_COMMAND = re.compile(r"(?:^|0k|m)the command [\"'](.{1,200})[\"'] (?:failed and )?exited with")
_OPTION = re.compile(r"(?<=\s)-\S+")
_ANY_COMMAND = _word_set(
    "0 1 2 all ant b bash bin build bundle cargo check ci clean cmake composer coverage cov cte"
    "st d dotnet e eval exec f fi full "
    "go gradle gradlew grunt gulp if install integration java jest lein lint m make md mix moch"
    "a mvn mvnw n nosetests npm "
    "node npx o p package php phpunit pip pnpm py pytest python python2 python3 q r rake release rspec ruby run s sbt "
    "script scripts setup sh spec stack sudo t test tests then tox travis travis_retry travis_w"
    "ait unit v verify xcodebuild xvfb "
    "yarn"
)
# Says in one line what is wrong and where: `file.c:12: message`, or what pytest shows of an assertion.
_PLACED = re.compile(r"[\w)\]]\.\w{1,8}['\"]?[:(\[]\[?[0-9]+[,:\])0-9]*.*\w{3}|[eE]  +\S")
_CHATTER = re.compile(
    r"\W*(?:info|debug|trace|notice)\b|(?:finished )?generating (?:html )?test |stopped \d+ compiler daemon"
    r"|:\S+ \(thread\[.*\) completed\. took"
)
_ITEM = re.compile(r"\s+\S|[-*•] ")
_COMMONPLACE_WORDS = (
    "a above all an and are as at be but by can code command completed debug details did do does elapsed err error "
    "errors exit exited expected fail failed failing failure failures false fatal for found from got has have if in "
    "info is it java job lang line log make more no not npm null of on or process returned run see skipped status step "
    "test tests that the there this time to true was warning warnings were with after assertion assertions before "
    "check checks complete duration example examples execution finished final pass passed pending result results "
    "scenario scenarios skip some spec specs success successful suite suites summary total unsuccessful"
)
_COMMONPLACE = frozenset(_COMMONPLACE_WORDS.split())


class _LineWeight(Enum):
    PLACED = auto()  # says what went wrong, and where
    WRONG = auto()  # says what went wrong
    PLAIN = auto()
    FRAME = auto()
    COMMAND = auto()  # names the command that failed, and says nothing else
    IDLE = auto()  # commonplace words only, or printed after any failure


def compute_fingerprint(lines: Sequence[str], *, title: str = "") -> str:
    """Return sixteen hexadecimal digits, or "" when no line says more than that something failed.

    Hashes the set of lines that say what went wrong, so their order, or one more line at the edge, changes nothing.
    `title` is the name of what failed, which always counts.
    """
    chosen = _identifying_lines(lines[:FINGERPRINT_LINES]) | set(filter(None, (normalise_line(title),)))
    if not chosen:
        return ""
    return blake2b(
        "\n".join(sorted(chosen)).encode("utf-8", "replace"), digest_size=8, person=_RULES_VERSION
    ).hexdigest()


def has_telling_line(lines: Sequence[str]) -> bool:
    """Tell whether the lines say what failed, and not only that something did.

    Without such a line, failures of different tests in two merge requests would count as the same failure.
    """
    silent = (_LineWeight.IDLE, _LineWeight.COMMAND)
    return any(weight not in silent for weight, _, _ in _weigh_lines(lines[:FINGERPRINT_LINES]))


def normalise_line(line: str) -> str:
    """Return the words of a line that stay the same in another run, separated by spaces."""
    return " ".join(stable_words(clean_line(line)))


def _identifying_lines(lines: Sequence[str]) -> set[str]:
    """Return the lines that say what went wrong, best those with a place; if they say too little, others as well.

    A line more above or below changes nothing if it says less than those. Lines that only say that something failed
    identify nothing.
    """
    found: dict[_LineWeight, set[str]] = {weight: set() for weight in _LineWeight}
    telling: dict[_LineWeight, set[str]] = {weight: set() for weight in _LineWeight}
    tests: set[str] = set()
    for weight, said, line in _weigh_lines(lines):
        text = " ".join(said)
        found[weight].add(text)
        telling[weight].update(filter(_is_telling, said))
        if _NAMES_TEST.match(line) or name_failed_test(line):
            tests.add(text)
    if len(telling[_LineWeight.PLACED]) >= _ENOUGH_PLACED_WORDS:
        return found[_LineWeight.PLACED] | tests
    wrong = found[_LineWeight.PLACED] | found[_LineWeight.WRONG] | tests
    if len(telling[_LineWeight.PLACED] | telling[_LineWeight.WRONG]) >= _ENOUGH_WORDS:
        return wrong
    return wrong | found[_LineWeight.PLAIN] or found[_LineWeight.FRAME] or found[_LineWeight.COMMAND]


def _weigh_lines(lines: Sequence[str]) -> Iterator[tuple[_LineWeight, list[str], str]]:
    listing: _LineWeight | None = None  # of an error that ended with a colon: the indented lines below belong to it
    for line in map(clean_line, lines):
        if not (said := stable_words(line)):
            continue
        weight = _line_weight(line, said)
        if weight is _LineWeight.PLAIN and listing and _ITEM.match(line):
            weight = listing
        else:
            says_wrong = weight in (_LineWeight.PLACED, _LineWeight.WRONG)
            listing = weight if says_wrong and line.rstrip().endswith(":") else None
        yield weight, said, line


def _line_weight(line: str, said: list[str]) -> _LineWeight:
    if not any(map(_is_telling, said)):
        return _LineWeight.IDLE
    low = line.lower()
    if command := _NAMED_COMMAND.search(low):
        named = _OPTION.sub("", command[1])
        return _LineWeight.COMMAND if set(_WORD.findall(named)) - _ANY_COMMAND else _LineWeight.IDLE
    if _AFTERMATH.search(low):
        return _LineWeight.IDLE
    if _FRAME.match(line):
        return _LineWeight.FRAME
    if _WRONG.search(low) or _HEADING.match(line):
        return _LineWeight.PLACED if _PLACED.search(line) else _LineWeight.WRONG
    return _LineWeight.IDLE if _CHATTER.match(low) else _LineWeight.PLAIN


def _is_telling(word: str) -> bool:
    """Tell whether a word helps to identify a failure; the type of an error alone does not."""
    return word.lower() not in _COMMONPLACE and not word.endswith(("Error", "Exception"))
