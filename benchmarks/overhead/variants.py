"""Who takes part: a name, a command, and what the mock has to know about it. Add a loop by adding a line.

Each command is called with `--url URL --turns N --dialect chat|anthropic` and prints the meter's JSON line.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS, RIVALS_A, RIVALS_B = ".venv", ".venv-rivals-a", ".venv-rivals-b"


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    environment: str  # a virtual environment below the project's root
    module: str
    dialect: str = "chat"
    closing: str = ""  # the tool that ends the run, for loops that cannot end otherwise
    package: str = ""  # whose version stands beside the name

    @property
    def argv(self) -> list[str]:
        return [str(ROOT / self.environment / "bin" / "python"), "-m", self.module]

    @property
    def title(self) -> str:
        lock = ROOT / "requirements" / f"{self.environment.removeprefix('.venv-')}.lock"
        if not (self.package and lock.exists()):
            return self.name
        found = re.search(rf"^{re.escape(self.package)}==(\S+)", lock.read_text(), re.MULTILINE)
        return f"{self.name} {found.group(1)}" if found else self.name

    def missing(self) -> str:
        """Why it cannot be run here; empty when it can."""
        if not (ROOT / (self.module.replace(".", "/") + ".py")).exists():
            return f"{self.module} is not written yet"
        if not Path(self.argv[0]).exists():
            return f"{self.environment} is missing; `python -m benchmarks.rivals.setup` creates it"
        return ""


# What each dialect is measured against.
BARE = {
    "chat": Variant("bare loop, chat", OURS, "benchmarks.overhead.bare"),
    "anthropic": Variant("bare loop, Anthropic", OURS, "benchmarks.overhead.bare_anthropic", "anthropic"),
}
HUMMINGBIRD = [
    Variant("bare loop, chat, with msgspec for json", OURS, "benchmarks.overhead.bare_msgspec"),
    Variant("Hummingbird, chat", OURS, "benchmarks.overhead.ours"),
    Variant("Hummingbird, Anthropic", OURS, "benchmarks.overhead.ours", "anthropic"),
    Variant("Hummingbird, chat, journal in memory", OURS, "benchmarks.overhead.ours_in_memory"),
]
RIVALS = [
    Variant("pydantic-ai", RIVALS_A, "benchmarks.rivals.pydantic_ai_loop", package="pydantic-ai-slim"),
    Variant("openai-agents", RIVALS_A, "benchmarks.rivals.openai_agents_loop", package="openai-agents"),
    Variant("langchain create_agent", RIVALS_A, "benchmarks.rivals.langchain_loop", package="langchain"),
    Variant(
        "smolagents ToolCallingAgent",
        RIVALS_B,
        "benchmarks.rivals.smolagents_loop",
        closing="final_answer",
        package="smolagents",
    ),
]
ALL = [*BARE.values(), *HUMMINGBIRD, *RIVALS]
