"""Hypothesis strategies: conversations as the loop makes them, valid at every point where a call may happen."""

from collections.abc import Sequence

from hypothesis import strategies as st

from hummingbird.domain.messages import (
    AssistantMessage,
    Echo,
    Message,
    Notice,
    NoticeKind,
    ToolCall,
    ToolMessage,
    UserMessage,
)

# One step of a conversation: what is said, and how many tools are called.
_texts = st.sampled_from(["", " ", "words", "mehr Wörter ✓", "line\nline", '"quoted" \\ {}'])
_arguments = st.sampled_from(['{"path":"a"}', "{}", "{broken", ""])
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("user"), _texts),
        st.tuples(st.just("notice"), _texts),
        st.tuples(st.just("say"), st.sampled_from(["words", "cut o"])),
        st.tuples(st.just("call"), st.lists(_arguments, min_size=1, max_size=3)),
    ),
    max_size=14,
)


def conversations(wire: str, model: str) -> st.SearchStrategy[list[Message]]:
    """Answers may be this model's own (with an echo) or from elsewhere."""
    return st.tuples(_steps, st.booleans()).map(lambda drawn: _told(*drawn, wire, model))


def _told(steps: Sequence[tuple[str, object]], own: bool, wire: str, model: str) -> list[Message]:
    messages: list[Message] = [UserMessage("Why did it fail?")]
    for number, (kind, what) in enumerate(steps):
        may_speak = not isinstance(messages[-1], AssistantMessage)
        if kind == "user":
            messages.append(UserMessage(str(what)))
        elif kind == "notice":
            messages.append(Notice(NoticeKind.SOFT_BUDGET, str(what)))
        elif kind == "say" and may_speak:
            messages.append(
                AssistantMessage(str(what), echo=Echo(wire, model, _said(wire, str(what))) if own else None)
            )
        elif kind == "call" and may_speak and isinstance(what, list):
            calls = tuple(ToolCall(f"c{number}x{at}", "read", text) for at, text in enumerate(what))
            messages.append(AssistantMessage("", "", calls))
            messages.extend(ToolMessage(call.id, "read", "result", is_error=at == 1) for at, call in enumerate(calls))
    return messages


def _said(wire: str, text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}] if wire == "anthropic" else [{"text": text, "thoughtSignature": "c2ln"}]
