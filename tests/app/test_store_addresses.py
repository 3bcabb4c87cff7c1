"""Where local state lives, and who may look at it."""

from pathlib import Path

import pytest

from hummingbird.app.model_choice import default_model, model_chain
from hummingbird.app.stores import StatePaths, state_folder, state_paths
from hummingbird.config.settings import Settings
from hummingbird.core.errors import UsageError


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HUMMINGBIRD_HOME": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/hummingbird"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/c"}, "/c/.local/state/hummingbird"),
        ({"HUMMINGBIRD_HOME": " ", "HOME": "/c"}, "/c/.local/state/hummingbird"),
    ],
)
def test_which_folder_state_is_in(environment: dict[str, str], folder: str) -> None:
    assert state_folder(environment) == Path(folder)


def test_sessions_are_in_the_state_folder_unless_a_directory_is_named() -> None:
    given = {"HUMMINGBIRD_HOME": "/a"}
    assert state_paths(Settings(), given) == StatePaths(Path("/a"), Path("/a/sessions"))
    assert state_paths(Settings(session_store="/kept"), given) == StatePaths(Path("/a"), Path("/kept"))
    remote = state_paths(Settings(s3_session_bucket="b"), given)
    assert remote == StatePaths(Path("/a"), Path("/a/sessions"), "s3://b")
    assert (remote.objects, state_paths(Settings(), given).objects) == ("s3://b", "/a/objects")


def test_folders_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    made = StatePaths(tmp_path / "new" / "state", tmp_path / "new" / "state" / "sessions").create_folders()
    folders = (tmp_path / "new", made.state, made.sessions)
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
    assert made.create_folders() == made
    assert (made.queue, made.known_failures) == (made.state / "queue.sqlite", made.state / "known_failures.sqlite")


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="HUMMINGBIRD_HOME"):
        StatePaths(tmp_path / "file", tmp_path / "sessions").create_folders()
    with pytest.raises(UsageError, match="HUMMINGBIRD_HOME"):
        StatePaths(tmp_path / "file" / "below", tmp_path / "sessions").create_folders()


@pytest.mark.parametrize(
    ("environment", "model"),
    [
        ({}, "digest"),
        ({"GOOGLE_CLOUD_PROJECT": "p"}, "digest"),
        ({"ANTHROPIC_API_KEY": " \n"}, "digest"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic:claude-sonnet-5-5"),
        ({"GEMINI_API_KEY": "k"}, "gemini:gemini-3.8-flash"),
        ({"GOOGLE_API_KEY": "k"}, "gemini:gemini-3.8-flash"),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-6.1-terra"),
    ],
)
def test_the_key_that_is_set_says_which_model_is_meant(environment: dict[str, str], model: str) -> None:
    assert default_model(environment) == model
    assert model_chain("", (), environment) == (("digest",) if model == "digest" else (model, "digest"))


def test_every_chain_ends_with_digest_once() -> None:
    """A report is written even when every provider is down; what stands behind digest is never asked."""
    assert model_chain("a:b", ("c:d",), {}) == ("a:b", "c:d", "digest")
    assert model_chain("a:b", ("digest", "c:d"), {}) == ("a:b", "digest")
    assert model_chain("Digest", ("c:d",), {}) == ("digest",)
