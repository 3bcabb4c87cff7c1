"""What the prompt and the tools of the default chat weigh, as `hummingbird chat --prompt-size` says it."""

import tempfile
from pathlib import Path

from hummingbird.app.chat import MAX_PROMPT_BYTES, measure_prompt
from hummingbird.app.chat_context import ChatOptions
from hummingbird.config.loader import load_config


def report() -> None:
    print("## Chat: what every call carries along\n")
    print("| part | bytes |\n|---|--:|")
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HUMMINGBIRD_HOME": str(Path(folder) / "state"), "OPENAI_API_KEY": "k-123456789"}
        parts = ChatOptions(
            configuration=load_config(None, environment), environment=environment, workspace=Path(folder)
        )
        found = measure_prompt(parts)
    for name, size in found:
        print(f"| {name} | {size:,} |")
    print(f"| **together** | **{sum(size for _, size in found):,}** of {MAX_PROMPT_BYTES:,} |\n")
