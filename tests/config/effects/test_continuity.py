"""The example configurations of the reference documents, with the variables that stand beside them there, in
use: which keys they have, whom their models are asked of, what begins by itself."""

import re
from pathlib import Path

import pytest

from hummingbird.app.environment_secrets import environment_secrets, split_environment
from hummingbird.app.gitlab_write import write_token
from hummingbird.config.configuration import Configuration
from hummingbird.config.loader import find_config, load_config
from hummingbird.core.orders import OrderCause
from hummingbird.service.triggers import AutomaticDecision, CommandDecision, IgnoreDecision, decide_trigger
from tests.config.files import CONTINUITY, OLDER
from tests.models.resolved import made, url
from tests.service.rules import BOTS, note, pipeline

TENANT = "redhat/hummingbird/containers"
ENVIRONMENT = {
    "GITLAB_TOKEN_RO": "reads",
    "GITLAB_TOKEN_CONTAINERS_RO": "reads too",
    "KUBECONFIG": "/etc/kube/config",
    "ORCHESTRATOR_GITLAB_TOKEN": "writes",
    "ORCHESTRATOR_GITLAB_TOKEN_REDHAT_HUMMINGBIRD_CONTAINERS": "writes there",
    "GOOGLE_API_KEY": "the key of Gemini",
    "GOOGLE_CLOUD_PROJECT": "birds",
    "SENTRY_DSN": "https://0123456789abcdef@sentry.example/7",
}
KEYS = """
gitlab_url image namespace active_deadline_seconds linger_seconds max_lingering_pods metadata resources
max_concurrent_agents sqs_queue_url sqs_fifo_queue_url s3_session_bucket model model_regions max_iterations
max_runs_per_mr internal_notes docs_url source_url slack_url slack_label trigger_prefix session_marker_prefix
auto_trigger trigger description workflow_url prompt action max_inline_size context_limit ignore_users ignore_branches
auto_resolve_on_push auto_resolve_on_success data_sources gitlab konflux testing_farm token_env cluster_url
kubeconfig_env kubearchive_url projects tokens
"""


def test_together_the_examples_have_every_key_that_must_go_on_working() -> None:
    text = CONTINUITY.read_text() + OLDER.read_text()
    assert set(KEYS.split()) - set(re.findall(r"^\s*([a-z_0-9]+):", text, re.MULTILINE)) == set()


@pytest.mark.parametrize("file", [CONTINUITY, OLDER], ids=["newer", "older"])
def test_config_path_names_the_file_and_their_variables_are_enough(file: Path, tmp_path: Path) -> None:
    given = {**ENVIRONMENT, "CONFIG_PATH": str(file)}
    found = find_config(None, given, tmp_path)
    assert found == file
    configuration = load_config(found, given)
    assert [one.workflow for one in configuration.resolve_project(TENANT)] == ["analyze-failures"]


@pytest.mark.parametrize(
    ("names", "host", "part"),
    [
        (("GOOGLE_API_KEY",), "generativelanguage.googleapis.com", "/models/gemini-3.1-pro-preview:"),
        (("GOOGLE_CLOUD_PROJECT",), "aiplatform.googleapis.com", "/projects/birds/locations/global/"),
        (("GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"), "generativelanguage.googleapis.com", "/models/gemini-3.1-pro"),
    ],
)
def test_google_api_key_and_google_cloud_project_say_where_gemini_is(
    names: tuple[str, ...], host: str, part: str
) -> None:
    """With both, the key comes first."""
    settings = load_config(CONTINUITY, ENVIRONMENT).settings
    given = {name: ENVIRONMENT[name] for name in names}
    address = url(made(settings.model, given, model_regions=settings.model_regions))
    assert address.startswith(f"https://{host}/")
    assert part in address


def test_claude_is_asked_on_vertex_in_the_region_of_its_name() -> None:
    """Their example has it in a comment; the key of Gemini is not for it."""
    settings = load_config(CONTINUITY, ENVIRONMENT).settings
    given = {name: ENVIRONMENT[name] for name in ("GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT")}
    address = url(made("claude-sonnet-4-5@20250929", given, model_regions=settings.model_regions))
    assert address.startswith("https://us-east5-aiplatform.googleapis.com/v1/projects/birds/locations/us-east5/")


def test_the_tokens_that_write_are_a_projects_own_and_else_the_one_for_all() -> None:
    found = [write_token(project, ENVIRONMENT).reveal() for project in (TENANT, "org/group/project")]
    assert found == ["writes there", "writes"]


def test_no_run_is_given_what_writes_and_the_rest_is_masked() -> None:
    """SENTRY_DSN holds a key."""
    given, held_back = split_environment(ENVIRONMENT)
    assert not [name for name in given if name.startswith("ORCHESTRATOR_")]
    assert set(held_back) == {"writes", "writes there", ENVIRONMENT["SENTRY_DSN"]}
    assert ENVIRONMENT["SENTRY_DSN"] not in environment_secrets(ENVIRONMENT).mask(
        f"it said {ENVIRONMENT['SENTRY_DSN']}"
    )


def renamed(folder: Path, file: Path, change: str = "", to: str = "") -> Configuration:
    """The example for the project of our events."""
    text = file.read_text().replace(TENANT, "acme/widgets").replace(change or "nothing at all", to)
    (folder / "workflows").mkdir()
    for prompt in ("code-review.md", "analyze-failures.md"):
        (folder / "workflows" / prompt).write_text("Look.")
    written = folder / "config.yml"
    written.write_text(text)
    return load_config(written, ENVIRONMENT)


def test_without_trigger_and_with_auto_trigger_a_failed_pipeline_begins(tmp_path: Path) -> None:
    decided = decide_trigger(pipeline(), renamed(tmp_path, OLDER), BOTS)
    assert isinstance(decided, AutomaticDecision)
    assert (decided.cause, decided.start) == (OrderCause.PIPELINE, ("analyze-failures",))


@pytest.mark.parametrize("line", ["", "auto_trigger: false"])
def test_without_both_only_a_command_begins(tmp_path: Path, line: str) -> None:
    configuration = renamed(tmp_path, OLDER, "auto_trigger: true", line)
    assert isinstance(decide_trigger(pipeline(), configuration, BOTS), IgnoreDecision)
    decided = decide_trigger(note("/hummingbird analyze-failures"), configuration, BOTS)
    assert isinstance(decided, CommandDecision)
    assert decided.workflow == "analyze-failures"
