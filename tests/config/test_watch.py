"""G4: a changed file is taken whole or not at all."""

import os
from pathlib import Path

import pytest

from hummingbird.config.configuration import Configuration
from hummingbird.config.watch import Watch
from hummingbird.domain.errors import ConfigurationBroken
from tests.config.files import WORKFLOW, written

GOOD = "settings: {max_iterations: 3}\n" + WORKFLOW
BETTER = "settings: {max_iterations: 4}\n" + WORKFLOW


def test_nothing_changed_is_nothing_new(tmp_path: Path) -> None:
    """G4: a new date alone is no change."""
    path = written(tmp_path, GOOD)
    watch = Watch(path, {})
    os.utime(path, (1, 1))
    assert watch.look() is None


def test_a_changed_file_is_swapped_in(tmp_path: Path) -> None:
    """G4: the old one stays as it was for those who began with it; size and date may be the same."""
    path = written(tmp_path, GOOD)
    os.utime(path, (1, 1))
    watch = Watch(path, {})
    old = watch.current
    path.write_text(BETTER)
    os.utime(path, (1, 1))
    new = watch.look()
    assert isinstance(new, Configuration)
    assert watch.current is new
    assert (old.settings.max_iterations, new.settings.max_iterations) == (3, 4)
    assert watch.look() is None


def test_a_changed_prompt_is_noticed(tmp_path: Path) -> None:
    """G4."""
    watch = Watch(written(tmp_path, GOOD), {})
    (tmp_path / "look.md").write_text("Look twice.")
    assert watch.look() is watch.current
    assert watch.current.prompts["look"] == "Look twice."


@pytest.mark.parametrize(
    "bad",
    [
        "settings: {max_iterations: 0}\n",
        "",
        "settings: [",
        WORKFLOW + "    data_sources: {gitlab: {token_env: NOT_SET}}\n",
        WORKFLOW.replace("look.md", "gone.md"),
    ],
)
def test_a_bad_one_is_told_once_and_the_old_one_stays(tmp_path: Path, bad: str) -> None:
    """G4: also one that names a missing variable; when it is mended, it is taken."""
    path = written(tmp_path, GOOD)
    watch = Watch(path, {})
    old = watch.current
    path.write_text(bad)
    assert isinstance(watch.look(), ConfigurationBroken)
    assert watch.look() is None
    assert watch.current is old
    path.write_text(BETTER)
    assert watch.look() is watch.current
    assert watch.current.settings.max_iterations == 4


def test_a_prompt_that_was_missing_is_waited_for(tmp_path: Path) -> None:
    """G4: the configuration may come before its prompts."""
    path = written(tmp_path, GOOD)
    watch = Watch(path, {})
    path.write_text(WORKFLOW.replace("look.md", "late.md"))
    assert isinstance(watch.look(), ConfigurationBroken)
    (tmp_path / "late.md").write_text("Here I am.")
    assert watch.look() is watch.current
    assert watch.current.prompts["look"] == "Here I am."


def test_a_file_that_vanishes_leaves_the_old_one(tmp_path: Path) -> None:
    """G4."""
    path = written(tmp_path, GOOD)
    watch = Watch(path, {})
    path.unlink()
    assert isinstance(watch.look(), ConfigurationBroken)
    assert watch.current.settings.max_iterations == 3
    path.write_text(GOOD)
    assert watch.look() is watch.current


def test_one_does_not_begin_with_a_broken_one(tmp_path: Path) -> None:
    """G4."""
    with pytest.raises(ConfigurationBroken):
        Watch(written(tmp_path, "nonsense"), {})


def test_the_embedded_defaults_never_change() -> None:
    """G5."""
    assert Watch(None, {}).look() is None
