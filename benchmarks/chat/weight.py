"""What the prompt and the tools of the default chat weigh, as `hummingbird chat --prompt-size` says it."""

import tempfile
from pathlib import Path

from hummingbird.assembly.chat_desk import ChatParts
from hummingbird.assembly.chatting import PROMPT_BYTES, prompt_sizes
from hummingbird.config.load import load


def report() -> None:
    print("## Chat: what every call carries along\n")
    print("| part | bytes |\n|---|--:|")
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HUMMINGBIRD_HOME": str(Path(folder) / "state"), "OPENAI_API_KEY": "k-123456789"}
        parts = ChatParts(configuration=load(None, environment), environment=environment, workspace=Path(folder))
        found = prompt_sizes(parts)
    for name, size in found:
        print(f"| {name} | {size:,} |")
    print(f"| **together** | **{sum(size for _, size in found):,}** of {PROMPT_BYTES:,} |\n")
