"""Files come out through pipes; what is not a file is refused and never waited for."""

import asyncio
from contextlib import aclosing

import pytest

from hummingbird.core.errors import CommandFailed
from hummingbird.core.protocols.sandbox import Sandbox
from tests.contracts.sandboxes.questions import MIB, at, content, running, said
from tests.contracts.sandboxes.stage import Stage


async def _refused(sandbox: Sandbox, path: str) -> str:
    with pytest.raises(CommandFailed, match="could not be read") as caught:
        await content(sandbox, path)
    assert str(caught.value).endswith(".")
    return str(caught.value)


async def a_missing_file_is_refused(stage: Stage) -> None:
    assert "No such file" in await _refused(stage.sandbox, at("missing/below"))


async def a_directory_is_not_read(stage: Stage) -> None:
    await _refused(stage.sandbox, "/tmp/data")


async def what_would_block_or_never_end_is_not_read(stage: Stage) -> None:
    """A FIFO without a writer, even behind a link; a socket; a device without an end."""
    await said(
        stage.sandbox, "mkfifo fifo; python3 -c 'import socket; socket.socket(1).bind(\"sock\")'; ln -s fifo link"
    )
    paths = (at("link"), at("sock"), "/dev/zero")
    await asyncio.gather(*(_refused(stage.sandbox, path) for path in paths))


async def a_file_without_permission_is_refused(stage: Stage) -> None:
    await said(stage.sandbox, "echo secret > locked; chmod 000 locked")
    assert "ermission" in await _refused(stage.sandbox, at("locked"))


async def a_link_is_followed_and_a_dangling_one_refused(stage: Stage) -> None:
    await said(stage.sandbox, "echo target > target; ln -s target good; ln -s nowhere bad; ln -s loop loop")
    assert await content(stage.sandbox, at("good")) == b"target\n"
    await asyncio.gather(_refused(stage.sandbox, at("bad")), _refused(stage.sandbox, at("loop")))


async def a_path_that_is_none_is_not_read(stage: Stage) -> None:
    """A name with a NUL or half a character, none at all: no reason to suspect the sandbox."""
    paths = ("", at("nul\0name"), at("lone\ud800surrogate"))
    sentences = await asyncio.gather(*(_refused(stage.sandbox, path) for path in paths))
    assert not any("supervisor" in sentence for sentence in sentences)


async def reading_a_file_that_grows_comes_to_an_end(stage: Stage) -> None:
    """What was there when reading began, and not what somebody goes on to write; nor does it matter that it is removed
    meanwhile."""
    await said(stage.sandbox, f"head -c {5 * MIB} /dev/zero > grows")
    async with aclosing(stage.sandbox.read_file_iter(at("grows"))) as reading:
        size = len(await anext(reading))
        await said(stage.sandbox, f"head -c {50 * MIB} /dev/zero >> grows; rm grows")
        assert size + sum([len(chunk) async for chunk in reading]) == 5 * MIB


async def reading_a_file_that_shrinks_comes_to_an_end(stage: Stage) -> None:
    await said(stage.sandbox, f"head -c {40 * MIB} /dev/zero > shrinks")
    async with aclosing(stage.sandbox.read_file_iter(at("shrinks"))) as reading:
        size = len(await anext(reading))
        await said(stage.sandbox, ": > shrinks")
        size += sum([len(chunk) async for chunk in reading])
    assert size < 40 * MIB


async def a_reader_that_stops_early_leaves_nothing_behind(stage: Stage) -> None:
    await said(stage.sandbox, f"head -c {40 * MIB} /dev/zero > stopped")
    async with aclosing(stage.sandbox.read_file_iter(at("stopped"))) as reading:
        assert await anext(reading)
    assert len(await running(stage.sandbox, "exec(r(int(r(")) <= 2  # process 1, and what answers this question


async def a_file_of_the_system_is_read(stage: Stage) -> None:
    """Its size is said to be nothing; it has content all the same."""
    assert b"\nUid:\t" in await content(stage.sandbox, "/proc/self/status")
