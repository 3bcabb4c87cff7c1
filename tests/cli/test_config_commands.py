"""`hummingbird config`: what a person types and sees."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from tests.cli.typing_in import typed
from tests.config.files import CONTINUITY, EVERYTHING, written

BROKEN = """\
    settings:
      gitlab_ulr: https://gitlab.example
      max_iterations: many
    workflows:
      look:
        prompt: gone.md
        data_sources:
          gitlab: {token_env: TOKEN_OF_NOBODY}
    """
TWO = """\
    settings:
      max_runs_per_mr: 7
    workflows:
      look:
        trigger: pipeline
        prompt: look.md
        data_sources:
          gitlab: {token_env: READING}
        projects:
          group/one: {tokens: {gitlab: READING_ONE}}
          group/two:
      other:
        prompt: look.md
        projects: {group/three: }
    """


def test_every_fault_is_told_at_once_with_its_line_and_path(tmp_path: Path) -> None:
    """Exit code 1, so that CI can use it."""
    done = typed("config", "check", "--config", str(written(tmp_path, BROKEN)))
    assert done.code == 1
    head, *lines = done.out.splitlines()
    assert head == f"Fix 4 things in {tmp_path}/hummingbird.yaml:"
    assert lines[0].startswith("  line 2, column 3: settings.gitlab_ulr: ")
    assert "perhaps 'gitlab_url' is meant" in lines[0]
    assert lines[1] == "  line 3, column 19: settings.max_iterations: expected a whole number."
    assert lines[2].startswith("  line 6, column 13: workflows.look.prompt: expected a file")
    assert "TOKEN_OF_NOBODY" in lines[3]
    assert "line 8" in lines[3]
    assert len(lines) == 4


def test_without_the_environment_nobody_asks_for_variables(tmp_path: Path) -> None:
    """A file is checked where its secrets are not."""
    path = str(written(tmp_path, TWO))
    assert typed("config", "check", "--config", path).code == 1
    done = typed("config", "check", "--config", path, "--no-environment")
    assert done.code == 0
    assert "READING" in done.out
    assert "set  " not in done.out


def test_a_sound_file_is_summed_up_without_a_value(tmp_path: Path) -> None:
    """Workflows, what starts them, projects, and which variables are needed and set."""
    secrets = {
        "READING": "s3cret-reading",
        "READING_ONE": "s3cret-one",
        "ORCHESTRATOR_GITLAB_TOKEN_GROUP_TWO": "s3cret-two",
    }
    done = typed("config", "check", "--config", str(written(tmp_path, TWO)), environment=secrets)
    assert done.code == 0
    assert "look: on failed pipelines; for group/one, group/two; reads gitlab" in done.out
    assert "other: by commands only; for group/three; reads no data source" in done.out
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in done.out.splitlines() if line.startswith("  ")}
    assert lines["READING_ONE"] == "set  reads gitlab in look"
    assert lines["ORCHESTRATOR_GITLAB_TOKEN_GROUP_TWO"] == "set  writes to group/two"
    assert lines["ORCHESTRATOR_GITLAB_TOKEN"].strip() == "not set  writes to group/one, writes to group/three"
    assert lines["HUMMINGBIRD_WEBHOOK_SECRET"].strip().startswith("not set")
    assert "s3cret" not in done.out + done.err


def test_a_key_of_a_model_shows_in_the_summary_and_its_value_does_not(tmp_path: Path) -> None:
    path = str(written(tmp_path, "settings: {}\n"))
    assert "Model: digest" in typed("config", "check", "--config", path).out
    done = typed("config", "check", "--config", path, environment={"ANTHROPIC_API_KEY": "s3cret-key"})
    assert "Model: anthropic:claude-" in done.out
    assert "s3cret" not in done.out


@pytest.mark.parametrize(
    ("model", "said"),
    [("gemini-3.1-pro-preview", "set GOOGLE_CLOUD_PROJECT, or GOOGLE_API_KEY"), ("", "nothing is reviewed")],
)
def test_check_says_that_no_model_can_be_asked(tmp_path: Path, model: str, said: str) -> None:
    path = str(written(tmp_path, TWO.replace("max_runs_per_mr: 7", f"model: '{model}'")))
    tokens = {"READING": "a", "READING_ONE": "b"}
    done = typed("config", "check", "--config", path, environment=tokens)
    assert "No model can be asked in look, other: " in done.out
    assert said in done.out
    done = typed("config", "check", "--config", path, environment={**tokens, "GOOGLE_API_KEY": "key"})
    assert "No model can be asked" not in done.out


def test_check_tells_which_sandbox_serve_uses(tmp_path: Path) -> None:
    path = str(written(tmp_path, "settings: {sandbox: {namespace: my-namespace}}\n"))
    done = typed("config", "check", "--config", path)
    assert "Commands run in k8spool in the namespace my-namespace: settings.sandbox.namespace is set." in done.out


def test_a_file_that_is_not_there_is_told_like_any_fault(tmp_path: Path) -> None:
    done = typed("config", "check", "--config", str(tmp_path / "none.yaml"))
    assert done.code == 1
    assert "no such file" in done.out


def test_the_usual_file_and_the_embedded_defaults_are_checked_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert typed("config", "check").out.startswith("The embedded defaults are sound.")
    written(tmp_path, "settings: {}\n")
    assert typed("config", "check").out.startswith(f"{tmp_path}/hummingbird.yaml is sound.")
    other = tmp_path / "other.yaml"
    other.write_text("settings: {}\n")
    assert "other.yaml is sound" in typed("config", "check", environment={"CONFIG_PATH": str(other)}).out


def test_the_schema_takes_our_examples_and_refuses_a_key_that_nobody_knows() -> None:
    """For editors."""
    done = typed("config", "schema")
    assert done.code == 0
    schema = jsonschema_rs.validator_for(json.loads(done.out))
    for example in (EVERYTHING, CONTINUITY):
        assert schema.is_valid(yaml.safe_load(example.read_text())), example
    assert not schema.is_valid({"settings": {"gitlab_ulr": "https://gitlab.example"}})


def test_explain_says_what_holds_why_and_from_which_variables(tmp_path: Path) -> None:
    """Names only."""
    path = str(written(tmp_path, TWO))
    done = typed(
        "config", "explain", "Group/One", "--config", path, environment={"ORCHESTRATOR_GITLAB_TOKEN": "s3cret"}
    )
    assert done.code == 0
    assert "max_runs_per_mr = 7  (settings)" in done.out
    assert "gitlab = token in READING_ONE  (project)" in done.out
    assert "other: not for this project" in done.out
    assert "writes with ORCHESTRATOR_GITLAB_TOKEN_GROUP_ONE, else ORCHESTRATOR_GITLAB_TOKEN" in done.out
    assert "ORCHESTRATOR_GITLAB_TOKEN is set and used" in done.out
    assert "s3cret" not in done.out
    assert "neither is set here" in typed("config", "explain", "group/one", "--config", path).out


@pytest.mark.parametrize(
    ("limit", "line"),
    [
        (500_000, "max_inline_size = 200000  (workflow)"),
        (20_000, "max_inline_size = 64000  (workflow says 200000; more would fill the context_limit)"),
    ],
)
def test_explain_says_which_inline_size_is_in_effect(tmp_path: Path, limit: int, line: str) -> None:
    (tmp_path / "look.md").write_text("Look.")
    more = f"max_inline_size: 200000, context_limit: {limit}"
    flow = f'workflows: {{look: {{prompt: look.md, {more}, projects: {{"*": {{}}}}}}}}'
    done = typed("config", "explain", "group/one", "--config", str(written(tmp_path, flow)))
    assert line in done.out


def test_explain_of_one_workflow_is_about_that_one_alone(tmp_path: Path) -> None:
    path = str(written(tmp_path, TWO))
    done = typed("config", "explain", "group/one", "--workflow", "other", "--config", path)
    assert "other: not for this project" in done.out
    assert "look" not in done.out.replace("look.md", "")


def test_explain_for_programs_says_the_same(tmp_path: Path) -> None:
    environment = {"ORCHESTRATOR_GITLAB_TOKEN_GROUP_ONE": "s3cret"}
    path = str(written(tmp_path, TWO))
    done = typed("config", "explain", "group/one", "--json", "--config", path, environment=environment)
    told = json.loads(done.out)
    assert told["workflows"]["look"]["gitlab"] == {"value": "token in READING_ONE", "because": "project"}
    assert told["writes_with"]["used"] == "ORCHESTRATOR_GITLAB_TOKEN_GROUP_ONE"
    assert told["left_out"] == ["other"]
    assert "s3cret" not in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "write it like group/project"),
        (("group/one", "--workflow", "loook"), "perhaps 'look' is meant"),
    ],
)
def test_names_that_mean_nothing_are_bad_usage(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = typed("config", "explain", *arguments, "--config", str(written(tmp_path, TWO)))
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_explain_of_a_broken_file_is_told_without_a_traceback(tmp_path: Path) -> None:
    path = str(written(tmp_path, BROKEN))
    done = typed("config", "explain", "group/one", "--config", path)
    assert done.code == 2
    assert "settings.max_iterations" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in typed("config", "explain", "group/one", "-v", "--config", path).err


@pytest.mark.parametrize("command", ["check", "explain", "schema"])
def test_the_help_of_each_command_teaches_with_an_example(command: str) -> None:
    done = typed("config", command, "--help")
    assert done.code == 0
    assert f"hummingbird config {command}" in done.out.split("\n", 2)[2]


def test_explain_without_a_file_names_the_token_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `run` and `serve` would read with."""
    monkeypatch.chdir(tmp_path)
    done = typed("config", "explain", "group/one", environment={"GITLAB_TOKEN_RO": "s3cret"})
    assert "gitlab = token in GITLAB_TOKEN_RO" in done.out
    assert "s3cret" not in done.out
