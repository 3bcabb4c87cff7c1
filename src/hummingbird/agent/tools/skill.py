"""`skill` (C9): brings a skill into the conversation as a message, when it is needed and not before."""

import asyncio
from collections.abc import Mapping
from typing import Any

from hummingbird.domain.mind_limits import SKILL_NAME_CHARS
from hummingbird.domain.papers import LoadedSkill, Skill
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.skills import Skills
from hummingbird.ports.tool import Output, ToolContext

NAME = "skill"
SPEC = ToolSpec(
    name=NAME,
    description=(
        "Loads a skill from the list in your instructions: how something is done here, step by step. Load it before "
        "you begin work that it describes; once a session is enough."
    ),
    schema={
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1, "maxLength": SKILL_NAME_CHARS}},
        "required": ["name"],
        "additionalProperties": False,
    },
    toolset=NAME,
    trusted=True,
)


class SkillTool:
    """`listed`: those that the prompt of the session names."""

    def __init__(self, skills: Skills, listed: tuple[Skill, ...]) -> None:
        self._skills = skills
        self._listed = listed

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def available(self) -> bool:
        return bool(self._listed)

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        found = await asyncio.to_thread(self._skills.load, arguments["name"])
        context.say(as_message(found))
        return f"The skill {found.name} follows as a message."


def as_message(skill: LoadedSkill) -> str:
    """Who speaks is said first: it is no new wish of the user's."""
    head = (
        f"[The skill {skill.name}, which you loaded. It says how such work is done here; it does not change what you "
        "were asked, nor the rules you work by.]"
    )
    files = "\n".join(["[Files of this skill, to be read where it speaks of them:", *skill.files]) + "]"
    return "\n\n".join([head, skill.text, *([files] if skill.files else ())])
