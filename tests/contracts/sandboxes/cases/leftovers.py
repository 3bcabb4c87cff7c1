"""What a command leaves running is ended with it, and does not hold it up."""

from hummingbird.core.limits import SANDBOX_PROCESSES
from tests.contracts.sandboxes.questions import processes, python, running, said
from tests.contracts.sandboxes.stage import Stage

_DOUBLE_FORK = """
import os, signal, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("written by the grandchild", flush=True)
open("forked", "w").close()
os.execvp("sleep", ["sleep", "7302"])
"""
_FLEEING = """
import os, time
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    b"7304"
"""
_BOMB = """
import os, sys, time
forked = 0
try:
    for _ in range(int(sys.stdin.read())):
        if not os.fork():
            os.execvp("sleep", ["sleep", "7305"])
        forked += 1
except OSError as error:
    print(error.strerror, file=sys.stderr)
print(forked)
"""


async def a_daemon_is_ended_and_what_it_had_written_arrives(stage: Stage) -> None:
    """Forked twice, with a session of its own."""
    command = f"python3 -c '{_DOUBLE_FORK}'; until [ -e forked ]; do sleep 0.02; done; echo last"
    assert await said(stage.sandbox, command) == b"written by the grandchild\nlast\n"
    assert await running(stage.sandbox, "7302") == []


async def nohup_and_setsid_do_not_help_a_process_to_stay(stage: Stage) -> None:
    """They hold stdout and stderr open, which must not keep anybody waiting."""
    command = "sleep 7303 & nohup setsid sleep 7303 >/dev/null 2>&1 </dev/null & setsid -f sleep 7303; echo done"
    assert await said(stage.sandbox, command) == b"done\n"
    assert await running(stage.sandbox, "7303") == []


async def a_process_that_forks_all_the_time_does_not_get_away(stage: Stage) -> None:
    await stage.sandbox.exec(f"{python(_FLEEING).removeprefix('exec ')} & sleep 0.1")
    assert await running(stage.sandbox, "7304") == []


async def a_fork_bomb_is_bounded_and_the_sandbox_goes_on(stage: Stage) -> None:
    tried = 2 * SANDBOX_PROCESSES
    done = await stage.sandbox.exec(python(_BOMB), str(tried).encode(), timeout_s=60)
    assert done.exit_code == 0, done
    if "processes" in stage.backend.settles:
        assert int(done.stdout) < tried
        assert b"temporarily unavailable" in done.stderr
    assert await running(stage.sandbox, "7305") == []


async def a_hundred_orphans_leave_no_zombie(stage: Stage) -> None:
    """Some died before the command did, some with it."""
    await said(stage.sandbox, "i=0; while [ $i -lt 50 ]; do (true &); (sleep 7306 &); i=$((i+1)); done")
    left = await processes(stage.sandbox)
    assert [(state, words) for state, words in left if state == "Z" or "7306" in words] == []


async def the_orphans_of_a_killed_supervisor_leave_no_zombie(stage: Stage) -> None:
    await stage.sandbox.exec("for i in 1 2 3 4 5 6 7 8 9; do (setsid sleep 7307 &); done; kill -9 $PPID; sleep 7307")
    while any(state == "Z" or "7307" in words for state, words in await processes(stage.sandbox)):
        pass  # process 1 collects them in its own time; if it never did, the case's limit would end this
