"""Configuration, prompts, variables and the webhook's secret, each shown broken."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.app.doctor import CheckFinding
from hummingbird.app.doctor.runner import check_config as settings_of
from hummingbird.app.doctor.runner import environment_checks, examine
from tests.app.doctor.examining import FAIL, OK, SKIP, WARN, doctor_context, tried, written

READS = "data_sources:\n  gitlab: {token_env: READING}\nprojects:\n  group/one:\n  group/two:\n"


def examined(path: Path) -> list[CheckFinding]:
    async def all_of_it() -> list[CheckFinding]:
        return [finding async for finding in examine(path, {})]

    return asyncio.run(all_of_it())


def test_each_fault_of_the_configuration_is_told_and_nothing_else_is_tried(tmp_path: Path) -> None:
    *faults, last = examined(written(tmp_path, "max_iterations: many\nmodle: x"))
    assert [(one.part, one.standing) for one in faults] == [("configuration", FAIL)] * 2
    assert "line 2" in faults[0].sentence
    assert "settings.max_iterations: expected a whole number" in faults[0].sentence
    assert "perhaps 'model' is meant" in faults[1].sentence
    assert last.standing is SKIP
    assert "fix the configuration first" in last.sentence


def test_a_prompt_that_cannot_be_read_is_told_as_one(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    (tmp_path / "look.md").unlink()
    prompt, _skipped = examined(path)
    assert (prompt.part, prompt.standing) == ("prompts", FAIL)
    assert "workflows.look.prompt: expected a file that can be read: no such file" in prompt.sentence


def test_a_variable_that_is_not_set_is_named_with_what_it_is_for(tmp_path: Path) -> None:
    variables = tried(environment_checks, doctor_context(tmp_path, "", READS))[:-2]
    assert [(one.standing, one.sentence) for one in variables] == [
        (FAIL, "Set ORCHESTRATOR_GITLAB_TOKEN: it writes to group/one, writes to group/two."),
        (FAIL, "Set READING: it reads gitlab in look."),
    ]


def test_variables_that_are_set_are_named_without_their_values(tmp_path: Path) -> None:
    """A project's own token is enough for it."""
    environment = {
        "ORCHESTRATOR_GITLAB_TOKEN_GROUP_ONE": "s3cret",
        "ORCHESTRATOR_GITLAB_TOKEN": "s3cret",
        "READING": "s3cret",
    }
    found, *_ = tried(environment_checks, doctor_context(tmp_path, "", READS, environment))
    assert found.standing is OK
    assert all(name in found.sentence for name in environment)
    assert "s3cret" not in found.sentence


@pytest.mark.parametrize(
    ("environment", "standing", "words"),
    [
        ({}, FAIL, "Set HUMMINGBIRD_WEBHOOK_SECRET"),
        ({"HUMMINGBIRD_WEBHOOK_SECRET": "s3cret"}, WARN, "is short"),
        ({"HUMMINGBIRD_WEBHOOK_SECRET": "long-enough-and-random"}, OK, "GitLab's webhook must have the same"),
        ({"HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN": "whsec_nonsense!"}, FAIL, "copy it from the hook's page"),
        (
            {"HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN": "whsec_" + base64.b64encode(bytes(32)).decode()},
            OK,
            "checked with HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN",
        ),
    ],
)
def test_the_webhooks_secret_is_looked_at(
    tmp_path: Path, environment: dict[str, str], standing: str, words: str
) -> None:
    found = tried(environment_checks, doctor_context(tmp_path, "", "", environment))[-2]
    assert (found.part, found.standing) == ("webhook secret", standing)
    assert words in found.sentence
    assert not any(value in found.sentence for value in environment.values())


def test_without_a_general_token_the_projects_own_ones_are_enough_to_begin_with(tmp_path: Path) -> None:
    """The others of * would have none, so it is said."""
    everywhere = 'projects: {"*": }'
    found, *_ = tried(environment_checks, doctor_context(tmp_path, "", everywhere))
    assert found.standing is FAIL
    own = {"ORCHESTRATOR_GITLAB_TOKEN_GROUP_ONE": "s3cret"}
    found, *_ = tried(environment_checks, doctor_context(tmp_path, "", everywhere, own))
    assert found.standing is WARN
    assert "Set ORCHESTRATOR_GITLAB_TOKEN: it writes to every project that has no token of its own" in found.sentence


def test_without_a_file_the_gitlab_of_the_environment_is_examined() -> None:
    """Tokens go nowhere but to the GitLab that is configured."""
    configuration, findings = settings_of(None, {"GITLAB_URL": "https://own.example", "GITLAB_TOKEN_RO": "s3cret"})
    assert configuration is not None
    assert configuration.settings.gitlab_url == "https://own.example"
    assert [one.standing for one in findings] == [OK, OK]
    assert findings[0].sentence == "The embedded defaults are sound, with 2 workflows."


def test_a_broken_file_does_not_hide_what_is_not_set(tmp_path: Path) -> None:
    """Every fault at once."""
    *faults, _skipped = examined(written(tmp_path, "modle: x", READS))
    assert len(faults) == 2
    assert "READING" in faults[1].sentence


@pytest.mark.parametrize(
    ("token", "standing", "words"),
    [
        ("", OK, "Open to this machine only"),
        ("too-short", FAIL, "at least 16 characters"),
        ("long-enough-and-random", OK, "Anybody with HUMMINGBIRD_DASHBOARD_TOKEN can see it."),
    ],
)
def test_the_dashboards_token_is_looked_at(tmp_path: Path, token: str, standing: str, words: str) -> None:
    environment = {"HUMMINGBIRD_DASHBOARD_TOKEN": token} if token else {}
    found = tried(environment_checks, doctor_context(tmp_path, "", "", environment))[-1]
    assert (found.part, found.standing) == ("dashboard", standing)
    assert words in found.sentence
    assert not token or token not in found.sentence


@pytest.mark.parametrize(
    ("host", "environment", "words"),
    [
        ("0.0.0.0", {}, "Closed on 0.0.0.0: set HUMMINGBIRD_DASHBOARD_TOKEN"),
        ("127.0.0.1", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "Open to this pod only"),
    ],
)
def test_a_dashboard_that_nobody_can_open_is_not_well(
    tmp_path: Path, host: str, environment: dict[str, str], words: str
) -> None:
    found = tried(environment_checks, replace(doctor_context(tmp_path, "", "", environment), host=host))[-1]
    assert (found.part, found.standing) == ("dashboard", WARN)
    assert words in found.sentence
