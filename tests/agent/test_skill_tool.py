"""A skill comes as a message, when it is asked for."""

from pathlib import Path

import pytest

from hummingbird.agent.context_files.instruction_files import SkillFolders
from hummingbird.agent.tools.chat_tools import SkillTool
from hummingbird.core.errors import SourceNotFound
from tests.agent.minds import Listener


@pytest.fixture
def skills(tmp_path: Path) -> SkillFolders:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: release\ndescription: How.\n---\nTag it, see checklist.md.")
    (folder / "checklist.md").write_text("…")
    return SkillFolders([tmp_path])


async def test_a_skill_is_said_into_the_conversation_with_whose_words_it_is(
    skills: SkillFolders, tmp_path: Path
) -> None:
    """The result itself says only that it comes."""
    listener = Listener()
    told = await listener.call(SkillTool(skills, skills.list_skills().skills), {"name": "release"})
    assert told == "The skill release follows as a message."
    (message,) = listener.said
    assert message.startswith("[The skill release, which you loaded.")
    assert "\n\nTag it, see checklist.md.\n\n" in message
    assert message.endswith(f"speaks of them:\n{tmp_path / 'release' / 'checklist.md'}]")


async def test_an_unknown_skill_is_a_sentence_and_says_nothing_else(skills: SkillFolders) -> None:
    listener = Listener()
    with pytest.raises(SourceNotFound, match=r"no skill 'deploy'\. There are: release"):
        await listener.call(SkillTool(skills, skills.list_skills().skills), {"name": "deploy"})
    assert listener.said == []


async def test_without_skills_there_is_no_such_tool(skills: SkillFolders) -> None:
    assert not SkillTool(skills, ()).is_available()
    assert SkillTool(skills, skills.list_skills().skills).is_available()
