"""The example in docs/configuration.md is sound, and means what it says. Its table is in test_generated.py."""

from pathlib import Path

import pytest

from hummingbird.config.loader import load_config
from hummingbird.config.template import PROMPTS_FOLDER, load_embedded

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"


@pytest.fixture(scope="module")
def text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def test_the_documents_example_is_a_sound_configuration(text: str, tmp_path: Path) -> None:
    _, _, rest = text.partition("```yaml\n")
    path = tmp_path / "hummingbird.yaml"
    path.write_text(rest.partition("```")[0], encoding="utf-8")
    (tmp_path / PROMPTS_FOLDER).mkdir()
    for name, prompt in load_embedded().prompts.items():
        (tmp_path / PROMPTS_FOLDER / f"{name}.md").write_text(prompt, encoding="utf-8")
    gears = load_config(path, None).resolve("analyze-failures", "acme/gears")
    assert gears is not None
    assert gears.because["max_runs_per_mr"] == "project"
    assert gears.because["max_iterations"] == "workflow"
    assert gears.because["model"] == "settings"
    assert gears.because["context_limit"] == "default"
