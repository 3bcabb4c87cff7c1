"""Foreign JSON, read without trust: what stands where a count, a text or a list should be may be anything.

Also what every wire does with a bill: an answer that says what it used was paid for, so it is never thrown away.
Knows no wire.
"""

from dataclasses import dataclass
from typing import Any

from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage
from hummingbird.domain.text import plain
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelReply

_MOST = 2**53  # beyond it JSON numbers are no counts any more


def count(counts: Any, key: str) -> int:
    """A number of tokens; 0 for whatever is none."""
    return _number(counts, key) or 0


def text(value: Any) -> str:
    return plain(value) if isinstance(value, str) else ""


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def names_error(answer: Any) -> bool:
    """Whether an answer with status 200 is an error: an object with that key. Google's streaming methods put it in a
    list, also where they carry Claude's answers."""
    first = answer[0] if isinstance(answer, list) and answer else answer
    return isinstance(first, dict) and bool(first.get("error"))


def _number(counts: Any, key: str) -> int | None:
    value = counts.get(key) if isinstance(counts, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < _MOST else None


@dataclass(frozen=True, slots=True)
class Used:
    """What an answer used. `counted` False: the provider did not say, which is not the same as nothing."""

    usage: Usage
    raw: dict[str, Any]
    counted: bool

    def reply(self, message: AssistantMessage, finish: Finish) -> ModelReply:
        return ModelReply(message, finish, self.usage, self.raw, self.counted)

    def unusable(self, sentence: str) -> ModelReply:
        """An answer without anything to read: malformed if it was billed, else worth another try.

        Raises ReplyUnreadable with that sentence.
        """
        if not self.counted:
            raise ReplyUnreadable(sentence)
        return self.reply(AssistantMessage(), Finish.MALFORMED)


def used(usage: Usage, raw: Any, *keys: str) -> Used:
    """`keys` are the counts of which at least one must be there for anything to be counted."""
    kept = raw if isinstance(raw, dict) else {}
    return Used(usage, kept, any(_number(kept, key) is not None for key in keys))


def inclusive(raw: Any, prompt: str, output: str) -> Usage:
    """Usage as OpenAI counts it: the prompt includes what was read from and written to the cache, the output the
    reasoning. Its two APIs differ in what they call prompt and output."""
    counts = raw if isinstance(raw, dict) else {}
    details = counts.get(f"{prompt}_details")
    # DeepSeek's own name for it, from before it had the details
    read = count(details, "cached_tokens") or count(counts, "prompt_cache_hit_tokens")
    write = count(details, "cache_write_tokens")
    return Usage(
        fresh=max(0, count(counts, prompt) - read - write),
        cache_read=read,
        cache_write=write,
        output=count(counts, output),
        reasoning=count(counts.get(f"{output}_details"), "reasoning_tokens"),
    )
