"""What the GitLab source offers."""

import json
import re
import subprocess
import sys

import pytest

from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.errors import ArgumentsInvalid, CredentialRefused, SourceRefused
from hummingbird.core.protocols.tools import DataSource, ToolToken
from hummingbird.core.tool_spec import ToolEffect
from hummingbird.gitlab.read import GitLabSettings
from hummingbird.gitlab.read.discussion_filter import WITHHELD
from hummingbird.gitlab.read.source import TOOL_TEMPLATES, GitLabSource

NAMES = {
    "gitlab_get_mr_details", "gitlab_get_mr_unified_diff", "gitlab_get_mr_diff", "gitlab_get_mr_commits",
    "gitlab_get_mr_discussions", "gitlab_get_commit_statuses", "gitlab_get_file_at_ref", "gitlab_get_repo_archive",
    "gitlab_get_job_log", "gitlab_get_pipeline_jobs", "gitlab_get_test_report", "gitlab_list_job_artifacts",
    "gitlab_get_job_artifact", "gitlab_get_baseline_job_log",
    "gitlab_list_recent_pipelines",
}  # fmt: skip
SETTINGS = GitLabSettings("https://gitlab.example.com/", ToolToken("glpat-word"), "acme/widgets")


@pytest.fixture
def source() -> DataSource:
    """No connection is opened: there is no such host."""
    return GitLabSource(SETTINGS)


def test_the_tools_are_exactly_these(source: DataSource) -> None:
    assert {tool.spec.name for tool in source.tools} == NAMES == set(TOOL_TEMPLATES)
    assert source.name == "gitlab"


def test_each_is_a_reading_tool_of_this_source(source: DataSource) -> None:
    for tool in source.tools:
        assert tool.spec.effects == {ToolEffect.READ}
        assert (tool.spec.source, tool.spec.toolset) == ("gitlab", "gitlab")
        assert tool.spec.metadata == {"event_project_url": "https://gitlab.example.com/acme/widgets"}
        assert not tool.spec.trusted
        assert tool.is_available()


def test_the_token_is_named_as_a_secret_and_shown_nowhere(source: DataSource) -> None:
    assert list(source.secrets) == ["glpat-word"]
    assert "glpat-word" not in repr(SETTINGS)
    assert list(GitLabSource(GitLabSettings(SETTINGS.url, None, "a/b")).secrets) == []


def test_no_description_names_another_tool(source: DataSource) -> None:
    for tool in source.tools:
        assert not re.search(r"gitlab_\w+", tool.spec.description)
        assert set(tool.spec.mentions) <= NAMES - {tool.spec.name}
    for left_out in NAMES:
        Toolbox([tool for tool in source.tools if tool.spec.name != left_out])


def test_the_notes_for_the_prompt_are_told_once(source: DataSource) -> None:
    notes = Toolbox(source.tools).notes
    assert "\n" not in notes
    for word in ("/-/jobs/<id>", "External", "`sha`", WITHHELD):
        assert word in notes


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gitlab_get_mr_details", {"mr_iid": 0}),
        ("gitlab_get_mr_details", {"mr_iid": "7"}),
        ("gitlab_get_mr_details", {}),
        ("gitlab_get_mr_details", {"mr_iid": 7, "other": 1}),
        ("gitlab_get_mr_details", {"mr_iid": 7, "project": ""}),
        ("gitlab_get_mr_details", {"mr_iid": 7, "project": "a b"}),
        ("gitlab_get_mr_details", {"mr_iid": 7, "project": "a" * 256}),
        ("gitlab_get_commit_statuses", {"sha": "main"}),
        ("gitlab_get_commit_statuses", {"sha": "ABCDEF1"}),
        ("gitlab_get_commit_statuses", {"sha": "abcdef1\n"}),
        ("gitlab_get_commit_statuses", {"sha": "a" * 65}),
        ("gitlab_get_file_at_ref", {"path": "a\nb", "ref": "main"}),
        ("gitlab_get_file_at_ref", {"path": "a", "ref": "-x"}),
        ("gitlab_get_file_at_ref", {"path": "a", "ref": "a b"}),
        ("gitlab_get_repo_archive", {"ref": "a\x00"}),
        ("gitlab_list_recent_pipelines", {"limit": 101}),
        ("gitlab_get_baseline_job_log", {"job_name": "a\tb"}),
    ],
)
def test_arguments_are_narrow(source: DataSource, name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ArgumentsInvalid):
        Toolbox(source.tools).prepare(name, json.dumps(arguments))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gitlab_get_mr_details", {"mr_iid": 7, "project": "acme/tools/wid-gets_2.0"}),
        ("gitlab_get_commit_statuses", {"sha": "abcdef1", "name": "Konflux / a", "all": True, "pipeline_id": 1}),
        ("gitlab_get_file_at_ref", {"path": "src/ä b.py", "ref": "refs/merge-requests/7/head"}),
        ("gitlab_get_repo_archive", {"ref": "feature/größe"}),
        ("gitlab_list_recent_pipelines", {}),
        ("gitlab_get_baseline_job_log", {"job_name": "unit: [a, 1/2]", "ref": "main"}),
    ],
)
def test_what_gitlab_allows_is_allowed(source: DataSource, name: str, arguments: dict[str, object]) -> None:
    assert Toolbox(source.tools).prepare(name, json.dumps(arguments)).arguments == arguments


def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(SourceRefused, match="https://"):
        GitLabSource(GitLabSettings("gitlab", None, "a/b"))


@pytest.mark.parametrize("token", ["word\n", "wo rd", "wörd", "word\x00"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_quoted(token: str) -> None:
    """http.client would quote the whole header."""
    with pytest.raises(CredentialRefused) as refused:
        GitLabSource(GitLabSettings(SETTINGS.url, ToolToken(token), "a/b"))
    assert token.strip() not in str(refused.value)


def test_an_address_with_a_password_is_refused_and_not_quoted() -> None:
    """It would stand in the metadata of every result."""
    with pytest.raises(SourceRefused, match="password") as refused:
        GitLabSource(GitLabSettings("https://me:word@gitlab.example.com", None, "a/b"))
    assert "word@" not in str(refused.value)


@pytest.mark.parametrize("project", ["", "/"])
def test_a_source_belongs_to_a_project(project: str) -> None:
    with pytest.raises(SourceRefused, match="no project"):
        GitLabSource(GitLabSettings(SETTINGS.url, None, project))


def test_no_description_promises_what_the_tools_do_not_do(source: DataSource) -> None:
    """What is said of a baseline stands in a note, and no colour is kept."""
    told = {tool.spec.name: tool.spec.description for tool in source.tools}
    assert "[Baseline: " in told["gitlab_get_baseline_job_log"]
    assert not any("red, which" in each or "behind the last" in each for each in told.values())


def test_the_command_line_does_not_load_python_gitlab() -> None:
    code = "import sys, hummingbird.cli.main; sys.exit('gitlab' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
