"""A conversation with a scripted partner, to be run in a real terminal: what is said chooses what happens."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hummingbird.agent.todo_list import Todo, TodoState
from hummingbird.chat.headless import HeadlessSettings, answer_lines, answer_one, read_piped_input, read_query
from hummingbird.chat.partner import ChatStatus, LastExchange
from hummingbird.chat.terminal import TerminalSettings, run_terminal_chat
from hummingbird.core.errors import UsageError
from hummingbird.core.events import ReasoningDelta, RunOutcome, ToolProgress
from hummingbird.core.journal import ToolDecided, ToolFinished, ToolStarted
from hummingbird.core.permissions import GrantScope, PermissionMode, PermissionOffer, PermissionQuestion
from hummingbird.core.tool_spec import ToolEffect
from tests.chat.scripted_partner import ScriptedPartner

ANSWER = """# Birds

A **hummingbird** hovers.

1. it drinks
2. it flies

| wing | beats |
|------|-------|
| left | 80    |

```python
def hover() -> str:
    return "there"
```

That was *all* of it.
"""
_QUESTION = PermissionQuestion(
    "terminal",
    'terminal {"command":"make all"}',
    "the default",
    "k",
    frozenset({ToolEffect.EXEC}),
    tuple(GrantScope),
    {"command": "make all"},
)
_DIFF = "--- wings.py\n+++ wings.py\n@@ -1,2 +1,2 @@\n def flap():\n-    return 80\n+    return 81\n"
_EDIT = replace(
    _QUESTION,
    tool="file_edit",
    arguments={"path": "wings.py", "new": "…"},
    preview=_DIFF,
    offer=PermissionOffer(accept_edits=True),
)


async def slowly(partner: ScriptedPartner, seconds: float) -> str:
    words = "".join(f"word{number} " + ("\n\n" if number % 40 == 39 else "") for number in range(int(seconds * 200)))
    return await partner.stream(words, size=7, pause_s=0.005)


def resize(columns: int, rows: int) -> None:
    """Give the window that this program runs in another size."""
    size = ("-x", str(columns), "-y", str(rows))
    subprocess.run(["tmux", "resize-window", "-t", os.environ["TMUX_PANE"], *size], check=True)
    while os.get_terminal_size() != (columns, rows):
        time.sleep(0.001)


async def resized(partner: ScriptedPartner) -> str:
    """The window changes its size while a frame is being made: for the status line it is asked how things stand."""
    sizes = [(60, 20), (120, 35), (70, 25), (100, 30), (50, 20), (120, 30)]

    def standing() -> ChatStatus:
        if sizes:
            resize(*sizes.pop())
        return ScriptedPartner.status(partner)

    partner.status = standing  # type: ignore[method-assign]  # as it says
    return await slowly(partner, 3)


async def tools(partner: ScriptedPartner) -> str:
    partner.show(ReasoningDelta("I reason about it.\n\n"))
    partner.record(ToolStarted(call_id="t1", name="terminal", arguments='{"command":"make all"}'))
    partner.show(ToolProgress("t1", "terminal", "compiling wings.c"))
    await asyncio.sleep(0.6)
    partner.record(ToolFinished(call_id="t1", name="terminal", text="line one\nline two", seconds=0.6))
    partner.list = [Todo(1, "look at the wings", TodoState.IN_PROGRESS)]
    partner.record(ToolStarted(call_id="t2", name="todo", arguments="{}"))
    partner.record(ToolFinished(call_id="t2", name="todo", text="ok"))
    return await partner.stream("done with tools")


async def asked(partner: ScriptedPartner, times: int = 0, go: str = "") -> str:
    """`go`: the file without which it does not ask yet."""
    streaming = asyncio.ensure_future(slowly(partner, 60))
    try:
        while go and not Path(go).exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.02)
        command = f"make all{' long' * times} END" if times else "make all"
        answer = await partner.asker.ask(replace(_QUESTION, arguments={"command": command}))
    finally:
        streaming.cancel()
    return await partner.stream(f"\n\nanswered {answer.scope} {answer.words}")


async def edited(partner: ScriptedPartner) -> str:
    if partner.mode is PermissionMode.ACCEPT_EDITS:
        return await partner.stream("edited without asking")
    answer = await partner.asker.ask(_EDIT)
    if answer.takes_offer:
        partner.switch_mode(PermissionMode.ACCEPT_EDITS)
    partner.record(ToolDecided(call_id="e1", name="file_edit", by="person", decision="allowed", scope="once"))
    partner.record(ToolStarted(call_id="e1", name="file_edit", arguments='{"path":"wings.py"}'))
    partner.record(ToolFinished(call_id="e1", name="file_edit", text=_DIFF))
    return await partner.stream(f"\n\nanswered {answer.scope} {answer.words}")


async def stubborn(partner: ScriptedPartner) -> str:
    """Takes its time to end."""
    try:
        return await slowly(partner, 60)
    except asyncio.CancelledError:
        await asyncio.sleep(8)
        return await partner.stream("ended at last")


async def clarified(partner: ScriptedPartner) -> str:
    return await partner.stream(f"chose {await partner.clarifier.clarify('Which wing?', ['left', 'right'])!r}")


async def played(partner: ScriptedPartner, text: str) -> str:
    words = text.split()
    match words[0] if words else "":
        case "markdown":
            return await partner.stream(ANSWER, pause_s=0.002)
        case "slow":
            return await slowly(partner, float(words[1]))
        case "resized":
            return await resized(partner)
        case "tools":
            return await tools(partner)
        case "ask":
            return await asked(partner, int("".join(words[1:2]) or 0), "".join(words[2:3]))
        case "edit":
            return await edited(partner)
        case "write":
            partner.edited = ["wings.py"]
            return await partner.stream("wrote wings.py")
        case "stubborn":
            return await stubborn(partner)
        case "clarify":
            return await clarified(partner)
        case "long":
            return await partner.stream("".join(f"line {number}\n" for number in range(20_000)), size=4_000)
        case "break":
            raise ValueError("nobody expected that")
        case "fail":
            raise UsageError("There is no model: name one with --model.")
        case "nasty":
            return await partner.stream("nasty \x1b]0;owned\x07 \x1b[2J &#27;[31m \u202e end")
        case _:
            return await partner.stream(f"heard {len(text)} characters: {text[:60]}")


async def _partner_of(observer: object, asker: object, clarifier: object) -> ScriptedPartner:
    partner = ScriptedPartner(observer, asker, clarifier)  # type: ignore[arg-type]  # the ports' own types, unspelled
    partner.script = played
    if "BIRD_LAST" in os.environ:
        partner.last = LastExchange("mend the wings", "I began to **look**.", "The run was cut off.", is_cut_off=True)
    if "BIRD_CLOSED" in os.environ:
        partner.on_close = Path(os.environ["BIRD_CLOSED"]).touch
    return partner


def _described(outcome: RunOutcome) -> dict[str, object]:
    return {"final_response": outcome.text, "exit_reason": outcome.reason.value, "cost": outcome.bill.cost_usd}


async def answer_piped(arguments: Sequence[str]) -> int:
    """Answer without a terminal, as the program does whose standard input is a pipe."""
    piping = HeadlessSettings(Path.cwd(), _described, as_json="--json" in arguments, watched=sys.stderr.isatty())
    if "--result" in arguments:
        piping = replace(piping, only_result=True)
    if "-q" in arguments:
        asked = arguments[arguments.index("-q") + 1]
        if asked == "-":
            return await answer_one(_partner_of, "", piping, piped=read_query(sys.stdin.buffer))
        return await answer_one(_partner_of, asked, piping, piped=read_piped_input())
    return await answer_lines(_partner_of, sys.stdin.buffer, piping)


async def _conversed() -> int:
    setting = TerminalSettings(
        start=Path.cwd(),
        environment=os.environ,
        history=Path(os.environ["BIRD_HISTORY"]) if "BIRD_HISTORY" in os.environ else None,
        mask=lambda text: text.replace("hunter2", "[masked]"),
        colour="NO_COLOR" not in os.environ,
        greeting="bird is here",
        bell_after_s=float(os.environ["BIRD_BELL"]) if "BIRD_BELL" in os.environ else None,
        resumed="BIRD_LAST" in os.environ,
    )
    return await run_terminal_chat(_partner_of, setting)


def wait_for_start() -> None:
    """Wait for the file that lets this program begin, as if it took long to load."""
    if "BIRD_START" in os.environ:
        sys.stdout.write("starting\n")
        sys.stdout.flush()
        while not Path(os.environ["BIRD_START"]).exists():
            time.sleep(0.02)


if __name__ == "__main__":
    wait_for_start()
    headless = len(sys.argv) > 1 or not sys.stdin.isatty()
    sys.exit(asyncio.run(answer_piped(sys.argv[1:]) if headless else _conversed()))
