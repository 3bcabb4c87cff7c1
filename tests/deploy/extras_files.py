"""deploy/extras: what each optional part of the project adds to requirements/run.lock, with the pins and hashes of
requirements/dev.lock, so that what is shipped is what was tested. `python -m tests.deploy.extras_files` writes them
anew."""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "extras"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==.*(?:\n    .*)*\n", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    """The entries of a lock file, hashes and all, by their packages."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    return {canonicalize_name(found[1]): found[0] for found in _PIN.finditer(text)}


def extras() -> dict[str, list[str]]:
    """The optional parts that requirements/run.lock does not bring anyway, and what they need."""
    there = pins("run")
    return {
        extra: needs
        for extra, needs in all_extras().items()
        if extra != "all" and any(canonicalize_name(Requirement(one).name) not in there for one in needs)
    }


def all_extras() -> dict[str, list[str]]:
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = read["project"]["optional-dependencies"]
    return found


def written(extra: str) -> str:
    """Whatever Python the image has: a package that only some need is in it, too."""
    known, there = pins("dev"), pins("run")
    wanted, waiting = set[str](), [canonicalize_name(Requirement(one).name) for one in extras()[extra]]
    while waiting:
        name = waiting.pop()
        if name in known and name not in there and name not in wanted:
            wanted.add(name)
            waiting += [canonicalize_name(one.name) for one in map(Requirement, requires(name) or []) if _needed(one)]
    return "".join(known[name] for name in sorted(wanted))


def _needed(requirement: Requirement) -> bool:
    return requirement.marker is None or "extra" not in str(requirement.marker)


if __name__ == "__main__":
    for one in extras():
        (FOLDER / f"{one}.lock").write_text(written(one), encoding="utf-8")
