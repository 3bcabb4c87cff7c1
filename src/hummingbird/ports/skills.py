"""Where skills are found (C9): texts that say how something is done here, loaded when they are needed."""

from typing import Protocol

from hummingbird.domain.papers import LoadedSkill, SkillIndex


class Skills(Protocol):
    def listed(self) -> SkillIndex:
        """All that can be loaded. Never raises: what is wrong with one is among the faults."""
        ...

    def load(self, name: str) -> LoadedSkill:
        """As it is now. Raises NothingThere for a name that is not listed, InputUnreadable for one that has been broken
        since."""
        ...
