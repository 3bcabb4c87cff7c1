"""Split logs into those that may be looked at and those that are kept apart, and into families.

A repository is kept apart by a hash of its name, so it is on the same side in every set. About one repository in five
is. No cue, constant, weight or rule may be chosen with a look at its logs; they are measured when the work is done.

Logs of one family look alike: those of a CI system, of a language, of a build tool. What was chosen with one family in
view says little about the others, so figures come with that of the worst family.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

SEED = "evidence"
KEPT_APART = 5  # one repository in so many
SMALLEST_FAMILY = 5  # logs; the mean of fewer says nothing
_BUILD_TOOLS = (
    ("gradle", ("gradlew", "$ gradle", "> task :", "what went wrong:")),
    ("maven", ("mvn ", "[info] building ", "maven")),
    ("ant", ("buildfile:", "[javac]", "$ ant ")),
    ("sbt", ("sbt ", "[info] compiling ")),
    ("tox", ("tox ", "py27: commands", "congratulations :)")),
    ("pytest", ("pytest", "py.test")),
    ("nose", ("nosetests",)),
    ("unittest", ("setup.py test", "-m unittest", "manage.py test")),
)  # a log that has words of several belongs to the first

T = TypeVar("T")


def repository_key(name: str) -> str:
    """Return the name of a repository as every set spells it alike, without the source or the workflow around it."""
    for source in ("logchunks:", "cidiff:"):
        name = name.removeprefix(source)
    return name.partition(":")[0].replace("@", "-").replace("/", "-").lower()


def is_kept_apart(repository: str) -> bool:
    """Tell whether the logs of a repository are kept apart until the work is done."""
    digest = hashlib.sha256(f"{SEED}:{repository_key(repository)}".encode()).hexdigest()
    return int(digest[:8], 16) % KEPT_APART == 0


def split_by_repository(items: Iterable[T], repository: Callable[[T], str]) -> tuple[list[T], list[T]]:
    """Return the items that may be looked at, and those kept apart."""
    open_: list[T] = []
    apart: list[T] = []
    for item in items:
        (apart if is_kept_apart(repository(item)) else open_).append(item)
    return open_, apart


def build_tool(log: str) -> str:
    """Name the build tool whose words stand in a log."""
    lower = log.lower()
    return next((tool for tool, words in _BUILD_TOOLS if any(word in lower for word in words)), "other")


def worst_family(families: Sequence[Sequence[str]], values: Sequence[float]) -> tuple[str, float]:
    """Return the family with the lowest mean; `families` are those of each value."""
    by_name: dict[str, list[float]] = {}
    for names, value in zip(families, values, strict=True):
        for name in names:
            by_name.setdefault(name, []).append(value)
    means = {name: sum(of) / len(of) for name, of in by_name.items() if len(of) >= SMALLEST_FAMILY}
    return min(means.items(), key=lambda item: (item[1], item[0]), default=("none", float("nan")))
