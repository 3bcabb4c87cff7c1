"""The defaults are the required ones, stand in one table, and are what settings have."""

from pathlib import Path

import pytest

from hummingbird.config.defaults import CONFIG_KEYS, REQUIRED, reference_markdown
from hummingbird.config.loader import CERTIFICATE_VARIABLES, load_config
from hummingbird.config.settings import ChatSettings, Settings
from hummingbird.core.limits import (
    COMPRESSION_SHARE,
    CONFIG_NODES,
    CONFIG_POLL_S,
    EXEC_TIMEOUT_CAP_S,
    EXEC_TIMEOUT_S,
    SANDBOX_DEADLINE_S,
    SETTLE_CAP_S,
    SETTLE_S,
    SOFT_SHARE,
)

REQUIRED_BY_G10 = {
    "settings.max_iterations": 30,
    "settings.context_limit": 60_000,
    "settings.max_inline_size": 4096,
    "settings.max_concurrent_agents": 4,
    "settings.max_runs_per_mr": 5,
    "settings.internal_notes": True,
    "workflows.*.auto_resolve_on_push": False,
    "workflows.*.auto_resolve_on_success": False,
    "settings.sandbox.linger_seconds": 300,
    "settings.sandbox.max_lingering_pods": 2,
    "settings.sandbox.active_deadline_seconds": 1800,
    "settings.sandbox.exec_timeout_seconds": 120,
    "settings.sandbox.backend": "auto",
    "settings.config_poll_seconds": 5,
    "settings.slack_label": "Slack",
    "settings.trigger_prefix": "/hummingbird",
    "settings.session_marker_prefix": "hummingbird-session",
    "settings.sandbox.resources.requests.cpu": "100m",
    "settings.sandbox.resources.requests.memory": "256Mi",
    "settings.sandbox.resources.requests.ephemeral-storage": "256Mi",
    "settings.sandbox.resources.limits.cpu": "1",
    "settings.sandbox.resources.limits.memory": "1Gi",
    "settings.sandbox.resources.limits.ephemeral-storage": "2Gi",
    "chat.max_turns": 90,
    "chat.delegation.max_iterations": 50,
    "chat.compression.protect_last_n": 20,
    "chat.memory.memory_char_limit": 2200,
    "chat.memory.user_char_limit": 1375,
}


@pytest.fixture(autouse=True)
def no_certificates_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CERTIFICATE_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("key", REQUIRED_BY_G10)
def test_a_default_is_the_required_one(key: str) -> None:
    assert CONFIG_KEYS[key].default == REQUIRED_BY_G10[key]


def test_settings_have_the_defaults_of_the_table() -> None:
    """Nothing is written twice."""
    sections: dict[str, object] = {"settings": Settings(), "chat": ChatSettings()}
    for key, row in CONFIG_KEYS.items():
        first, *steps = key.split(".")
        if first in sections and "*" not in key and "[]" not in key:
            found = sections[first]
            for step in steps:
                found = getattr(found, step.replace("-", "_"))
            assert found == row.default, key


def test_the_defaults_survive_being_written_down(tmp_path: Path) -> None:
    """A file that spells every default out means the same as an empty one."""
    lines = ["settings:", "  sandbox:", "    resources:", "      requests:", "      limits:"]
    written: dict[str, dict[str, object]] = {line.strip(" :"): {} for line in lines}
    for key, row in CONFIG_KEYS.items():
        *_, section, name = key.split(".")
        if (
            key.startswith("settings.")
            and section in written
            and row.default is not None
            and row.default is not REQUIRED
        ):
            written[section][name] = row.default
    text = "".join(f"{line}\n{_written(written[line.strip(' :')], line)}" for line in lines)
    spelt, plain = tmp_path / "spelt.yaml", tmp_path / "plain.yaml"
    spelt.write_text(text)
    plain.write_text("settings: {}\n")
    assert load_config(spelt, None).settings == load_config(plain, None).settings
    assert len(load_config(spelt, None).settings.model_fields_set) > 20


def _written(values: dict[str, object], line: str) -> str:
    before = " " * (len(line) - len(line.lstrip()) + 2)
    return "".join(f"{before}{name}: {_yaml(value)}\n" for name, value in values.items())


def _yaml(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return "[]" if isinstance(value, tuple) else "{}"


def test_every_key_has_a_meaning_that_is_a_sentence() -> None:
    """The documentation is made of them."""
    for key, row in CONFIG_KEYS.items():
        assert row.meaning.endswith("."), key
        assert row.meaning[0].isupper(), key


def test_without_a_file_there_are_workflows_for_every_project() -> None:
    configuration = load_config(None, {})
    assert configuration.settings == Settings()
    assert [(one.workflow, one.trigger) for one in configuration.resolve_project("any/project")] == [
        ("analyze-failures", "pipeline"),
        ("code-review", None),
    ]
    assert all(configuration.prompts.values())


@pytest.mark.parametrize("text", ["settings:\n", "workflows:\n", "chat:\n", "settings:\n  sandbox:\n    metadata:\n"])
def test_a_section_with_nothing_in_it_leaves_everything_as_it_is(tmp_path: Path, text: str) -> None:
    """Everything in it may be commented out."""
    file = tmp_path / "hummingbird.yaml"
    file.write_text(text)
    assert load_config(file, None).settings == Settings()


def test_lists_and_mappings_with_nothing_in_them_are_empty(tmp_path: Path) -> None:
    file = tmp_path / "hummingbird.yaml"
    file.write_text("settings:\n  fallback_models:\n  model_regions:\n")
    assert load_config(file, None).settings == Settings()


def test_how_the_defaults_relate_to_each_other() -> None:
    """A default must not be one that its own setting would refuse, or that makes another one meaningless."""
    assert SETTLE_S < SETTLE_CAP_S
    assert EXEC_TIMEOUT_S <= EXEC_TIMEOUT_CAP_S < SANDBOX_DEADLINE_S
    assert CONFIG_POLL_S < SETTLE_S
    assert 0 < COMPRESSION_SHARE < SOFT_SHARE < 1
    assert len(CONFIG_KEYS) < CONFIG_NODES


def test_the_documentation_has_a_row_for_every_key() -> None:
    head, line, *rows = reference_markdown().splitlines()
    assert (head.count("|"), line.count("|")) == (4, 4)
    assert len(rows) == len(CONFIG_KEYS)
    assert all(row.count("|") == 4 for row in rows)
    assert "| `settings.max_iterations` | `30` | Maximum number of model answers in one run. |" in rows
    assert "| `workflows.*.prompt` | required | File with the prompt, relative to this file. |" in rows
    assert any(row.startswith("| `settings.internal_notes` | `true` |") for row in rows)
