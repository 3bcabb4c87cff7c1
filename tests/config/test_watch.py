"""A changed file is taken whole or not at all."""

import os
from pathlib import Path

import pytest

from hummingbird.config.configuration import Configuration
from hummingbird.config.loader import ConfigWatcher
from hummingbird.core.errors import ConfigurationError
from tests.config.files import WORKFLOW, written

GOOD = "settings: {max_iterations: 3}\n" + WORKFLOW
BETTER = "settings: {max_iterations: 4}\n" + WORKFLOW


def test_nothing_changed_is_nothing_new(tmp_path: Path) -> None:
    """A new date alone is no change."""
    path = written(tmp_path, GOOD)
    watch = ConfigWatcher(path, {})
    os.utime(path, (1, 1))
    assert watch.poll() is None


def test_a_changed_file_is_swapped_in(tmp_path: Path) -> None:
    """The old one stays as it was for those who began with it; size and date may be the same."""
    path = written(tmp_path, GOOD)
    os.utime(path, (1, 1))
    watch = ConfigWatcher(path, {})
    old = watch.current
    path.write_text(BETTER)
    os.utime(path, (1, 1))
    new = watch.poll()
    assert isinstance(new, Configuration)
    assert watch.current is new
    assert (old.settings.max_iterations, new.settings.max_iterations) == (3, 4)
    assert watch.poll() is None


def test_a_changed_prompt_is_noticed(tmp_path: Path) -> None:
    watch = ConfigWatcher(written(tmp_path, GOOD), {})
    (tmp_path / "look.md").write_text("Look twice.")
    assert watch.poll() is watch.current
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
    """Also one that names a missing variable; when it is repaired, it is taken."""
    path = written(tmp_path, GOOD)
    watch = ConfigWatcher(path, {})
    old = watch.current
    path.write_text(bad)
    assert isinstance(watch.poll(), ConfigurationError)
    assert watch.poll() is None
    assert watch.current is old
    path.write_text(BETTER)
    assert watch.poll() is watch.current
    assert watch.current.settings.max_iterations == 4


def test_a_prompt_that_was_missing_is_waited_for(tmp_path: Path) -> None:
    """The configuration may come before its prompts."""
    path = written(tmp_path, GOOD)
    watch = ConfigWatcher(path, {})
    path.write_text(WORKFLOW.replace("look.md", "late.md"))
    assert isinstance(watch.poll(), ConfigurationError)
    (tmp_path / "late.md").write_text("Here I am.")
    assert watch.poll() is watch.current
    assert watch.current.prompts["look"] == "Here I am."


def test_a_file_that_vanishes_leaves_the_old_one(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    watch = ConfigWatcher(path, {})
    path.unlink()
    assert isinstance(watch.poll(), ConfigurationError)
    assert watch.current.settings.max_iterations == 3
    path.write_text(GOOD)
    assert watch.poll() is watch.current


def test_one_does_not_begin_with_a_broken_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        ConfigWatcher(written(tmp_path, "nonsense"), {})


def test_the_embedded_defaults_never_change() -> None:
    assert ConfigWatcher(None, {}).poll() is None
