"""What a command finds around it: its directory, its user, an environment that tells nothing."""

import os

from tests.contracts.sandboxes.questions import at, content, python, said
from tests.contracts.sandboxes.stage import Stage

CANARY = "HUMMINGBIRD_CANARY"


async def a_command_begins_in_its_own_empty_directory(stage: Stage) -> None:
    """No process around it shows a variable that was set here while the sandbox started."""
    os.environ[CANARY] = "canary-in-the-environment"
    try:
        async with stage.fresh() as sandbox:
            shown = await said(sandbox, "pwd; ls -A; touch x && echo writable; cat /proc/*/environ 2>/dev/null; env")
    finally:
        del os.environ[CANARY]
    assert shown.startswith(b"/tmp/data\nwritable\n")
    assert b"canary" not in shown.lower()


async def a_command_that_spoils_its_directory_can_be_followed_by_one_that_mends_it(stage: Stage) -> None:
    async with stage.fresh() as sandbox:
        await said(sandbox, "rm -rf /tmp/data; echo in the way > /tmp/data")
        assert await said(sandbox, "pwd; rm /tmp/data") == b"/tmp\n"
        assert await said(sandbox, "pwd; chmod 000 .") == b"/tmp/data\n"
        assert await said(sandbox, "chmod 755 /tmp/data; pwd; rmdir /tmp/data") == b"/tmp\n"
        await sandbox.write_file(at("again"), b"again")
        assert await content(sandbox, at("again")) == b"again"


async def the_environment_holds_nothing_of_ours(stage: Stage) -> None:
    done = await said(stage.sandbox, python("import os; print(*os.environ)"))
    assert set(done.decode().split()) <= {"PATH", "HOME", "LANG", "TMPDIR", "PWD", "LC_CTYPE", "OLDPWD", "SHLVL", "_"}


async def a_command_has_no_rights(stage: Stage) -> None:
    status = (
        await said(stage.sandbox, "id -u; id -g; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status")
    ).split()
    assert status[0] != b"0"
    assert status[:2] == [b"65532", b"65532"] or "user" not in stage.backend.settles
    assert int(status[status.index(b"CapEff:") + 1], 16) == 0
    assert int(status[status.index(b"CapBnd:") + 1], 16) == 0
    assert status[status.index(b"NoNewPrivs:") + 1] == b"1"


async def nothing_outside_tmp_can_be_written(stage: Stage) -> None:
    """Nor in /proc: what stands there belongs to the kernel. /dev/shm is memory of the sandbox's own, like /tmp."""
    command = "for d in / /usr /usr/bin /etc /var /home /root /opt /srv /run /dev /proc /sys /mnt /bin /lib; do "
    command += "(: > $d/canary-file) 2>/dev/null && echo $d; done; true"
    assert await said(stage.sandbox, command) == b""


async def a_long_command_is_run(stage: Stage) -> None:
    text = "x" * 100_000
    assert await said(stage.sandbox, f"printf %s {text} | wc -c") == b"100000\n"


async def a_command_that_is_too_long_for_the_kernel_is_refused_in_a_sentence(stage: Stage) -> None:
    done = await stage.sandbox.exec(f": {'x' * 300_000}")
    assert done.exit_code == 126
    assert b"could not be started" in done.stderr


async def a_command_may_have_lines_and_any_letters(stage: Stage) -> None:
    command = "printf '%s\\n' 'grün 猫 🐦'\n\n# a comment\ncat <<'EOF'\n$(not run) `nor this`\nEOF\n"
    assert await said(stage.sandbox, command) == "grün 猫 🐦\n$(not run) `nor this`\n".encode()


async def a_command_with_a_nul_is_refused_in_a_sentence(stage: Stage) -> None:
    for command in ("echo a\0b", "echo \ud800"):
        done = await stage.sandbox.exec(command)
        assert done.exit_code == 126
        assert done.stdout == b""
        assert b"The command could not be started" in done.stderr


async def bytes_that_are_no_utf_8_may_stand_in_a_command(stage: Stage) -> None:
    assert await said(stage.sandbox, os.fsdecode(b"printf %s '\xff\xfe'")) == b"\xff\xfe"


async def a_command_starts_with_nothing_open_and_no_signal_ignored(stage: Stage) -> None:
    """Signals 32 and 33 are the C library's own, and nobody can set them."""
    opened = python("import os; print([fd for fd in range(1024) if os.path.exists('/proc/self/fd/%d' % fd)])")
    seen = await said(stage.sandbox, f"grep SigIgn /proc/self/status; umask; {opened}")
    ignored, mask, descriptors = seen.split(b"\n", 2)
    assert int(ignored.split()[1], 16) & ~(0b11 << 31) == 0
    assert (int(mask, 8), descriptors) == (0o022, b"[0, 1, 2]\n")
