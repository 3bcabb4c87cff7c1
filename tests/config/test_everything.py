"""Every key reaches a setting, and the example configurations that people have go on working."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from hummingbird.config.configuration import Configuration
from hummingbird.config.defaults import CONFIG_KEYS
from hummingbird.config.document import KeyPath, format_key_path, read_document
from hummingbird.config.loader import examine_config, load_config
from tests.config.files import CONTINUITY, EVERYTHING, FIXTURES, OLDER, loaded

VARIABLES = dict.fromkeys(("GITLAB_TOKEN_RO", "KUBECONFIG", "GITLAB_TOKEN_CONTAINERS_RO"), "x")
LEAVES = dict(read_document(EVERYTHING.read_bytes()).leaves())


def at(configuration: Configuration, path: KeyPath) -> Any:
    """The setting that a path of the file leads to."""
    found: Any = configuration
    for step in path:
        if isinstance(found, BaseModel | Configuration):
            found = getattr(found, str(step).replace("-", "_"))
        else:
            found = found[step]
    return found


def alike(setting: Any, value: Any) -> bool:
    return bool(setting == value or setting == str(value) or (isinstance(setting, Decimal) and float(setting) == value))


def test_every_key_reaches_its_setting() -> None:
    configuration = load_config(EVERYTHING, None)
    assert [format_key_path(path) for path, value in LEAVES.items() if not alike(at(configuration, path), value)] == []


def own_key(path: KeyPath) -> KeyPath:
    """Without the index of what stands in a plain list."""
    return path[:-1] if isinstance(path[-1], int) else path


def table_key(path: KeyPath) -> str:
    text = ""
    named = {
        ("workflows",): 1,
        ("workflows", "*", "projects"): 1,
        ("settings", "prices"): 1,
        ("settings", "models"): 1,
        ("chat", "auxiliary"): 1,
    }
    named |= {("chat", "auxiliary"): 1, ("chat", "mcp_servers"): 1}
    steps: tuple[str | int, ...] = ()
    for step in own_key(path):
        step = "*" if steps in named else step  # noqa: PLW2901 - names that people choose
        steps = (*steps, step)
        text += "[]" if isinstance(step, int) else f".{step}" if text else step
    return text


def keys_of_everything() -> set[str]:
    keys = {table_key(path) for path in LEAVES}
    keys = {key.replace("settings.budgets.", "budgets.").replace("workflows.*.budgets.", "budgets.") for key in keys}
    free = ("settings.model_regions.", "settings.sandbox.metadata.labels.", "settings.sandbox.metadata.annotations.")
    return {
        next((one[:-1] for one in (*free, "chat.mcp_servers.*.headers_env.") if key.startswith(one)), key)
        for key in keys
    }


def test_the_example_with_everything_has_every_key_of_the_table() -> None:
    """The table and the files say the same; session_store is the other spelling of s3_session_bucket."""
    assert keys_of_everything() | {"settings.session_store"} == set(CONFIG_KEYS)


def test_no_value_of_it_is_the_default_where_there_is_a_choice() -> None:
    """So that a key that is read and forgotten is noticed."""
    only_choice = {
        "workflows.*.action",
        "workflows.*.context",
        "workflows.*.internal_notes",
        "workflows.*.projects.*.internal_notes",
    }
    for path, value in LEAVES.items():
        row = CONFIG_KEYS.get(table_key(path))
        if row is not None and row.key not in only_choice:
            assert value != row.default, row.key


def test_the_example_of_the_documents_loads_unchanged() -> None:
    configuration = load_config(CONTINUITY, VARIABLES)
    document = read_document(CONTINUITY.read_bytes())
    for path, value in document.leaves():
        if value != {}:
            assert alike(at(configuration, path), value), format_key_path(path)
    assert configuration.prompts == {
        "code-review": "Review the merge request.\n",
        "analyze-failures": "Find out why the pipeline failed.\n",
    }
    farm = configuration.workflows["analyze-failures"].data_sources
    assert farm.declared_names == ("gitlab", "konflux", "testing_farm")


def test_what_the_example_means() -> None:
    """Levels put together."""
    configuration = load_config(CONTINUITY, VARIABLES)
    (review,) = configuration.resolve_project("org/group/project")
    assert (review.workflow, review.trigger, review.max_iterations) == ("code-review", "merge_request", 15)
    assert (review.max_inline_size, review.context_limit) == (200_000, 500_000)
    (failures,) = configuration.resolve_project("redhat/hummingbird/containers")
    assert (failures.trigger, failures.max_iterations, failures.context_limit) == ("pipeline", 50, 60_000)
    assert configuration.resolve_project("somebody/else") == ()


def test_the_older_example_runs_on_pipelines_since_auto_trigger_is_written() -> None:
    (failures,) = load_config(OLDER, VARIABLES).resolve_project("redhat/hummingbird/containers")
    assert failures.trigger == "pipeline"
    assert "auto_trigger" in failures.because["trigger"]


@pytest.mark.parametrize(
    ("auto", "trigger", "expected"),
    [
        ("", "", None),
        ("auto_trigger: true", "", "pipeline"),
        ("auto_trigger: false", "", None),
        ("", "trigger: pipeline", "pipeline"),
        ("auto_trigger: true", "trigger: merge_request", "merge_request"),
        ("auto_trigger: false", "trigger: merge_request", "merge_request"),
        ("auto_trigger: false", "trigger: pipeline", None),
    ],
)
def test_what_starts_a_workflow(tmp_path: Path, auto: str, trigger: str, expected: str | None) -> None:
    """Without `trigger` it is for commands only, unless auto_trigger is set."""
    text = (
        f"settings: {{{auto}}}\nworkflows:\n  look:\n    prompt: look.md\n    projects: {{a/b: {{}}}}\n    {trigger}\n"
    )
    (look,) = loaded(tmp_path, text).resolve_project("a/b")
    assert look.trigger == expected


def test_levels_override_each_other(tmp_path: Path) -> None:
    """Project, workflow, settings, default."""
    text = """\
    settings: {max_runs_per_mr: 7, model: a, budgets: {usd_per_run: 2, usd_per_day: 9}}
    workflows:
      look:
        prompt: look.md
        max_runs_per_mr: 6
        model: b
        budgets: {usd_per_run: 1}
        projects:
          a/b: {max_runs_per_mr: 0, internal_notes: false}
          a/c:
          "*": {internal_notes: true}
    """
    configuration = loaded(tmp_path, text)
    own, plain, other = (configuration.resolve_project(project)[0] for project in ("A/b", "a/c", "x/y"))
    assert (own.max_runs_per_mr, own.internal_notes) == (0, False)
    assert (plain.max_runs_per_mr, plain.internal_notes) == (6, True)
    assert (own.model, own.usd_per_run, own.usd_per_day) == ("b", Decimal(1), Decimal(9))
    assert own.because["max_runs_per_mr"] == "project"
    assert plain.because["max_runs_per_mr"] == "workflow"
    assert plain.because["usd_per_day"] == "settings"
    assert (plain.because["internal_notes"], other.because["internal_notes"]) == ("default", "project")


def _set(tree: dict[str, Any], path: KeyPath, value: Any) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(str(step), {})
    tree[str(path[-1])] = value


def changeable() -> Iterator[KeyPath]:
    """Keys of settings that can be written alone."""
    for path in LEAVES:
        alone = "prices" not in path and path[-1] != "sqs_queue_url"
        if path[0] == "settings" and alone and not isinstance(path[-1], int):
            yield path


def test_a_key_changes_its_setting_and_no_other(tmp_path: Path) -> None:
    """Each key alone."""
    before = dict(_flat(load_text(tmp_path, "settings: {}").settings))
    for path in changeable():
        tree: dict[str, Any] = {}
        _set(tree, path, LEAVES[path])
        file = tmp_path / "hummingbird.yaml"
        file.write_text(yaml.safe_dump(tree))
        after = dict(_flat(load_config(file, None).settings))
        assert {key for key in after if after[key] != before.get(key)} == {
            ".".join(str(step).replace("-", "_") for step in path[1:])
        }


def load_text(folder: Path, text: str) -> Configuration:
    file = folder / "plain.yaml"
    file.write_text(text)
    return load_config(file, None)


def _flat(part: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    pairs = (
        part.items() if isinstance(part, Mapping) else ((name, getattr(part, name)) for name in type(part).model_fields)
    )
    for name, value in pairs:
        if isinstance(value, BaseModel | Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def test_a_configuration_cannot_be_changed() -> None:
    """Running work keeps the one it began with."""
    configuration = load_config(EVERYTHING, None)
    with pytest.raises(ValueError, match="frozen"):
        configuration.settings.max_iterations = 3
    for mapping in (configuration.workflows, configuration.settings.model_regions, configuration.prompts):
        with pytest.raises(TypeError):
            mapping["x"] = 1  # type: ignore[index]  # that it cannot be done is the test


def test_prompts_are_found_from_any_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Relative to the file, not to where one stands."""
    monkeypatch.chdir(tmp_path)
    assert examine_config(FIXTURES / "continuity.yaml", None).faults == ()
