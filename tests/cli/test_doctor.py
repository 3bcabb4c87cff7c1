"""`hummingbird doctor`: how it looks, and what it exits with. Every check has tests in tests/app/doctor."""

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.server import GitLabLab
from tests.app.doctor.examining import written
from tests.cli.typing_in import typed


@pytest.fixture
def gitlab() -> Iterator[GitLabLab]:
    with GitLabLab(find_case("compiler-error")) as lab:
        yield lab


def surroundings(gitlab: GitLabLab, folder: Path) -> dict[str, str]:
    """Everything that is needed, and a project to look at."""
    workflow = f"data_sources:\n  gitlab: {{token_env: READING}}\nprojects: {{{gitlab.world.project.path}: }}\n"
    config = written(folder, f"gitlab_url: {gitlab.url}\nmodel: digest", workflow)
    return {
        **{"CONFIG_PATH": str(config), "HUMMINGBIRD_HOME": str(folder / "state")},
        **{"ORCHESTRATOR_GITLAB_TOKEN": gitlab.write_token, "READING": gitlab.read_token},
        "HUMMINGBIRD_WEBHOOK_SECRET": "long-enough-and-random",
    }


def test_everything_well_is_exit_code_0(tmp_path: Path, gitlab: GitLabLab) -> None:
    with chdir(tmp_path):
        done = typed("doctor", environment={"HOME": str(tmp_path), **surroundings(gitlab, tmp_path)})
    assert done.code == 0, done.out + done.err
    *lines, empty, verdict = done.out.splitlines()
    assert (empty, verdict) == ("", "Everything works.")
    assert {line.split()[0] for line in lines} == {"ok"}
    assert not any(token in done.out for token in (gitlab.write_token, gitlab.read_token))


@pytest.mark.thorough
def test_something_broken_is_exit_code_1_and_the_line_says_what_to_do(tmp_path: Path, gitlab: GitLabLab) -> None:
    environment = {**surroundings(gitlab, tmp_path), "READING": gitlab.expired_token}
    done = typed("doctor", environment=environment)
    assert done.code == 1
    assert "fail  token that reads: READING is invalid, expired or revoked: make a new token (read_api).\n" in done.out
    assert done.out.endswith("\nOne thing to fix before it works.\n")
    assert "Traceback" not in done.out + done.err


@pytest.mark.thorough
def test_warnings_alone_are_no_failure(tmp_path: Path, gitlab: GitLabLab) -> None:
    environment = {**surroundings(gitlab, tmp_path), "HUMMINGBIRD_WEBHOOK_SECRET": "few"}
    done = typed("doctor", environment=environment)
    assert done.code == 0, done.out
    assert done.out.endswith("\nIt works; one thing to look at.\n")


@pytest.mark.thorough
def test_programs_get_one_document(tmp_path: Path, gitlab: GitLabLab) -> None:
    done = typed("doctor", "--json", environment={**surroundings(gitlab, tmp_path), "READING": ""})
    told = json.loads(done.out)
    assert done.code == 1
    assert told["ok"] is False
    failed = [check for check in told["checks"] if check["standing"] == "fail"]
    assert failed == [{"part": "variables", "standing": "fail", "sentence": "Set READING: it reads gitlab in look."}]


def test_a_broken_configuration_is_told_like_any_other_part(tmp_path: Path) -> None:
    done = typed("doctor", "--config", str(written(tmp_path, "max_iterations: many")))
    assert done.code == 1
    assert "fail  configuration: Fix " in done.out
    assert "skip  everything else" in done.out


@pytest.mark.thorough
def test_the_sandbox_that_serve_will_be_told_to_use_is_the_one_that_is_tried(tmp_path: Path, gitlab: GitLabLab) -> None:
    """--sandbox says otherwise than the file."""
    environment = {**surroundings(gitlab, tmp_path), "PATH": str(tmp_path)}
    done = typed("doctor", "--sandbox", "podman", environment=environment)
    assert done.code == 1
    assert "fail  sandbox: " in done.out
    assert "Podman is not installed" in done.out
    assert typed("doctor", "--context", "some", environment=environment).code == 2


def test_the_help_teaches_with_an_example() -> None:
    assert "hummingbird doctor --config deploy/hummingbird.yaml" in typed("doctor", "--help").out
