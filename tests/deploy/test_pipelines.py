"""The pipelines are valid for the tools that read them, and call only what exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

from tests.docs.reading import ROOT
from tests.docs.typed import targets

GITLAB = ROOT / ".gitlab-ci.yml"
GITHUB = ROOT / ".github" / "workflows" / "ci.yml"
RENOVATE = ROOT / "renovate.json"
SCHEMAS = {
    GITLAB: ("--builtin-schema=vendor.gitlab-ci", "--data-transform=gitlab-ci"),
    GITHUB: ("--builtin-schema=vendor.github-workflows",),
    RENOVATE: ("--builtin-schema=vendor.renovate",),
}
KEYWORDS = {
    *("after_script", "before_script", "cache", "default", "image", "include", "pages:deploy", "services", "spec"),
    *("stages", "types", "variables", "workflow"),
}  # GitLab takes none of them for a job
NOT_JOBS = {"default", "stages", "variables", "workflow"}
TESTED = ["3.11", "3.12", "3.13", "3.14"]
_MAKE = re.compile(r"\bmake ([a-z-]+)")


def validate(path: Path, options: tuple[str, ...]) -> tuple[int, str]:
    result = CliRunner().invoke(check_jsonschema, [*options, str(path)])
    return result.exit_code, result.output


def gitlab() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    return read


def jobs() -> dict[str, dict[str, Any]]:
    return {name: job for name, job in gitlab().items() if name not in NOT_JOBS and not name.startswith(".")}


def github_jobs() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = yaml.safe_load(GITHUB.read_text(encoding="utf-8"))["jobs"]
    return read


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_pipeline_fits_its_schema(path: Path) -> None:
    code, output = validate(path, SCHEMAS[path])
    assert code == 0, output


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schema_refuses_a_misspelt_key(path: Path, tmp_path: Path) -> None:
    keys = {
        GITLAB: ("script:", "skript:"),
        GITHUB: ("runs-on:", "run-on:"),
        RENOVATE: ('"enabled": false', '"enabled": 0'),
    }
    spoilt = tmp_path / path.name
    spoilt.write_text(path.read_text(encoding="utf-8").replace(*keys[path]), encoding="utf-8")
    assert validate(spoilt, SCHEMAS[path])[0] == 1


def test_no_job_has_the_name_of_a_keyword() -> None:
    """The schema lets `types` through; GitLab does not."""
    assert not KEYWORDS & jobs().keys()


@pytest.mark.parametrize("path", [GITLAB, GITHUB], ids=lambda path: path.name)
def test_pipeline_calls_existing_make_targets(path: Path) -> None:
    called = set(_MAKE.findall("\n".join(_commands(path))))
    assert len(called) > 5
    assert called <= targets()


def _commands(path: Path) -> Iterator[str]:
    if path == GITLAB:
        for job in jobs().values():
            script = job.get("script", [])
            yield from [script] if isinstance(script, str) else script
    else:
        for job in github_jobs().values():
            yield from (step["run"] for step in job["steps"] if "run" in step)


def test_both_pipelines_test_every_supported_python() -> None:
    assert jobs()["test"]["parallel"]["matrix"] == [{"PYTHON": TESTED}]
    assert github_jobs()["test"]["strategy"]["matrix"]["python"] == TESTED
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject) == TESTED


@pytest.mark.parametrize("known", [jobs(), github_jobs()], ids=["gitlab", "github"])
def test_needed_jobs_exist(known: dict[str, dict[str, Any]]) -> None:
    needs = [job.get("needs", []) for job in known.values()]
    needed = {name for one in needs for name in ([one] if isinstance(one, str) else one)}
    assert needed
    assert needed <= known.keys()


def test_only_the_release_may_write_on_github() -> None:
    workflow = yaml.safe_load(GITHUB.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in github_jobs().items() if "permissions" in job] == ["release"]


@pytest.mark.thorough
def test_publishing_waits_for_the_tests() -> None:
    """A job with `needs` starts before earlier stages have passed."""
    publishing = [job for name, job in jobs().items() if name.startswith("publish-")]
    assert len(publishing) == 2
    assert not [job for job in publishing if "needs" in job or job["stage"] != gitlab()["stages"][-1]]
