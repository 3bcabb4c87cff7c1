"""What every call of a chat carries before anything was said."""

from dataclasses import replace
from pathlib import Path

from hummingbird.app.chat import MAX_PROMPT_BYTES
from hummingbird.app.chat_context import ChatOptions
from tests.config.effects.talking import talking

ALL = {
    *("sandbox_exec", "file_read", "file_search", "file_edit", "terminal", "process", "todo", "memory", "recall"),
    *("delegate", "clarify"),
}


class Somebody:
    async def clarify(self, question: str, choices: object) -> str:
        return ""


async def test_the_default_chat_weighs_at_most_16_000_bytes(tmp_path: Path) -> None:
    def asked(parts: ChatOptions) -> ChatOptions:
        return replace(parts, clarifier=Somebody())

    async with talking(tmp_path, chat="max_turns: 90", change=asked) as talk:
        sizes = dict(await talk.partner.measure_prompt())
    assert {name.removeprefix("tool ") for name in sizes if name.startswith("tool ")} == ALL
    assert sum(sizes.values()) <= MAX_PROMPT_BYTES == 16_000


async def test_what_is_brought_along_is_bounded_and_shown(tmp_path: Path) -> None:
    """A huge AGENTS.md does not take the window."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/AGENTS.md").write_text("Use tabs.\n" * 100_000)
    async with talking(tmp_path) as talk:
        sizes = dict(await talk.partner.measure_prompt())
    assert 0 < sizes.get("context files", 0) < 20_000


async def test_what_is_not_brought_along_weighs_nothing(tmp_path: Path) -> None:
    """An empty folder adds no part of the prompt."""
    async with talking(tmp_path) as talk:
        sizes = dict(await talk.partner.measure_prompt())
    assert "context files" not in sizes or sizes["context files"] == 0
    assert sizes["base"] > 0
