"""`from hummingbird import Agent` is typed for a user's script, though the package loads its names lazily."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hummingbird
from tests.real_parts import npm_program

SOURCES = Path(hummingbird.__file__).parents[1]

SCRIPT = """
from hummingbird import Agent, AgentConfig, RunResult, tool

@tool
def look(path: str) -> str:
    return path

config = AgentConfig(max_usd=0.5, on_event=lambda event: None)
with Agent("digest", sessions_dir="sessions", config=config) as agent:
    answer: str = agent.chat("Why did it fail?")
    cost: float | None = agent.run_conversation("And now?")["cost"]
    result: RunResult[dict[str, int]] = agent.run_sync("How many?", output=dict[str, int])
    count: int = result.output["count"]
Agent("digest", tools=[look, len])
"""
MISTAKES = {
    "from hummingbird import Agnet": "attr-defined",
    'Agent("x", nonsense=1)': "call-arg",
    "AgentConfig(max_iterations='many')": "arg-type",
    'number: int = Agent("x").chat("?")': "assignment",
    'other: str = Agent("x").run_sync("?", output=int).output': "assignment",
    "tool(effects=['explode'])": "list-item",
}


@pytest.mark.thorough
def test_users_script_is_type_checked(tmp_path: Path) -> None:
    """One run of mypy, since each reads the whole package."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\n".join(MISTAKES) + "\n")
    first_mistake = SCRIPT.count("\n") + 1
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    found = [(int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]")) for line in errors]
    assert found == list(enumerate(MISTAKES.values(), first_mistake)), done.stdout + done.stderr


@pytest.mark.thorough
def test_pyright_finds_the_same_mistakes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\n".join(MISTAKES) + "\n")
    where = {"venvPath": str(Path(sys.prefix).parent), "venv": Path(sys.prefix).name}
    settings = {"include": ["script.py"], "typeCheckingMode": "strict", "extraPaths": [str(SOURCES)], **where}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [npm_program("pyright"), "--outputjson", "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    lines = sorted({one["range"]["start"]["line"] + 1 for one in errors})
    first_mistake = SCRIPT.count("\n") + 1
    assert lines == list(range(first_mistake, first_mistake + len(MISTAKES))), done.stdout


def test_importing_the_package_loads_nothing() -> None:
    """Neither pydantic nor an SDK, nor anything else of ours."""
    shown = "import sys, hummingbird; print(*sorted({name.partition('.')[0] for name in sys.modules}), sep='\\n')"
    bare = "import sys, importlib, typing; print(*sorted({name.partition('.')[0] for name in sys.modules}), sep='\\n')"
    extra = _run(shown) - _run(bare)
    assert extra == {"hummingbird"}


def test_public_names_can_be_listed_and_loaded() -> None:
    assert all(getattr(hummingbird, name) for name in hummingbird.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = hummingbird.nonsense  # type: ignore[attr-defined]


def _run(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
