"""A copy of the sources that may be broken, and an interpreter for which it is the only `hummingbird` there is.

The interpreter is one of a virtual environment of its own, which sees the libraries of the one that runs us, but not
its editable install. So whatever a test starts with `sys.executable` sees the broken copy too: with another
environment, with none at all, or with `-I`. That it does is looked at once, before anything is run.
"""

import importlib.util
import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutations.mutation import Mutation

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
_WHERE = "import hummingbird; print(hummingbird.__file__)"
_OURS = ("PYTHONPATH", "PYTHONHOME", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST")


class StaleMutation(Exception):
    """The text that a mutation replaces does not stand in its file exactly once."""


class Room:
    """In `folder`, which the caller removes. One mutation at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = folder / "src"
        self.python = folder / "python" / "bin" / "python"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SOURCES / "hummingbird", self.sources / "hummingbird", ignore=ignored)
        self._furnish()
        self._look()

    def _furnish(self) -> None:
        venv.create(folder := self.folder / "python", symlinks=True)
        [packages] = folder.glob("lib/python*/site-packages")
        # lines of a .pth file add folders only: the .pth files in those, an editable install's among them, do not count
        lines = [str(self.sources), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        (packages / "mutated.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _look(self) -> None:
        wanted = str(self.sources / "hummingbird" / "__init__.py")
        for options, environment in (((), self.environment()), (("-I",), {})):
            words = [str(self.python), *options, "-c", _WHERE]
            done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
            assert done.stdout.strip() == wanted, f"{done.stdout.strip()} is imported in place of {wanted}"

    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if name not in _OURS}
        return {**ours, "HUMMINGBIRD_TEST_ALL": "1"}

    @contextmanager
    def broken(self, mutation: Mutation) -> Iterator[None]:
        """Raises StaleMutation."""
        path = self.sources / mutation.file
        whole = path.read_text(encoding="utf-8")
        try:
            path.write_text(changed(whole, mutation), encoding="utf-8")
            _forget(path)
            yield
        finally:
            path.write_text(whole, encoding="utf-8")
            _forget(path)


def changed(whole: str, mutation: Mutation) -> str:
    """Raises StaleMutation."""
    if (count := whole.count(mutation.old)) != 1:
        raise StaleMutation(
            f"The text that is to be replaced stands in src/{mutation.file} {count} times: write the mutation anew."
        )
    return whole.replace(mutation.old, mutation.new)


def _forget(path: Path) -> None:
    """What was compiled of it counts by second and size: two texts of one length within a second look the same."""
    if path.suffix == ".py":
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
