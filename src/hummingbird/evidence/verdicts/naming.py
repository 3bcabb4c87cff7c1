"""Which of the changed files a failure speaks of. A name counts as it stands in the text: whole, or an end of a path
that can mean one of them only. What lies in a folder of somebody else's code is not ours.
"""

import re
from collections.abc import Iterable, Sequence

from hummingbird.domain.verdict_limits import LOOK_TEXT_CHARS

_PATH = re.compile(r"[\w.@+~/\\-]{1,400}")
_EDGES = "./\\-+~@"
_TELLING_CHARS = 5  # of a file's own name, without its folders
# names that many folders have one of: alone they tell nothing
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
_PLACES_OF_WORK = ("dockerfile", "containerfile", ".gitmodules", ".lfsconfig", ".gitattributes")
_PIPELINE = re.compile(r"(?:\.gitlab-ci|\.gitlab/ci|\.tekton|ci)/")
_INCLUDED = re.compile(
    r"(?i)(?:^|[^a-z])(?:ci|gitlab|pipelines?|jobs?|stages?|templates?|workflows?|includes?|runners?)(?![a-z])"
)
_CI = re.compile(r"(?:\.gitlab|\.gitlab-ci|\.github/workflows|\.tekton|\.circleci|ci|requirements)/")


def named_file(text: str, changed: Iterable[str]) -> str:
    """The one whose name says most; empty if there is none."""
    paths = list(changed)
    said = said_paths(text)
    fitting = [path for path in paths if any(_means(word, path, paths) for word in said)]
    return max(fitting, key=lambda path: (_fullness(said, path), len(path)), default="")


def said_paths(text: str) -> list[str]:
    """Words of a text that may be files, each once. A compiler's `file.c:12` and `file.c(12)` end at the file."""
    words = (word.replace("\\", "/") for word in _PATH.findall(text[:LOOK_TEXT_CHARS]))
    cleaned = (_without_edges(word) for word in words)
    return list(dict.fromkeys(word for word in cleaned if "." in word and not _FOREIGN.search(word)))


def _without_edges(word: str) -> str:
    while word.startswith(("./", "../")):
        word = word.partition("/")[2]
    return word.rstrip(_EDGES)


def _means(word: str, path: str, paths: Sequence[str]) -> bool:
    if word == path or word.endswith(f"/{path}"):
        return "/" in path or _tells(path)
    if not path.endswith(f"/{word}"):
        return False
    alike = sum(other == word or other.endswith(f"/{word}") for other in paths)
    return alike == 1 and ("/" in word or _tells(word))


def _tells(name: str) -> bool:
    stem = name.partition(".")[0].lower()
    return len(name) >= _TELLING_CHARS and stem not in _COMMONPLACE


def _fullness(said: Iterable[str], path: str) -> int:
    return max(len(word) for word in said if path == word or path.endswith(f"/{word}") or word.endswith(f"/{path}"))


def is_setting(path: str) -> bool:
    """Whether it says how things are built, run or put together, rather than what they do."""
    name = path.rsplit("/", 1)[-1].lower()
    return (
        name in _SETTINGS
        or name.endswith((".lock", ".gitlab-ci.yml", ".gitlab-ci.yaml"))
        or _CI.match(path) is not None
    )


def is_place_of_work(path: str) -> bool:
    """Whether a file says where jobs run and what they are given. A pipeline can include any YAML file: those count
    whose path has a word for it."""
    name = path.rpartition("/")[2].casefold()
    if name.startswith(_PLACES_OF_WORK) or _PIPELINE.match(path):
        return True
    return name.endswith((".yml", ".yaml")) and _INCLUDED.search(path) is not None
