"""`hummingbird init`: a beginning that works as it is."""

from pathlib import Path

import pytest

from hummingbird.config.loader import load_config
from tests.cli.typing_in import typed

FILES = ("hummingbird.yaml", "workflows/analyze-failures.md", "workflows/code-review.md")


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_it_wrote_passes_config_check(tmp_path: Path) -> None:
    done = typed("init", str(tmp_path / "deploy"))
    assert done.code == 0
    assert set(contents(tmp_path / "deploy")) == set(FILES)
    checked = typed("config", "check", "--config", str(tmp_path / "deploy" / "hummingbird.yaml"))
    assert checked.code == 0, checked.out
    assert "analyze-failures: on failed pipelines; every project" in checked.out
    assert "code-review: by commands only; every project" in checked.out


def test_without_a_folder_it_writes_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert typed("init").code == 0
    assert set(contents(tmp_path)) == set(FILES)


def test_the_prompts_are_copies_of_the_embedded_ones(tmp_path: Path) -> None:
    typed("init", str(tmp_path))
    there = load_config(tmp_path / "hummingbird.yaml", None)
    assert there.prompts == load_config(None, None).prompts
    assert len(there.prompts) == 2


def test_it_says_what_to_do_next(tmp_path: Path) -> None:
    """Tokens, webhook with its kinds of events, doctor, serve."""
    said = typed("init", str(tmp_path)).out
    for words in (
        *("ORCHESTRATOR_GITLAB_TOKEN", "HUMMINGBIRD_WEBHOOK_SECRET", "Pipeline events", "Merge request events"),
        *("Comments, Confidential comments", "hummingbird doctor", "hummingbird serve"),
    ):
        assert words in said


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_overwritten_and_the_file_in_the_way_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    done = typed("init", str(tmp_path))
    assert done.code == 2
    assert str(path) in done.err
    assert "--force" in done.err
    assert contents(tmp_path) == {name: "mine"}, "nothing else was written either"


def test_a_link_to_nowhere_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "code-review.md").symlink_to(tmp_path / "elsewhere.md")
    assert typed("init", str(tmp_path)).code == 2
    assert contents(tmp_path) == {}, "neither behind the link nor beside it"


def test_force_replaces_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "hummingbird.yaml").write_text("mine")
    assert typed("init", str(tmp_path), "--force").code == 0
    assert "analyze-failures:" in (tmp_path / "hummingbird.yaml").read_text()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = typed("init", str(tmp_path / "file" / "below"))
    assert done.code == 1
    assert "cannot be written: Not a directory" in done.err
    assert "Traceback" not in done.err


def test_the_help_teaches_with_an_example() -> None:
    assert "hummingbird init deploy" in typed("init", "--help").out


def test_a_folder_that_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = typed("init", str(tmp_path / "file" / "deploy"))
    assert done.code == 1
    assert done.err.rstrip().endswith("Name another folder.")
