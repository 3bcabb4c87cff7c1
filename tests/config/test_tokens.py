"""Which token is for what, and that only names are known of those that write."""

from pathlib import Path

import pytest

from hummingbird.config.configuration import explain_project, orchestrator_variables, read_tool_token
from hummingbird.config.loader import load_config
from hummingbird.core.errors import MissingSetting
from hummingbird.core.protocols.tools import ToolToken
from hummingbird.gitlab.write.protocol import OrchestratorToken
from tests.config.files import CONTINUITY, EVERYTHING, WORKFLOW, loaded

ENVIRONMENT = {"READ": "the workflow's", "OWN": " the project's\n", "ORCHESTRATOR_GITLAB_TOKEN": "never"}
TEXT = (
    WORKFLOW + "    data_sources: {gitlab: {token_env: READ}, testing_farm: {}}\n"
    "    projects: {a/own: {tokens: {gitlab: OWN}}, a/plain: {}, a/broken: {tokens: {gitlab: GONE}}}\n"
)


@pytest.mark.parametrize(
    ("project", "source", "value"),
    [
        ("a/own", "gitlab", "the project's"),
        ("a/plain", "gitlab", "the workflow's"),
        ("a/plain", "testing_farm", None),
        ("a/plain", "konflux", None),
        ("a/own", "no_such_source", None),
    ],
)
def test_the_project_comes_before_the_workflow(tmp_path: Path, project: str, source: str, value: str | None) -> None:
    (look,) = loaded(tmp_path, TEXT).resolve_project(project)
    token = read_tool_token(look.entry, look.declared, source, ENVIRONMENT)
    assert (token.reveal() if token else None) == value


def test_a_token_that_is_not_set_is_not_replaced_by_another(tmp_path: Path) -> None:
    """The workflow's may see more than this project's should."""
    (look,) = loaded(tmp_path, TEXT).resolve_project("a/broken")
    with pytest.raises(MissingSetting, match="Set GONE"):
        read_tool_token(look.entry, look.declared, "gitlab", ENVIRONMENT)


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ("redhat/hummingbird/containers", "ORCHESTRATOR_GITLAB_TOKEN_REDHAT_HUMMINGBIRD_CONTAINERS"),
        ("a-b/c.d", "ORCHESTRATOR_GITLAB_TOKEN_A_B_C_D"),
    ],
)
def test_the_variables_of_the_token_that_writes(project: str, name: str) -> None:
    assert orchestrator_variables(project) == (name, "ORCHESTRATOR_GITLAB_TOKEN")


def test_the_tiers_are_two_types_and_show_nothing() -> None:
    token = OrchestratorToken("s3cret")
    assert not issubclass(OrchestratorToken, ToolToken)
    assert token.reveal() == "s3cret"
    assert "s3cret" not in f"{token!r} {token} {[token]}"


def test_what_applies_to_a_project_is_explained() -> None:
    explained = explain_project(load_config(CONTINUITY, None), "redhat/hummingbird/containers")
    lines = list(explained.to_lines())
    assert "  max_iterations = 50  (workflow)" in lines
    assert "  max_runs_per_mr = 5  (settings)" in lines
    assert "  context_limit = 60000  (default)" in lines
    assert "  gitlab = token in GITLAB_TOKEN_CONTAINERS_RO  (project)" in lines
    assert "  testing_farm = no token  (none is named)" in lines
    assert "  trigger = pipeline  (workflow)" in lines
    assert "  auto_resolve_on_push = true  (workflow)" in lines
    assert "  nothing_found = line  (default)" in lines
    assert any("ORCHESTRATOR_GITLAB_TOKEN_REDHAT_HUMMINGBIRD_CONTAINERS" in line for line in lines)
    assert explained.left_out == ("code-review",)


def test_a_project_that_nothing_applies_to_is_explained_too() -> None:
    explained = explain_project(load_config(EVERYTHING, None), "who/knows")
    assert explained.workflows == ()
    assert "look: not for this project, because its `projects` do not list it" in list(explained.to_lines())
