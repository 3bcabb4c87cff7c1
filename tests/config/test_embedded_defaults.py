"""No file at all; the environment says which GitLab, and with which token it is read."""

from pathlib import Path

import pytest

from hummingbird.config.configuration import read_tool_token
from hummingbird.config.loader import load_config
from hummingbird.core.errors import ConfigurationError

GIVEN = {"GITLAB_URL": "https://gitlab.example/forge", "GITLAB_TOKEN_RO": "reads"}


def test_the_environment_names_the_gitlab_and_the_token_that_reads_it() -> None:
    configuration = load_config(None, GIVEN)
    assert configuration.settings.gitlab_url == "https://gitlab.example/forge"
    for applied in configuration.resolve_project("acme/widgets"):
        token = read_tool_token(applied.entry, applied.declared, "gitlab", GIVEN)
        assert token is not None
        assert token.reveal() == "reads"


def test_without_those_variables_it_is_gitlab_com_without_a_token() -> None:
    configuration = load_config(None, {"GITLAB_TOKEN": "may write, so nobody takes it"})
    assert configuration.settings.gitlab_url == "https://gitlab.com"
    applied, *_ = configuration.resolve_project("acme/widgets")
    assert read_tool_token(applied.entry, applied.declared, "gitlab", {}) is None


def test_an_address_that_is_none_is_a_fault_that_does_not_repeat_it() -> None:
    with pytest.raises(ConfigurationError, match="GITLAB_URL") as caught:
        load_config(None, {"GITLAB_URL": "glpat-in-the-wrong-variable"})
    assert "glpat" not in str(caught.value)


def test_a_file_is_not_overruled(tmp_path: Path) -> None:
    file = tmp_path / "hummingbird.yaml"
    file.write_text("settings: {gitlab_url: https://own.example}\n")
    assert load_config(file, GIVEN).settings.gitlab_url == "https://own.example"
