"""What a command uses up is the command's failure; the sandbox goes on."""

import pytest

from hummingbird.core.errors import CommandFailed
from hummingbird.core.limits import SANDBOX_FILE_BYTES
from tests.contracts.sandboxes.questions import MIB, at, pieces, python, said
from tests.contracts.sandboxes.stage import Stage


async def a_file_cannot_be_larger_than_allowed(stage: Stage) -> None:
    """Made with a hole in it, so that nothing is really stored."""
    done = await stage.sandbox.exec(f"truncate -s {SANDBOX_FILE_BYTES + MIB} too-large")
    assert done.exit_code != 0
    assert int(await said(stage.sandbox, "stat -c %s too-large; rm -f too-large")) <= SANDBOX_FILE_BYTES


async def a_full_tmp_fails_the_command_and_not_the_sandbox(stage: Stage) -> None:
    """By what the command writes itself, by a file that goes in, by output too long to be kept."""
    stage.needs("space")
    async with stage.tight() as sandbox:
        done = await sandbox.exec("cat /dev/zero > filling", timeout_s=60)
        assert done.exit_code != 0
        assert b"space" in done.stderr.lower()
        with pytest.raises(CommandFailed, match=r"(?i)space"):
            await sandbox.stream_to_file(at("more"), pieces(b"x" * MIB, 65536))
        done = await sandbox.exec("ls -A; rm filling; head -c 90000000 /dev/zero; exit 4", stdout_file=at("spilled"))
        assert (done.exit_code, done.stdout_bytes, done.stdout[:9]) == (4, 90_000_008, b"filling\n\0")
        assert "space" in done.complaint.lower()
        assert await said(sandbox, "rm spilled; echo room again > room; cat room") == b"room again\n"


async def a_command_that_wants_too_much_memory_dies_alone(stage: Stage) -> None:
    hungry = "held = []\nwhile True: held.append(bytearray(64 * 1024 * 1024)); held[-1][::4096] = b'x' * 16384"
    stage.needs("memory")
    done = await stage.sandbox.exec(python(hungry), timeout_s=60)
    assert done.exit_code in (1, 137), done
    assert not done.timed_out
    assert await said(stage.sandbox, "echo still here") == b"still here\n"


async def a_command_that_opens_too_many_files_fails_alone(stage: Stage) -> None:
    done = await stage.sandbox.exec(python("held = [open('/dev/null') for _ in range(100_000)]"))
    assert done.exit_code == 1
    assert b"Too many open files" in done.stderr
