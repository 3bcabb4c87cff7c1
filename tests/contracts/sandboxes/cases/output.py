"""What a command writes arrives as it was written, and what is too long goes to a file inside."""

import hashlib

from hummingbird.core.limits import EXEC_KEPT_BYTES, OVERFLOW_BYTES
from hummingbird.core.protocols.sandbox import SPILL_FOLDER
from tests.contracts.sandboxes.questions import EVERY_BYTE, MIB, at, content, hashed, python, said
from tests.contracts.sandboxes.stage import Stage

_BOTH_LONG = """
import sys
for number in range(60000):
    sys.stdout.write("out %d\\n" % number)
    sys.stderr.write("err %d\\n" % number)
"""


def _lines(word: str) -> bytes:
    return "".join(f"{word} {number}\n" for number in range(60000)).encode()


async def stdout_and_stderr_are_kept_apart(stage: Stage) -> None:
    """To the last letter, also without an end of the line."""
    done = await stage.sandbox.exec("echo one; echo two >&2; printf three; echo four >&2")
    assert (done.stdout, done.stderr) == (b"one\nthree", b"two\nfour\n")
    assert (done.stdout_bytes, done.stderr_bytes) == (9, 9)
    assert (done.stdout_file, done.stderr_file) == ("", "")


async def every_byte_value_comes_out(stage: Stage) -> None:
    """NULs and what is no UTF-8 included, on both streams."""
    done = await stage.sandbox.exec(
        python("import os; os.write(1, bytes(range(256))); os.write(2, b'\\0\\xff\\0\\xfe')")
    )
    assert (done.stdout, done.stderr) == (EVERY_BYTE, b"\0\xff\0\xfe")


async def both_streams_may_be_long_at_once(stage: Stage) -> None:
    """Far more than a pipe holds, in turn: neither waits for the other. The whole is in the named files."""
    done = await stage.sandbox.exec(python(_BOTH_LONG), stdout_file=at("long/out"), stderr_file=at("long/err"))
    for whole, kept, size, name, path in (
        (_lines("out"), done.stdout, done.stdout_bytes, done.stdout_file, at("long/out")),
        (_lines("err"), done.stderr, done.stderr_bytes, done.stderr_file, at("long/err")),
    ):
        assert kept == whole[:EXEC_KEPT_BYTES]
        assert (size, name) == (len(whole), path)
        assert await content(stage.sandbox, path) == whole


async def output_that_just_fits_goes_to_no_file(stage: Stage) -> None:
    """And one byte more does, whole."""
    size = EXEC_KEPT_BYTES
    done = await stage.sandbox.exec(f"head -c {size} /dev/zero", stdout_file=at("fits"))
    assert (len(done.stdout), done.stdout_bytes, done.stdout_file) == (size, size, "")
    more = await stage.sandbox.exec(f"test ! -e fits && head -c {size + 1} /dev/zero", stdout_file=at("one more"))
    assert (more.stdout, more.stdout_bytes, more.exit_code) == (bytes(size), size + 1, 0)
    assert await content(stage.sandbox, more.stdout_file) == bytes(size + 1)


async def long_output_without_a_name_gets_one_of_its_own_each_time(stage: Stage) -> None:
    size = 2 * EXEC_KEPT_BYTES
    made_up = [await stage.sandbox.exec(f"head -c {size} /dev/zero | tr '\\0' {letter}") for letter in "ab"]
    assert len({done.stdout_file for done in made_up}) == 2
    for done, letter in zip(made_up, (b"a", b"b"), strict=True):
        assert done.stdout_file.startswith(SPILL_FOLDER)
        assert await content(stage.sandbox, done.stdout_file) == letter * size


async def a_file_that_cannot_be_written_is_complained_about(stage: Stage) -> None:
    """The command is not to blame: its outcome and the beginning of its output are there."""
    size = 4 * EXEC_KEPT_BYTES
    done = await stage.sandbox.exec(f"head -c {size} /dev/zero; exit 5", stdout_file="/usr/not-here")
    assert (done.exit_code, len(done.stdout), done.stdout_bytes) == (5, EXEC_KEPT_BYTES, size)
    assert done.complaint
    assert done.stdout_file == ""


async def a_file_that_no_file_can_be_is_complained_about(stage: Stage) -> None:
    """A name with a NUL, and a FIFO that nobody reads: that must not stop the command or its time-out."""
    done = await stage.sandbox.exec("head -c 600000 /dev/zero; exit 6", stdout_file=at("nul\0name"))
    assert (done.exit_code, bool(done.complaint), done.stdout_file) == (6, True, "")
    done = await stage.sandbox.exec("mkfifo out-fifo; head -c 600000 /dev/zero; exit 7", stdout_file=at("out-fifo"))
    assert (done.exit_code, bool(done.complaint), done.stdout_bytes) == (7, True, 600_000)


async def a_file_of_output_has_a_bound_and_says_when_it_was_reached(stage: Stage) -> None:
    done = await stage.sandbox.exec(f"head -c {OVERFLOW_BYTES + MIB} /dev/zero", stdout_file=at("huge"))
    assert done.stdout_bytes == OVERFLOW_BYTES + MIB
    assert str(OVERFLOW_BYTES) in done.complaint
    assert int(await said(stage.sandbox, "stat -c %s huge; rm huge")) == OVERFLOW_BYTES


async def a_command_may_close_its_output_and_run_on(stage: Stage) -> None:
    done = await stage.sandbox.exec("echo early; exec >&- 2>&-; sleep 0.2; exit 7")
    assert (done.exit_code, done.stdout) == (7, b"early\n")


async def streamed_output_arrives_whole_and_in_order(stage: Stage) -> None:
    command = python("import sys\nfor i in range(500000): sys.stdout.write('%07d\\n' % i)")
    wanted = hashlib.sha256(b"".join(b"%07d\n" % i for i in range(500_000))).hexdigest()
    assert await hashed(stage.sandbox.stream_exec(command)) == wanted
