"""A journal with every kind of entry, texts that are hard on a line-based file, and ways to run another process."""

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from hummingbird.core.journal import (
    EchoesDropped,
    EndReason,
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ResultsWithheld,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolDecided,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage, NoticeKind, ProviderEcho, ToolCall
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.core.usage import Charge, TokenUsage

OTHER_PROCESS = Path(__file__).with_name("other_process.py")

LOOK = ToolDefinition("look", "Looks.", {"type": "object", "properties": {"path": {"type": "string"}}})
OPENED = SessionOpened(session_id="s", system="Regeln: ü\n", tools=(LOOK,), format=1, at=1.5)
SAID = UserSaid(text='warum?\n\x00\x1f\u2028"\\ 😀')

SAMPLES: list[JournalEntry] = [
    OPENED,
    RunStarted(run_id="r", model="m"),
    HistoryImported(messages=({"role": "user", "content": "früher"},)),
    SAID,
    NoticeShown(notice=NoticeKind.SOFT_BUDGET, text="little left"),
    ModelCalled(call_id="c", model="m", messages=3),
    ModelFailed(
        call_id="c", model="m", happening=ModelFailureKind.UNAVAILABLE, sentence="Overloaded.", retry_after_s=0.5
    ),
    ModelSwitched(model="n", reason="m is down"),
    ModelCalled(call_id="d", model="n", messages=2),
    ModelAnswered(
        call_id="d",
        model="n",
        message=AssistantMessage(
            "", "hm", (ToolCall("a", "look", "{}"),), ProviderEcho("wire", "n", {"signature": "x"})
        ),
        usage=TokenUsage(fresh=3, output=2),
        cost_usd=Decimal("0.000125"),
        raw_usage={"input_tokens": 3},
    ),
    ToolDecided(call_id="a", name="look", by="rules", decision="rewritten"),
    ToolStarted(call_id="a", name="look", arguments="{}"),
    ToolFinished(call_id="a", name="look", text="seen\n", charges=(Charge("m", "turn", "answered", TokenUsage()),)),
    ResultsWithheld(call_ids=("a",)),
    EchoesDropped(reason="refused"),
    PrefixChanged(system="", tools=(), reason="changed"),
    RunEnded(run_id="r", reason=EndReason.COMPLETED, text="weil", answered=True),
]


def start(deed: Callable[[Path], None], path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(deed, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def told_by(deed: Callable[[Path], None], path: Path) -> list[str]:
    """What the other process said until it ended."""
    done = subprocess.run(command(deed, path), stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    return done.stdout.splitlines()


def command(deed: Callable[[Path], None], path: Path) -> list[str]:
    return [sys.executable, str(OTHER_PROCESS), deed.__name__, str(path)]
