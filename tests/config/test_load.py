"""Which file is read, and what is read with it."""

import os
from pathlib import Path

import pytest

from hummingbird.config.configuration import find_chat_variables
from hummingbird.config.loader import examine_config, find_config, load_config
from hummingbird.core.errors import ConfigurationError
from hummingbird.core.limits import PROMPT_BYTES
from tests.config.files import EVERYTHING, WORKFLOW, written


def test_the_option_comes_first_then_the_variable_then_the_usual_file(tmp_path: Path) -> None:
    """--config, CONFIG_PATH, ./hummingbird.yaml, embedded defaults."""
    assert find_config(None, {}, tmp_path) is None
    usual = written(tmp_path, "settings: {}\n")
    assert find_config(None, {}, tmp_path) == usual
    assert find_config(None, {"CONFIG_PATH": "other.yaml"}, tmp_path) == tmp_path / "other.yaml"
    assert find_config("third.yaml", {"CONFIG_PATH": "other.yaml"}, tmp_path) == tmp_path / "third.yaml"
    assert find_config("/etc/fourth.yaml", {}, tmp_path) == Path("/etc/fourth.yaml")


def test_an_empty_variable_counts_as_none(tmp_path: Path) -> None:
    assert find_config("", {"CONFIG_PATH": ""}, tmp_path) is None


def test_a_prompt_may_stand_anywhere(tmp_path: Path) -> None:
    """An absolute path is taken as it is."""
    prompt = tmp_path / "elsewhere.md"
    prompt.write_text("Look there.")
    path = written(tmp_path / "folder", WORKFLOW.replace("look.md", str(prompt)))
    assert load_config(path, None).prompts["look"] == "Look there."


@pytest.mark.parametrize(
    ("line", "variables", "file"),
    [
        ("{}", {"REQUESTS_CA_BUNDLE": "/etc/pki/custom/ca-bundle.crt"}, "/etc/pki/custom/ca-bundle.crt"),
        ("{}", {"SSL_CERT_FILE": "/ours.pem"}, "/ours.pem"),
        ("{}", {"REQUESTS_CA_BUNDLE": "/first.pem", "SSL_CERT_FILE": "/second.pem"}, "/first.pem"),
        ("{ca_bundle: /named.pem}", {"REQUESTS_CA_BUNDLE": "/first.pem"}, "/named.pem"),
        ("{}", {"REQUESTS_CA_BUNDLE": " "}, ""),
    ],
)
def test_the_environments_certificates_are_those_of_every_client(
    tmp_path: Path, line: str, variables: dict[str, str], file: str
) -> None:
    assert load_config(written(tmp_path, f"settings: {line}\n"), variables).settings.ca_bundle == file


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b" \n", "empty"), (b"\xff\xfe", "UTF-8"), (b"x" * (PROMPT_BYTES + 1), "at most 262,144")],
)
def test_a_prompt_that_cannot_be_used_is_a_fault(tmp_path: Path, content: bytes, words: str) -> None:
    path = written(tmp_path, WORKFLOW)
    (tmp_path / "look.md").write_bytes(content)
    (fault,) = examine_config(path, None).faults
    assert fault.path == ("workflows", "look", "prompt")
    assert words in fault.expected


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Neither as the configuration nor as a prompt."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="not a directory or a device"):
        load_config(tmp_path / "pipe", None)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    path = written(tmp_path, b"\xef\xbb\xbfsettings: {model: digest}\n")
    assert load_config(path, None).settings.model == "digest"


def test_a_bucket_is_a_store(tmp_path: Path) -> None:
    """Two spellings of the same."""
    assert (
        load_config(written(tmp_path, "settings: {s3_session_bucket: b}"), None).settings.session_store_url == "s3://b"
    )
    assert (
        load_config(written(tmp_path, "settings: {session_store: gs://b}"), None).settings.session_store_url == "gs://b"
    )
    assert load_config(written(tmp_path, "settings: {}"), None).settings.session_store_url == ""


def test_variables_of_servers_of_tools_are_known_to_who_asks_for_them() -> None:
    """`serve` does without them, so loading does not ask."""
    assert dict(find_chat_variables(load_config(EVERYTHING, None).chat)) == {
        ("chat", "mcp_servers", "search", "env", 0): "SEARCH_KEY",
        ("chat", "mcp_servers", "remote", "headers_env", "Authorization"): "MCP_TOKEN",
    }


def test_a_permission_is_a_rule() -> None:
    (permission,) = load_config(EVERYTHING, None).chat.permissions
    assert permission.to_rule().title == "rule 'careful'"
