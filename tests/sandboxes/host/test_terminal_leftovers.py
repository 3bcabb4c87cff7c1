"""Everything that a command started is gone when somebody wants it gone, however it hid and however we went."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from hummingbird.sandboxes.host.terminal import HostTerminal
from tests.sandboxes.host.hosting import ENVIRONMENT, called, processes_with, seen_soon, started

HANGS_S = 60.0  # nothing that works takes so long, however busy the machine is

# Each starts processes that carry {0} in their arguments, and stays
HIDING = {
    "plainly": "sleep {0}",
    "deaf": "trap '' TERM HUP INT; while :; do sleep {0}; done",
    "in a session of its own": "setsid sleep {0} & sleep {0}",
    "forked twice": "( (sleep {0} &) & ) ; sleep {0}",
    "as a daemon": "python3 -c 'import os,time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    'os.chdir("/"); time.sleep({0})\' ; sleep {0}',
    "a deaf silent daemon": "setsid nohup sh -c \"trap '' TERM; while :; do sleep {0}; done\" >/dev/null 2>&1 & "
    "sleep {0}",
    "forking all the time": "while :; do sleep {0} & sleep 0.01; done",
    "stopped": "sleep {0} & kill -STOP $!; sleep {0}",
    "without the environment": "env -i /bin/sleep {0} & env -i /usr/bin/setsid /bin/sleep {0}",
}


def number(name: str) -> str:
    """Of seconds that nobody else on this machine sleeps."""
    return f"9{os.getpid()}.{abs(hash(name)) % 10**6}"


def alive(word: str) -> bool:
    return bool(processes_with(word))


@pytest.fixture
def terminal(tmp_path: Path) -> HostTerminal:
    return HostTerminal(tmp_path, ENVIRONMENT)


@pytest.mark.parametrize("how", HIDING)
async def test_interrupting_a_command_ends_all_that_it_started(terminal: HostTerminal, how: str) -> None:
    word = number(how)
    call = asyncio.ensure_future(called(terminal.tools[0], command=HIDING[how].format(word)))
    await settled(word)
    call.cancel()
    async with asyncio.timeout(HANGS_S):
        with pytest.raises(asyncio.CancelledError):
            await call
    assert not alive(word)
    assert terminal.list_running() == ()


async def settled(word: str) -> None:
    """It runs, and has had time to hide."""
    assert await seen_soon(lambda: alive(f"sleep\0{word}") or alive(f"sleep({word}"))
    await asyncio.sleep(0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["deaf", "as a daemon"])
async def test_a_command_whose_time_is_over_is_gone_with_all_that_it_started(terminal: HostTerminal, how: str) -> None:
    word = number(f"time {how}")
    async with asyncio.timeout(HANGS_S):
        note, _ = await called(terminal.tools[0], command=HIDING[how].format(word), timeout_s=0.4)
    assert note.startswith("Ended after 0.4 s")
    assert not alive(word)


@pytest.mark.thorough
async def test_close_ends_whatever_runs(tmp_path: Path) -> None:
    words = {how: number(f"close {how}") for how in HIDING}
    commands = [HIDING[how].format(word) for how, word in words.items()]
    terminal = HostTerminal(tmp_path, ENVIRONMENT)
    run = terminal.tools[0]
    await asyncio.gather(*(called(run, command=command, background=True) for command in commands))
    await asyncio.gather(*map(settled, words.values()))
    async with asyncio.timeout(HANGS_S):
        await terminal.close()
    assert not [how for how, word in words.items() if alive(word)]


async def test_a_command_that_kills_its_guardian_does_not_get_away(terminal: HostTerminal) -> None:
    word = number("kills")
    command = f"setsid sleep {word} & sleep 0.1; kill -KILL $PPID; sleep {word}"
    note, _ = await called(terminal.tools[0], command=command)
    assert note == "The exit code is unknown: the process that watched the command was killed."
    assert await seen_soon(lambda: not alive(word))


OURS = """
import asyncio, sys
from pathlib import Path
from hummingbird.sandboxes.host.terminal import HostTerminal
from hummingbird.core.protocols.tools import ToolContext

async def main():
    terminal = HostTerminal(Path(sys.argv[1]), {"PATH": sys.argv[2]})
    context = ToolContext("s", "c")
    run = terminal.tools[0]
    background = [run({"command": command, "background": True}, context) for command in sys.argv[3:-1]]
    await asyncio.gather(*background, run({"command": sys.argv[-1]}, context))

asyncio.run(main())
"""


@pytest.mark.thorough
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_outlives_us_however_we_end(tmp_path: Path, end: signal.Signals) -> None:
    """#80204: processes that ignore SIGTERM, left behind with process 1 as their parent."""
    words = {how: number(f"{end} {how}") for how in HIDING}
    commands = [HIDING[how].format(word) for how, word in words.items()]
    ours = started(OURS, tmp_path, ENVIRONMENT["PATH"], *commands)
    try:
        await asyncio.gather(*map(settled, words.values()))
    finally:
        ours.send_signal(end)
        ours.wait()
    await seen_soon(lambda: not any(map(alive, words.values())))
    assert not [how for how, word in words.items() if alive(word)]
    assert await seen_soon(lambda: not processes_with(str(tmp_path)))


async def test_the_end_of_the_thread_that_started_it_is_no_reason_to_end_it(terminal: HostTerminal) -> None:
    word = number("thread")
    starting = called(terminal.tools[0], command=f"sleep {word}", background=True)
    thread = threading.Thread(target=asyncio.run, args=[starting])
    thread.start()
    thread.join()
    await asyncio.sleep(0.2)
    assert alive(word)
    await terminal.close()
    assert not alive(word)
