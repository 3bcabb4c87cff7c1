"""What documents show can be used: configurations are sound, JSON can be read, Python imports what exists."""

import ast
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from hummingbird.config.loader import FILE_NAME, examine_config
from hummingbird.config.settings import Settings
from hummingbird.config.template import PROMPTS_FOLDER, load_embedded, render_template
from tests.docs.reading import DOCUMENTS, ROOT, Block, blocks, name_of

OURS = {"settings", "workflows", "chat"}
OTHERS = ({"apiVersion", "kind"}, {"scrape_configs"}, {"AWSTemplateFormatVersion"})
YAML_WORDS = {"yaml", "yml"}


def snippets(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{name_of(document)}:{block.line}")
        for document in DOCUMENTS
        for block in blocks(document)
        if block.language in languages
    ]


def lines_of_json() -> list[Any]:
    """Objects that are printed: a line of its own, or a whole block."""
    found = [
        (document, block, text) for document in DOCUMENTS for block in blocks(document) for text in _objects(block)
    ]
    return [pytest.param(text, id=f"{name_of(document)}:{block.line}") for document, block, text in found]


def _objects(block: Block) -> Iterator[str]:
    whole = block.text.strip()
    if block.language == "json" or (whole.startswith("{") and whole.endswith("}") and "\n{" not in whole):
        yield whole
    elif block.language in {"", "text"}:
        yield from (line.strip() for line in whole.splitlines() if line[:1] == "{" and line.rstrip()[-1:] == "}")


def faults(text: str, folder: Path) -> list[str]:
    """What is wrong with a configuration, or with a part of one: of the file, or of its settings."""
    written = yaml.safe_load(text)
    assert isinstance(written, Mapping), "a configuration is a mapping"
    names = set(written)
    if any(other <= names for other in OTHERS):
        return []
    if not names <= OURS and names <= set(Settings.model_fields):
        written = {"settings": written}
    whole = {**yaml.safe_load(render_template()), **written}
    (folder / FILE_NAME).write_text(yaml.safe_dump(whole), encoding="utf-8")
    (folder / PROMPTS_FOLDER).mkdir(exist_ok=True)
    for name, prompt in load_embedded().prompts.items():
        (folder / PROMPTS_FOLDER / f"{name}.md").write_text(prompt, encoding="utf-8")
    return [str(fault) for fault in examine_config(folder / FILE_NAME, None).faults]


@pytest.mark.parametrize("block", snippets(*YAML_WORDS))
def test_every_yaml_is_a_sound_configuration_or_known_to_be_somebody_elses(block: Block, tmp_path: Path) -> None:
    assert faults(block.text, tmp_path) == []


@pytest.mark.parametrize(
    "broken",
    [
        "setings: {model: digest}",
        "settings: {modle: digest}",
        "chat: {permissions: [{action: maybe}]}",
        "budgets: {usd_per_run: much}",
        "workflows: {mine: {prompt: workflows/missing.md, projects: {a/b: {}}}}",
    ],
)
def test_a_broken_configuration_is_noticed(broken: str, tmp_path: Path) -> None:
    assert faults(broken, tmp_path)


def test_prometheus_is_told_where_to_look_and_with_which_token() -> None:
    """Without one it is answered with 401 wherever a token is set."""
    lines = (ROOT / "docs" / "observing.md").read_text(encoding="utf-8").splitlines()
    begin = lines.index("    scrape_configs:")
    end = next(at for at in range(begin, len(lines)) if not lines[at])
    (job,) = yaml.safe_load("\n".join(lines[begin:end]))["scrape_configs"]
    assert job.keys() == {"job_name", "authorization", "static_configs"}
    assert job["authorization"].keys() == {"type", "credentials_file"}, "the names that Prometheus has for them"
    assert job["authorization"]["type"] == "Bearer"
    assert all(":" in target for one in job["static_configs"] for target in one["targets"])


def test_yaml_json_and_python_are_found() -> None:
    assert len(snippets(*YAML_WORDS)) >= 4
    assert len(lines_of_json()) >= 8
    assert len(snippets("python")) >= 6


@pytest.mark.parametrize("text", lines_of_json())
def test_every_json_can_be_read(text: str) -> None:
    assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize("block", snippets("python"))
def test_every_python_compiles_and_imports_what_exists(block: Block) -> None:
    for statement in ast.walk(ast.parse(block.text)):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            module = import_module(statement.module)
            assert [one.name for one in statement.names if not hasattr(module, one.name)] == []
        elif isinstance(statement, ast.Import):
            assert all(import_module(one.name) for one in statement.names)
