"""Configuration files for tests: those in tests/fixtures/config, and small ones written on the spot."""

from pathlib import Path
from textwrap import dedent

from hummingbird.config.configuration import Configuration
from hummingbird.config.loader import ConfigLoadResult, examine_config, load_config

FIXTURES = Path(__file__).parent.parent / "fixtures" / "config"
EVERYTHING = FIXTURES / "everything.yaml"
CONTINUITY = FIXTURES / "continuity.yaml"
OLDER = FIXTURES / "continuity-older.yaml"
WORKFLOW = "workflows:\n  look:\n    prompt: look.md\n"


def written(folder: Path, text: str | bytes) -> Path:
    """A configuration with a prompt beside it."""
    folder.mkdir(exist_ok=True)
    (folder / "look.md").write_text("Look.\n")
    path = folder / "hummingbird.yaml"
    path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
    return path


def examined(folder: Path, text: str | bytes) -> ConfigLoadResult:
    return examine_config(written(folder, text), None)


def loaded(folder: Path, text: str) -> Configuration:
    return load_config(written(folder, text), None)
