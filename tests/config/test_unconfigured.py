"""G5: no file at all; the environment says which GitLab, and with which token it is read."""

from pathlib import Path

import pytest

from hummingbird.config.load import load
from hummingbird.config.tokens import tool_token
from hummingbird.domain.errors import ConfigurationBroken

GIVEN = {"GITLAB_URL": "https://gitlab.example/forge", "GITLAB_TOKEN_RO": "reads"}


def test_the_environment_names_the_gitlab_and_the_token_that_reads_it() -> None:
    configuration = load(None, GIVEN)
    assert configuration.settings.gitlab_url == "https://gitlab.example/forge"
    for applied in configuration.on("acme/widgets"):
        token = tool_token(applied.entry, applied.declared, "gitlab", GIVEN)
        assert token is not None
        assert token.reveal() == "reads"


def test_without_those_variables_it_is_gitlab_com_without_a_token() -> None:
    configuration = load(None, {"GITLAB_TOKEN": "may write, so nobody takes it"})
    assert configuration.settings.gitlab_url == "https://gitlab.com"
    applied, *_ = configuration.on("acme/widgets")
    assert tool_token(applied.entry, applied.declared, "gitlab", {}) is None


def test_an_address_that_is_none_is_a_fault_that_does_not_repeat_it() -> None:
    with pytest.raises(ConfigurationBroken, match="GITLAB_URL") as caught:
        load(None, {"GITLAB_URL": "glpat-in-the-wrong-variable"})
    assert "glpat" not in str(caught.value)


def test_a_file_is_not_overruled(tmp_path: Path) -> None:
    file = tmp_path / "hummingbird.yaml"
    file.write_text("settings: {gitlab_url: https://own.example}\n")
    assert load(file, GIVEN).settings.gitlab_url == "https://own.example"
