"""Find in the lines of a failure what a person wants to read first: the test, the message, and where in the code.

The lines come from logs and reports of any tool, so this goes by the forms that many tools share. What is not found
stays empty; nothing is guessed. The texts are untrusted.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import dedent

from hummingbird.evidence.changed_files import is_foreign_path, resolve_path
from hummingbird.evidence.logs.stack_frames import is_tool_frame

EXCERPT_KEY, EXCERPT_OTHER = "→ ", "│ "
"""What a note sets before the key line of its excerpt and before the other lines, so that none is a quick action."""

_RUNNER_MARKER = re.compile(r"section_(?:start|end):\d+:[^\s\x1b]*\s*")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-_])|[\x00-\x08\x0b-\x1f\x7f]")
_RUNNER_TALK = re.compile(
    r"\s*(?:Cleaning up project directory|Executing \"\w+\" stage|Running after.script|Uploading artifacts"
    r"|ERROR: Job failed: (?:exit code|exit status|command terminated))"
)
_DECORATION = re.compile(r"^(?:[\s│┃|╷╵╭╰✖✗✘×●•◯*>]+|E\s{2,}|##\[\w+\]|\[(?:ERROR|FATAL|error)\]:?\s+)+")
_TEST_FORMS = re.compile(
    r"""(?:test\ )?(?P<arrow>[\w.:$-]+(?:\ >\ [\w.\ $()\[\],'"-]+)*(?:\(\))?)\ (?:\.\.\.\ )?FAILED$  # Gradle, cargo
    |---\ FAIL:\ (?P<go>\S+)
    |(?:FAILED|ERROR)\ (?P<pytest>[\w./\[\]-]+::\S+)(?:\ -\ .*)?$
    |\d+\)\ (?P<playwright>\[[\w\ -]+\]\ ›\ .+)$
    |(?:FAIL|ERROR):\ (?P<unittest>\w+\ \([\w.]+\))$
    |FAILED\ (?P<report>\S.*?)(?=\ at\ [\w./-]+:\d+|\ in\ [\w./-]+\.\w+|\ on\ \S+,|\ \[[\w.$]+\]|\ \(\d+\ more|$)
    |\[\s+FAILED\s+\]\ (?P<gtest>[\w/]+\.[\w/]+)
    |(?P<surefire>[\w.$]+(?:\([\w.$]+\))?)\s+(?:--\s+)?Time\ elapsed:.*<<<\ (?:FAILURE|ERROR)!
    |(?:FAIL\s+)?[●✕×]\ (?P<jest>\S.*?\ ›\ .+)$
    |\s*FAIL\s+(?P<vitest>\S+\.\w+\ >\ .+)$
    |rspec\ (?P<rspec>\./\S+)
    |\#\s+Failed\ test\ '(?P<tap>[^']+)'
    |not\ ok\ \d+\ -?\s*(?P<notok>\S.*)$
    |\s*\d+\)\ (?P<numbered>\S.{2,200})$  # RSpec, Mocha, PHPUnit, ExUnit
    |Test\ Case\ '(?P<xctest>[^']+)'\ failed
    |\s*(?:Failed|✘)\ (?P<dotnet>[\w.]+\.\w+(?:\(.*\))?)\ \[[\d<]
    |[✗✖]\ (?P<xcpretty>test\w+),\ .*
    |thread\ '(?P<panic>[\w:]+::\w+)'\ (?:\(\d+\)\ )?panicked""",
    re.VERBOSE,
)
_RAISED = re.compile(r"\b[\w.$]*(?:Error|Exception|Panic|Failure|Fault)\b(?:\[\w+\]|:\d+)?\s*[:=(]\s*\S")
_SAYS_ERROR = re.compile(
    r"(?:^|[\s:)])(?:fatal |internal compiler )?error(?:\[\w+\]|\s+[A-Z]+\d+)?\s*:\s*\S"
    r"|^(?:fatal|panic|FATAL|E)\b.*:\s*\S|panicked at|^ERROR\b|^Error\b",
    re.IGNORECASE,
)
_CAUSE_WORDS = re.compile(
    r"time(?:d )?.?out|refused|denied|forbidden|unauthori[sz]ed|\b(?:40[0-9]|429|50[0-4])\b|no such|not found|cannot"
    r"|can't|could ?n[o']t|unable|undefined|undeclared|unresolved|does not|doesn't|did not|already|expected|assert"
    r"|mismatch|invalid|illegal|killed|no space|out of memory|reset by|handshake|certificate|signature|signed"
    r"|unexpected|missing|unknown|unsupported|conflict|must |unused|violat|would (?:be )?reformat|segmentation|overflow"
    r"|too (?:long|large|many|low)|exceeded|unschedulable|insufficient|permission|limit|coverage|required|!="
    r"|\bnot\b|\bno\b",
    re.IGNORECASE,
)
_EMPTY_WORDS = re.compile(
    r"exit(?:ed)?(?: with)?(?: (?:code|status))? ?:? ?\d|^\W*(?:BUILD )?FAIL(?:ED|URE)?\W*$|Build failed"
    r"|Job failed(?!: execution|: prepare| \(system)|there were failing tests|see the report|to rerun|run with"
    r"|Process completed|Execution failed for task|compilation (?:failed|terminated)|could not compile|aborting due to"
    r"|\d+ (?:tests?|errors?|failures?|problems?)\b|^FAILED \(|build failed, waiting|waiting for other jobs|Result:"
    r"|^error: test failed|failures:$|Error \d+$|returned a non-zero code|Subprocess|script returned"
    r"|: note: |One or more errors occurred|An unexpected error"
    r"|command terminated|Failed to execute goal|^make",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"\b\d+ (?:passed|failed|tests?|errors?|failures?|problems?)\b", re.IGNORECASE)
_PROGRESS = re.compile(
    r"(?:Finished|Compiling|Checking|Download\w*|Install\w*|Fetch\w*|Unpack\w*|Looking for|Finding|PASS(?:ED)?|ok|real"
    r"|user|sys)\b|.{0,60}\[\s*\d+ of +\d+\]|ℹ|✓|✔"
)
_SOURCE_CODE = re.compile(r"(?:raise|throw|return|if|assert)\b|warning\b", re.IGNORECASE)
_MARKED = re.compile(r"\s*(?:[✗✖✘❌×]|Diff in )")
_PLACES = (
    re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+)'),
    re.compile(r"\((?P<path>[\w$-]+\.(?:java|kt|scala|groovy)):(?P<line>\d+)\)"),
    re.compile(r" at (?P<path>[\w$-]+\.(?:java|kt|scala|groovy)):(?P<line>\d+)"),
    re.compile(r" in (?P<path>\S+\.\w+):line (?P<line>\d+)"),
    re.compile(r"(?P<path>(?:[A-Za-z]:)?[\w.@+~/\\-]*[\w+-]\.[A-Za-z]\w{0,9})[(:\[](?P<line>\d+)"),
    re.compile(r"(?P<path>[\w.@+~/-]*[\w+-]\.[A-Za-z]\w{0,9}),? line (?P<line>\d+)"),
)
_BUILD_FOLDERS = re.compile(
    r"^(?:/builds/[^/]+/[^/]+/|/home/runner/work/[^/]+/[^/]+/|/__w/[^/]+/[^/]+/|/github/workspace/"
    r"|/(?:app|src|workspace|code|source|work|tmp)/(?:source/)?)"
)
_SHORT_SUMMARY = re.compile(r"^(?:FAILED|ERROR) \S+::\S+ - ")
_WARNS = re.compile(r"\bwarning\b", re.IGNORECASE)
_OF_NODE = ("module.js", "events.js", "assert.js", "net.js")
_LIBRARY_FRAME = re.compile(
    r"^\s*at .*\([\w-]+\.[cm]?js:\d+|\b(?:src/lib|library/)(?:std|core|alloc|test|panic_unwind)/"
)
_ROW_OF_LINTER = re.compile(r"\s*(\d+):\d+\s+(?:error|✖)")  # below the path of the file, as ESLint and others do
_LONE_PATH = re.compile(r"\s*[\w.@+~/\\-]+\.\w+\s*$")
_DETAIL_LINES = 8
_TITLE_BONUS = 2.5


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A line of the project's code; `known` means that the path is one that the merge request changes."""

    path: str
    line: int
    known: bool = False

    @property
    def name(self) -> str:
        return f"{self.path.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True, slots=True)
class FailureHeadline:
    """What a failure says about itself; `lines` are its lines without what runners and terminals add.

    `key` is the index of the line that has the message, `tests` are all tests that the lines name
    in the same form as `test`: a test of a farm may have run other tests.
    """

    test: str = ""
    tests: tuple[str, ...] = ()
    message: str = ""
    place: CodePlace | None = None
    lines: tuple[str, ...] = ()
    key: int = 0

    @property
    def only_counts(self) -> bool:
        """Return whether the message counts failures that stand elsewhere, as the last line of a test run does."""
        says_more = self.test or _RAISED.search(self.message) or _CAUSE_WORDS.search(self.message)
        return bool(_COUNTS.search(self.message)) and not says_more


def read_headline(
    title: str, excerpt: str, changed: Sequence[str] = (), project: str = "", job: str = ""
) -> FailureHeadline:
    """Return what the lines of a failure say; `title` is the line that was found to say most.

    `changed` are files that the merge request changes, `project` is the path of the project, under which its jobs run,
    and `job` the name of the job, after which GitLab names its tests.
    """
    lines = tuple(clean_lines(excerpt))
    if not lines:
        return FailureHeadline(message=_strip_decoration(title))
    key = _find_key(title, lines)
    place = _find_place(lines, key, changed, project)
    forms = find_tests(lines)
    test = next(iter(find_tests(lines[key : key + 1]) or forms), "")
    tests = tuple(name for name, form in forms.items() if form == forms.get(test))
    test = test.removeprefix(f"{job} > ")
    message = _message_at(lines, key)
    if project:
        message = message.replace(f"/builds/{project}/", "")
    return FailureHeadline(test=test, tests=tests, message=message, place=place, lines=lines, key=key)


def clean_lines(text: str) -> list[str]:
    """Return the lines without markers of the runner, terminal sequences, common indentation and blank lines."""
    rows = (_ESCAPES.sub("", _RUNNER_MARKER.sub("", line.expandtabs(4))).rstrip() for line in text.split("\n"))
    full = [row for row in rows if row.strip()]
    own = [row for row in full if not _RUNNER_TALK.match(row)] or full
    return dedent("\n".join(own)).split("\n") if own else []


def find_tests(lines: Iterable[str]) -> dict[str, str]:
    """Return the names of the tests that failed, in their order, each with the form in which it was told.

    Names of groups of tests are left out.
    """
    found = (_TEST_FORMS.match(line.strip()) for line in lines)
    forms: dict[str, str] = {}
    for one in found:
        if one is not None and one.lastgroup is not None:
            forms.setdefault(one[one.lastgroup].strip(), one.lastgroup)
    return {
        name: form
        for name, form in forms.items()
        if not any(other != name and other.startswith(name) for other in forms)
    }


def _strip_decoration(line: str) -> str:
    return _DECORATION.sub("", line).strip() or line.strip()


def _find_key(title: str, lines: Sequence[str]) -> int:
    """Return the index of the line with the message: the title, unless another one says clearly more."""
    wanted = _strip_decoration(_ESCAPES.sub("", title))
    at_title = next((at for at, line in enumerate(lines) if wanted and wanted in line), -1)
    worth = [_line_worth(line) + (_TITLE_BONUS if at == at_title else 0.0) for at, line in enumerate(lines)]
    best = max(range(len(lines)), key=lambda at: (worth[at], -at))
    said = _SHORT_SUMMARY.sub("", lines[best])
    return next(at for at, line in enumerate(lines) if at == best or _SHORT_SUMMARY.sub("", line) == said)


def _line_worth(line: str) -> float:
    text = _strip_decoration(line)
    if _PROGRESS.match(text):
        return -2.5
    if _EMPTY_WORDS.search(text) and not _RAISED.search(text):
        return -2.0
    if _TEST_FORMS.match(text):
        return 0.5 if " - " not in text and "panicked" not in text else 4.0
    worth = (2.0 if _MARKED.match(line) else 0.0) - (2.0 if _SOURCE_CODE.match(text) else 0.0)
    if _RAISED.search(text):
        worth += 6.0
    elif _SAYS_ERROR.search(text):
        worth += 4.0
    return worth + (1.5 if _CAUSE_WORDS.search(text) else 0.0) if sum(map(str.isalpha, text)) >= 4 else -3.0


def _message_at(lines: Sequence[str], key: int) -> str:
    """Return the message, with the line that says why where the first one only says what was being done."""
    message = _SHORT_SUMMARY.sub("", _strip_decoration(lines[key]))
    following = [_strip_decoration(line) for line in lines[key + 1 : key + 1 + _DETAIL_LINES]]
    if message.endswith(":") and following and following[0] not in find_tests(lines):
        return f"{message} {following[0]}"
    if _CAUSE_WORDS.search(message):
        return message
    detail = next((line for line in following if _CAUSE_WORDS.search(line) and not _EMPTY_WORDS.search(line)), "")
    return f"{message} … {detail}" if detail and not _TEST_FORMS.match(detail) else message


def _find_place(lines: Sequence[str], key: int, changed: Sequence[str], project: str) -> CodePlace | None:
    """Return the place nearest behind the message, or before it; one in a changed file comes first.

    Where a compiler only warned says nothing about a failure.
    """
    if (row := _ROW_OF_LINTER.match(lines[key])) is not None:
        paths = (_path_in_project(line.strip(), project) for line in reversed(lines[:key]) if _LONE_PATH.match(line))
        if path := next(filter(None, paths), ""):
            known = resolve_path(path, changed)
            return CodePlace(known or path, int(row[1]), known=bool(known))
    order = [at for at in (*range(key, len(lines)), *reversed(range(key))) if not _WARNS.search(lines[at])]
    places = [place for at in order for place in _places_in(lines[at], changed, project)]
    return next((place for place in places if place.known), places[0] if places else None)


def _places_in(line: str, changed: Sequence[str], project: str) -> list[CodePlace]:
    if is_tool_frame(line) or _LIBRARY_FRAME.search(line):
        return []
    found = []
    for pattern in _PLACES:
        for one in pattern.finditer(line):
            path = _path_in_project(one["path"], project)
            if path and not is_foreign_path(path) and int(one["line"]):
                known = resolve_path(path, changed)
                found.append(CodePlace(known or path, int(one["line"]), known=bool(known)))
        if found:
            break
    return found


def _path_in_project(path: str, project: str) -> str:
    """Return the path as the repository has it; "" for what is an address or lies elsewhere on the machine."""
    path = path.replace("\\", "/")
    if "//" in path or path.count(".") > 8 or "." not in path or path in _OF_NODE:
        return ""
    if project and (at := path.find(f"/{project}/")) >= 0:
        return path[at + len(project) + 2 :]
    path = _BUILD_FOLDERS.sub("", path)
    while path.startswith(("./", "../")):
        path = path.partition("/")[2]
    return "" if path.startswith(("/", "~")) or path[1:2] == ":" else path
