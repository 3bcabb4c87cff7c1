"""What every call of a chat carries before anything was said (C9, users' pain 9)."""

from dataclasses import replace
from pathlib import Path

from hummingbird.assembly.chat_desk import ChatParts
from hummingbird.assembly.chatting import PROMPT_BYTES
from tests.config.effects.talking import talking

ALL = {
    *("sandbox_exec", "file_read", "file_search", "file_edit", "terminal", "process", "todo", "memory", "recall"),
    *("delegate", "clarify"),
}


class Somebody:
    async def clarify(self, question: str, choices: object) -> str:
        return ""


async def test_the_default_chat_weighs_at_most_16_000_bytes(tmp_path: Path) -> None:
    def asked(parts: ChatParts) -> ChatParts:
        return replace(parts, clarifier=Somebody())

    async with talking(tmp_path, chat="max_turns: 90", change=asked) as talk:
        sizes = dict(await talk.partner.sizes())
    assert {name.removeprefix("tool ") for name in sizes if name.startswith("tool ")} == ALL
    assert sum(sizes.values()) <= PROMPT_BYTES == 16_000


async def test_what_is_brought_along_is_bounded_and_shown(tmp_path: Path) -> None:
    """C9: a huge AGENTS.md does not take the window."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/AGENTS.md").write_text("Use tabs.\n" * 100_000)
    async with talking(tmp_path) as talk:
        sizes = dict(await talk.partner.sizes())
    assert 0 < sizes.get("context files", 0) < 20_000


async def test_what_is_not_brought_along_weighs_nothing(tmp_path: Path) -> None:
    """C9: an empty folder adds no part of the prompt."""
    async with talking(tmp_path) as talk:
        sizes = dict(await talk.partner.sizes())
    assert "context files" not in sizes or sizes["context files"] == 0
    assert sizes["base"] > 0
