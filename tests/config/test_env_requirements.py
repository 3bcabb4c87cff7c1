"""Which variables are needed, and which of several is used."""

from pathlib import Path

from hummingbird.config.env_requirements import EnvRequirement, list_projects, list_requirements, webhook_requirements
from tests.config.files import loaded

SEVERAL = """\
    workflows:
      look:
        prompt: look.md
        data_sources:
          gitlab: {token_env: READING}
          konflux: {cluster_url: "https://api.example:6443/ns/acme", kubeconfig_env: KUBECONFIG_OF_KONFLUX}
          testing_farm:
        projects:
          group/one: {tokens: {gitlab: READING_ONE}}
          GROUP/one-more:
          "*":
      again:
        prompt: look.md
        projects: {Group/One: }
    chat:
      mcp_servers:
        tracker: {url: "https://tracker.example/mcp", headers_env: {Authorization: TRACKER}}
    """


def test_each_variable_is_there_with_what_it_is_for(tmp_path: Path) -> None:
    found = [(need.default_variable, need.purpose) for need in list_requirements(loaded(tmp_path, SEVERAL))]
    assert found == [
        ("ORCHESTRATOR_GITLAB_TOKEN", "writes to Group/One"),
        ("ORCHESTRATOR_GITLAB_TOKEN", "writes to GROUP/one-more"),
        ("ORCHESTRATOR_GITLAB_TOKEN", "writes to every project that has no token of its own"),
        ("READING_ONE", "reads gitlab in look"),
        ("READING", "reads gitlab in look"),
        ("KUBECONFIG_OF_KONFLUX", "reads konflux in look"),
        ("HUMMINGBIRD_WEBHOOK_SECRET", "proves that a webhook comes from your GitLab"),
        ("TRACKER", "is for chat.mcp_servers.tracker"),
    ]


def test_a_project_is_there_once_however_it_is_spelt(tmp_path: Path) -> None:
    """GitLab's paths ignore case."""
    assert list_projects(loaded(tmp_path, SEVERAL)) == ("Group/One", "GROUP/one-more")


def test_the_first_variable_that_holds_something_is_used() -> None:
    need = EnvRequirement(("OWN", "GENERAL"), "writes")
    assert need.find_set_variable({"OWN": "a", "GENERAL": "b"}) == "OWN"
    assert need.find_set_variable({"OWN": " \n", "GENERAL": "b"}) == "GENERAL"
    assert need.find_set_variable({}) == ""


def test_events_from_a_queue_need_no_webhook_secret(tmp_path: Path) -> None:
    queue = "https://sqs.eu-west-1.amazonaws.com/1/"
    text = f"settings: {{sqs_queue_url: '{queue}events', sqs_fifo_queue_url: '{queue}work.fifo'}}\n"
    assert list(webhook_requirements(loaded(tmp_path, text))) == []
