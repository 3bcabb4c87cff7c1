"""One place says the version, and a release changes every place that follows it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hummingbird import __version__
from scripts.release import CHANGELOG, FILES_WITH_IMAGE_TAGS, ROOT, VERSION_FILE, prepare, read_notes, read_version

DATE = "2027-01-31"
_TAG = re.compile(r"(?:hummingbird(?:-sandbox)?:|newTag: )(\d+\.\d+\.\d+)")
FILES_TO_SEARCH = [*ROOT.glob("deploy/**/*"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "Makefile"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of everything that a release changes."""
    for name in (VERSION_FILE, CHANGELOG, *FILES_WITH_IMAGE_TAGS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / CHANGELOG
    changelog.write_text("# Changelog\n\n## Unreleased\n\n- Something new.\n\n## 0.0.1 - 2020-01-01\n\n- Old.\n")
    return tmp_path


def test_package_and_script_agree_on_the_version() -> None:
    assert read_version() == __version__
    assert f'"{__version__}"' not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_image_tag_is_that_of_this_release() -> None:
    tags = {path.relative_to(ROOT): set(_TAG.findall(path.read_text())) for path in FILES_TO_SEARCH if path.is_file()}
    named = {str(path): found for path, found in tags.items() if found}
    assert named == {name: {__version__} for name in FILES_WITH_IMAGE_TAGS}


def test_release_changes_every_place(tree: Path) -> None:
    prepare("7.8.9", DATE, tree)
    assert read_version(tree) == "7.8.9"
    for name in FILES_WITH_IMAGE_TAGS:
        assert set(_TAG.findall((tree / name).read_text(encoding="utf-8"))) == {"7.8.9"}
    assert read_notes("v7.8.9", tree) == "- Something new.\n"
    assert "## Unreleased\n\n## 7.8.9 - 2027-01-31\n\n- Something new.\n\n## 0.0.1" in (tree / CHANGELOG).read_text()


@pytest.mark.parametrize("version", ["7.8", "v7.8.9", "7.8.9rc1"])
def test_release_refuses_what_is_no_version(version: str, tree: Path) -> None:
    with pytest.raises(SystemExit, match="three numbers"):
        prepare(version, DATE, tree)
    assert read_version(tree) == __version__


def test_release_without_changes_is_refused(tree: Path) -> None:
    prepare("7.8.9", DATE, tree)
    with pytest.raises(SystemExit, match="nothing to release"):
        prepare("7.9.0", DATE, tree)


def test_tag_of_another_version_has_no_notes(tree: Path) -> None:
    prepare("7.8.9", DATE, tree)
    with pytest.raises(SystemExit, match=r"the tag has to be v7\.8\.9"):
        read_notes("v7.9.0", tree)


def test_undated_version_has_no_notes(tree: Path) -> None:
    with pytest.raises(SystemExit, match="has no section"):
        read_notes(f"v{__version__}", tree)


def test_this_version_has_notes() -> None:
    """From the command line, with nothing installed."""
    argv = [sys.executable, "-I", str(ROOT / "scripts" / "release.py"), "notes", f"v{__version__}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("- ")
