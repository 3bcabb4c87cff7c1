"""Which models the stand-ins know and what each of them refuses, derived from family and version.

The numbers are facts about the vendors' models in late 2026. It refuses to know prices.
"""

import re
from dataclasses import dataclass
from typing import Literal

from tests.standins.vendors.refusals import keys

Version = tuple[int, int]

_CLAUDES = keys(
    "fable-5-2 mythos-5-2 fable-5-1 mythos-5-1 fable-5 mythos-5 opus-5-5 opus-5 opus-4-8 opus-4-7 opus-4-6 opus-4-5 "
    "sonnet-5-5 sonnet-5 sonnet-4-6 sonnet-4-5 haiku-5-5 haiku-4-5"
)
_CLAUDE = re.compile(r"claude-([a-z]+)-(\d)(?:-(\d))?(?:[-@]\d{8})?")
_GEMINI = re.compile(r"gemini-(\d)(?:\.(\d))?-(?:pro|flash|flash-lite|argon)(?:-preview)?(?:-\d{2}-\d{4})?")
_LATEST = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest")
_GPT = re.compile(r"gpt-(\d)(?:\.(\d))?(?:-(?:mini|nano|pro|sol|terra|luna|astra))?(?:-\d{4}-\d{2}-\d{2})?")


@dataclass(frozen=True, slots=True)
class Claude:
    id: str
    family: str
    version: Version

    @property
    def _crown(self) -> bool:
        return self.family in {"fable", "mythos"}

    @property
    def binds_thinking(self) -> bool:
        # facts/llm.md 0.3: preserved thinking on Fable/Mythos from 5.1 and the 5.5 models
        return self.version >= ((5, 1) if self._crown else (5, 5))

    @property
    def system_entries(self) -> Literal["yes", "ignored", "no"]:
        # facts/llm.md 0.4: Opus from 4.8, Sonnet and Haiku 5.5, all Fable/Mythos; Sonnet 5 takes and ignores them
        if self.family == "sonnet" and self.version == (5, 0):
            return "ignored"
        needed = {"opus": (4, 8), "sonnet": (5, 5), "haiku": (5, 5)}.get(self.family, (5, 0))
        return "yes" if self.version >= needed else "no"

    @property
    def takes_forced_tools(self) -> bool:
        # facts/llm.md 0.6: any/tool refused on Fable/Mythos 5.1+, Opus 5.5, Sonnet 5.5
        return self.family == "haiku" or not self.binds_thinking

    @property
    def thinking_can_be_disabled(self) -> bool:
        # facts/llm.md 0.6: always on for Fable, Mythos and Opus 5.5; Sonnet 5.5 knows between_tools instead
        return not (self._crown or (self.family in {"opus", "sonnet"} and self.version >= (5, 5)))

    @property
    def takes_thinking_budget(self) -> bool:
        # facts/llm.md 0.6: enabled + budget_tokens refused on Opus 4.7 and later and on all 5.x
        return self.version < (5, 0) and not (self.family == "opus" and self.version >= (4, 7))

    @property
    def thinks_unasked(self) -> bool:
        # facts/llm.md 0.6: 5.x models think adaptively by default
        return self.version >= (5, 0)

    @property
    def hides_thinking(self) -> bool:
        # facts/llm.md 0.8: Opus 5, Opus 5.5 and Sonnet 5.5 return empty thinking unless display is "summarized"
        return (self.family == "opus" and self.version >= (5, 0)) or (self.family, self.version) == ("sonnet", (5, 5))

    @property
    def takes_prefill(self) -> bool:
        # facts/llm.md 1: a trailing assistant message is refused from 4.6 on
        return self.version < (4, 6)

    @property
    def cache_minimum(self) -> int:
        # facts/llm.md 1, prompt caching: shorter prefixes stay uncached without a word; the 5.5 models' and the
        # point releases' minimum was not found, 1024 is assumed
        if self.version == (5, 0) and self.family != "sonnet":
            return 512
        known = {("opus", (4, 7)): 2048, ("opus", (4, 6)): 4096, ("opus", (4, 5)): 4096, ("haiku", (4, 5)): 4096}
        return known.get((self.family, self.version), 1024)

    @property
    def window(self) -> int:
        # facts/llm.md 5: a million tokens, 200k for the 4.5 models
        return 200_000 if self.version <= (4, 5) else 1_000_000


@dataclass(frozen=True, slots=True)
class Gemini:
    id: str
    version: Version

    @property
    def signs_thoughts(self) -> bool:
        # facts/llm.md 2: thought signatures are enforced from Gemini 3 on
        return self.version >= (3, 0)

    @property
    def cache_minimum(self) -> int:
        # facts/llm.md 2: implicit caching from 4096 tokens on 3.x and 4, 2048 on 2.5
        return 4096 if self.version >= (3, 0) else 2048

    @property
    def window(self) -> int:
        return 1_048_576


@dataclass(frozen=True, slots=True)
class Gpt:
    id: str
    version: Version

    @property
    def refuses_tools_in_chat(self) -> bool:
        # facts/llm.md 0.7: 5.6 and 6.x refuse function tools in Chat unless reasoning_effort is none
        return self.version >= (5, 6)

    @property
    def bills_cache_writes(self) -> bool:
        # facts/llm.md 3: explicit breakpoints and paid writes from gpt-5.6 on
        return self.version >= (5, 6)

    @property
    def sends_phase(self) -> bool:
        # facts/llm.md 3: assistant messages carry a phase from gpt-5.4 on
        return self.version >= (5, 4)

    @property
    def window(self) -> int:
        return 400_000 if re.search(r"-(mini|nano)", self.id) else 1_050_000


def claude(model: str) -> Claude | None:
    found = _CLAUDE.fullmatch(model)
    if found is None:
        return None
    family, major, minor = found[1], found[2], found[3]
    if "-".join(filter(None, (family, major, minor))) not in _CLAUDES:
        return None
    return Claude(re.sub(r"[-@]\d{8}$", "", model), family, (int(major), int(minor or 0)))


def gemini(model: str) -> Gemini | None:
    if _LATEST.fullmatch(model):
        # from memory, not in the facts: a name without a version stands for the newest stable model of its kind
        return Gemini(model, (3, 8))
    found = _GEMINI.fullmatch(model)
    if found is None or int(found[1]) < 2:
        return None
    return Gemini(model, (int(found[1]), int(found[2] or 0)))


def gpt(model: str) -> Gpt | None:
    # facts/llm.md 0.5: chat models run from gpt-5.4 to 6.1, the older families are shut down
    found = _GPT.fullmatch(model)
    if found is None or not (5, 4) <= (int(found[1]), int(found[2] or 0)) <= (6, 1):
        return None
    return Gpt(model, (int(found[1]), int(found[2] or 0)))
