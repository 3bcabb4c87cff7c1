"""Find the changed files that the text of a failure names, and tell what kind of file they are.

A name counts if it is a changed path, or the end of exactly one changed path. Paths in folders of third-party code do
not count, nor do files that a line mentions in passing: rows of coverage tables, lists of files, warnings.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile

from hummingbird.evidence.bounds import LOOK_TEXT_CHARS

_PATH = re.compile(r"[\w.@+~/\\-]{1,400}")
_EDGES = "./\\-+~@"
# Where runners check out a project, so that the rest is a path within it.
_CHECKOUT = re.compile(
    r"/?(?:home/travis/build/[^/]+/[^/]+|home/runner/work/[^/]+/[^/]+|__w/[^/]+/[^/]+|builds/[^/]+/[^/]+"
    r"|github/workspace|workspace/source)/(?!.*(?:site|dist)-packages/)"
)
# The project itself may be installed there; two folders are enough to know it by.
_INSTALLED = re.compile(r"/(?:site|dist)-packages/(?=[^/]+/[^/]+/)")
_WHOLE, _EXACTLY = "./", "//"  # before a path below a checkout, or below a folder of installed packages
_SAME_PACKAGE = 3  # folders
_TELLING_CHARS = 5  # minimum length of a file name without its folders
# Names that many folders have: alone they identify no file.
_COMMONPLACE_WORDS = (
    "__init__ __main__ app base build client cmakelists common config conftest constants core errors helpers index "
    "init lib main makefile manifest mod model models module package package-lock pom readme requirements run script "
    "server settings setup test tests types util utils version"
)
_COMMONPLACE = frozenset(_COMMONPLACE_WORDS.split())
_FOREIGN = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|\.cargo|\.rustup|rustc|\.gradle|\.m2|go/pkg/mod|gems|vendor"
    r"|usr/(?:lib|include|share))/"
)
_SETTINGS_WORDS = (
    ".gitlab-ci.yml .gitlab-ci.yaml .npmrc .nvmrc .python-version .tool-versions build.gradle build.gradle.kts "
    "cargo.toml cmakelists.txt composer.json containerfile docker-compose.yml dockerfile gemfile go.mod go.sum "
    "gradle.properties makefile package-lock.json package.json pipfile pnpm-lock.yaml pom.xml pyproject.toml "
    "requirements.txt settings.gradle setup.cfg setup.py tox.ini tsconfig.json"
)
_SETTINGS = frozenset(_SETTINGS_WORDS.split())
_JOB_ENVIRONMENT_FILES = ("dockerfile", "containerfile", ".gitmodules", ".lfsconfig", ".gitattributes")
_PIPELINE = re.compile(r"(?:\.gitlab-ci|\.gitlab/ci|\.tekton|ci)/")
_INCLUDED = re.compile(
    r"(?i)(?:^|[^a-z])(?:ci|gitlab|pipelines?|jobs?|stages?|templates?|workflows?|includes?|runners?)(?![a-z])"
)
_FIXTURES = re.compile(r"(?:^|/)(?:src|tests?|testing|fixtures?|examples?|samples?)/")
_CI = re.compile(r"(?:\.gitlab|\.gitlab-ci|\.github/workflows|\.tekton|\.circleci|ci|requirements)/")


def find_named_file(text: str, changed: Iterable[str]) -> str:
    """Return the changed file that the text names most fully, or "" if it names none."""
    paths = list(changed)
    said = _paths_in_text(text)
    fitting = [path for path in paths if any(_refers_to(word, path, paths) for word in said)]
    return max(fitting, key=lambda path: (_match_length(said, path), len(path)), default="")


def resolve_path(path: str, changed: Iterable[str]) -> str:
    """Return the changed file that a path of a log means, or "" if it means none of them or several."""
    paths = list(changed)
    fitting = [one for one in paths if _refers_to(path, one, paths)]
    return fitting[0] if len(fitting) == 1 else ""


def is_foreign_path(path: str) -> bool:
    """Tell whether the path is in a folder of third-party code."""
    return _FOREIGN.search(path) is not None


def _paths_in_text(text: str) -> list[str]:
    """Return words that may be files, each once. A compiler's `file.c:12` and `file.c(12)` end at the file.

    Of a path below a checkout, or where packages are installed, the part within the project is returned, with a mark.
    """
    words = (word.replace("\\", "/") for word in _PATH.findall(text[:LOOK_TEXT_CHARS]))
    cleaned = (_within_project(_without_edges(word)) for word in words)
    return list(dict.fromkeys(word for word in cleaned if "." in word and not _FOREIGN.search(word)))


def _within_project(word: str) -> str:
    installed = _INSTALLED.search(word)
    if installed is not None:
        return _EXACTLY + word[installed.end() :]
    checkout = _CHECKOUT.match(word)
    return word if checkout is None else _WHOLE + word[checkout.end() :]


def _without_edges(word: str) -> str:
    while word.startswith(("./", "../")):
        word = word.partition("/")[2]
    return word.rstrip(_EDGES)


def _refers_to(word: str, path: str, paths: Sequence[str]) -> bool:
    if word.startswith((_WHOLE, _EXACTLY)):
        whole = word[len(_WHOLE) :]
        if whole == path or word.startswith(_EXACTLY):
            return path in {whole, f"src/{whole}"}
        word = whole
    if word == path or word.endswith(f"/{path}"):
        return "/" in path or _is_distinctive(path)
    if not path.endswith(f"/{word}"):
        return _common_folders(word, path) >= _SAME_PACKAGE
    alike = sum(other == word or other.endswith(f"/{word}") for other in paths)
    return alike == 1 and ("/" in word or _is_distinctive(word))


def _common_folders(word: str, path: str) -> int:
    """Count the folders above a file that two paths share: builds copy sources, and keep the folders of packages."""
    one, other = word.split("/"), path.split("/")
    if one[-1] != other[-1]:
        return 0
    pairs = zip(reversed(one[:-1]), reversed(other[:-1]), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_distinctive(name: str) -> bool:
    stem = name.partition(".")[0].lower()
    return len(name) >= _TELLING_CHARS and stem not in _COMMONPLACE


def _match_length(said: Iterable[str], path: str) -> int:
    words = [word.removeprefix(_WHOLE).removeprefix(_EXACTLY) for word in said]
    return max(
        (
            len(word)
            for word in words
            if path == word or path.endswith(f"/{word}") or word.endswith(f"/{path}") or _common_folders(word, path)
        ),
        default=0,
    )


def is_configuration_file(path: str) -> bool:
    """Tell whether the file configures how things are built, run or packaged, rather than what they do.

    Build files among sources, tests and examples configure no build but their own.
    """
    name = path.rsplit("/", 1)[-1].lower()
    return (
        (name in _SETTINGS and _FIXTURES.search(path) is None)
        or name.endswith((".lock", ".gitlab-ci.yml", ".gitlab-ci.yaml"))
        or _CI.match(path) is not None
    )


def is_job_environment_file(path: str) -> bool:
    """Tell whether the file says where jobs run and what they are given.

    A pipeline can include any YAML file; those count whose path has a word for it, such as `ci` or `templates`.
    """
    name = path.rpartition("/")[2].casefold()
    if name.startswith(_JOB_ENVIRONMENT_FILES) or _PIPELINE.match(path):
        return True
    return name.endswith((".yml", ".yaml")) and _INCLUDED.search(path) is not None


# Lines that name a file because something is wrong there.

_AT_PLACE = re.compile(r"\.\w+['\"]?(?:[:(\[]\s?\[?\d|,? (?:at |on )?line:? \d)|::\w")
_WRONG = re.compile(
    r"error|exception|fail|fatal|panic|cannot|can't|could ?n[o']t|\bnot\b|\bno such\b|missing|mismatch|invalid|unable"
    r"|undefined|unresolved|unexpected|denied|violat|conflict|would (?:be )?reformat|✖|✗|❌"
)
_ONLY_WARNS = re.compile(r"\bwarn(?:ing)?\b|deprecat|\[(?:unchecked|rawtypes|serial|removal|cast|fallthrough)\]")
_WARNINGS_COUNT = re.compile(r"(?i)treated as errors?|-werror|warnings found and")
_ENDS_STEP = re.compile(r"exited with \d|exit (?:code|status) \d|^\W*the command \W.{0,200} failed")
_LONE_PATH = re.compile(r"[^\w\s]*[\w.@+~/\\-]+\.\w+[^\w\s]*")
_LIST_LINES = 3  # lone paths below each other that make a list


def select_telling_lines(text: str) -> str:
    """Return the lines that say of a file that something is wrong there, or that are a path and nothing else."""
    kept: list[str] = []
    strict = _WARNINGS_COUNT.search(text) is not None
    for is_path, group in groupby(text.split("\n"), key=lambda line: _LONE_PATH.fullmatch(line.strip()) is not None):
        lines = list(group)
        if not is_path:
            kept += [line for line in lines if _tells_of_trouble(line, strict=strict)]
        elif len(set(lines)) < _LIST_LINES:
            kept += lines
    return "\n".join(kept)


def _tells_of_trouble(line: str, *, strict: bool) -> bool:
    """Tell whether something is wrong with what the line names; with `strict` warnings count as errors."""
    low = line.lower()
    is_wrong = _WRONG.search(low) is not None
    only_warns = _ONLY_WARNS.search(low) is not None and _WRONG.search(low.removeprefix("[error]")) is None
    if _ENDS_STEP.search(low) or (only_warns and not strict):
        return False
    return is_wrong or _AT_PLACE.search(line) is not None


# Where test runners name a test that failed: by class, module or file, and behind it perhaps by what was called.
_FAILED_TEST = re.compile(
    "|".join((
        r".*<<< (?:FAILURE|ERROR)!.*? - in ([\w.$]+)",
        r"(?:\[\w+\] +)?\w+(?:\[.*\])?\(([\w.$]+)\) +Time elapsed.*<<<",
        r"\[ERROR\] +([\w.$]+)\.\w+  Time elapsed.*<<<",
        r"(?:\[ERROR\])? +([A-Z][\w$]+)(?:>[\w.$]+)?\.\w+:\d+",
        r"(?:Failed tests|Tests in error): +\w+\(([\w.$]+)\)",
        r"([\w.$]+) > .+ FAILED$",
        r"(?:FAILED|ERROR) (\S+?)::",
        r"(?:FAIL|ERROR): \w+ \(([\w.]+)\)",
        r"(?:FAIL|ERROR): ([\w.]+\.[\w.]+)$",
        r"(?:Error|Failure) in test \w+ \(([\w.]+)\)",
        r"rspec (\./\S+?):\d+",
        r"\s?FAIL\s+(\S+\.\w+)(?: |$)",
        r"\d+\) ([\w\\]+)::\w+",
    ))
)  # fmt: skip
# Tests of the whole, which almost any change touches.
_TESTS_ALL = re.compile(
    r"(?:^|[^A-Za-z])(?:integration|functional|e2e|acceptance|smoke)(?![A-Za-z])|IT(?:Case)?\.\w+$|/IT_|Integration|EndToEnd"
)
_FEW_TESTS = 4  # classes or modules; where more fail, almost any change to a test would be blamed


def name_failed_test(line: str) -> str:
    """Return the class, module or file of the failed test that a line names, or ""."""
    found = _FAILED_TEST.match(line)
    return next(filter(None, found.groups()), "") if found is not None else ""


def _failed_tests(text: str) -> dict[str, str]:
    """Map the names of failed tests, as lines have them, to the class or module."""
    names = filter(None, map(name_failed_test, text[:LOOK_TEXT_CHARS].split("\n")))
    return {name: re.split(r"[./\\$]", name.removesuffix(".py"))[-1] for name in names}


def count_failed_tests(text: str) -> int:
    """Count the classes or modules of which a test failed."""
    return len(set(_failed_tests(text).values()))


def select_failed_tests(text: str) -> str:
    """Return the lines that name a failed test, or "" if tests of many classes or modules failed."""
    names = _failed_tests(text)
    return "\n".join(names) if len(set(names.values())) <= _FEW_TESTS else ""


def find_failed_test_file(text: str, changed: Iterable[str]) -> str:
    """Return the changed file that holds a failed test, or "" if there is none, or tests of many files failed."""
    names = [name.partition("$")[0].replace("\\", ".") for name in select_failed_tests(text).splitlines()]
    return next(
        (path for path in changed if not _TESTS_ALL.search(path) and any(_holds_test(path, name) for name in names)), ""
    )


def _holds_test(path: str, name: str) -> bool:
    """Tell whether `org.example.CartTest`, `tests.test_cart.CartTest` or `tests/test_cart.py` is in the file."""
    if name.removeprefix("./") == path:
        return True
    whole, _, ending = path.rpartition(".")
    folders = name.split(".")
    if whole.rpartition("/")[2] == folders[0]:
        return ending != "" and _is_distinctive(path.rpartition("/")[2])
    parts = ("/".join(folders[:end]) for end in range(2, len(folders) + 1))
    return any(whole == part or whole.endswith(f"/{part}") for part in parts)


_NAME = re.compile(r"\w+")
_FOLDERS = re.compile(r"(?:[\w.@+~-]*[/\\])+")
_TEST_OF = re.compile(
    r"(?:Test(?=[A-Z])|[Tt]ests?_)(\w+)|(\w+?)(?:_(?:tests?|spec)|(?<=[a-z0-9])(?:Tests?|TestCase|IT|Spec))"
)
_SUBJECT_CHARS = 5  # minimum length of the name of what is tested


def mentions_changed_file(text: str, changed: Iterable[str]) -> bool:
    """Tell whether the text has the name of a changed file without its ending, as compilers name classes.

    Folders do not count: a project's own name is among them.
    """
    words = set(_NAME.findall(_FOLDERS.sub(" ", select_telling_lines(text[:LOOK_TEXT_CHARS]))))
    names = {path.rpartition("/")[2] for path in changed}
    return any(_is_distinctive(name) and name.partition(".")[0] in words for name in names)


def find_tested_file(text: str, changed: Iterable[str]) -> str:
    """Return the changed file whose test the text names: `Engine.java` for `EngineTest`, `engine.py` for `test_engine`.

    Returns "" if there is none, or if several changed files are called like that.
    """
    tests = {word: _TEST_OF.fullmatch(word) for word in set(_NAME.findall(text[:LOOK_TEXT_CHARS]))}
    subjects = {_join_words(found[1] or found[2]) for found in tests.values() if found is not None}
    tested = []
    for path in changed:
        stem = path.rpartition("/")[2].partition(".")[0]
        if _is_distinctive(stem) and len(_join_words(stem)) >= _SUBJECT_CHARS and _join_words(stem) in subjects:
            tested.append(path)
    return tested[0] if len(tested) == 1 else ""


def _join_words(name: str) -> str:
    """Make `log_reader` and `LogReader` the same."""
    return name.replace("_", "").lower()
