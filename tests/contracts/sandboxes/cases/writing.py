"""Files go in through pipes, whole or not at all."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest

from hummingbird.core.errors import CommandFailed
from hummingbird.core.protocols.sandbox import Sandbox
from tests.contracts.sandboxes.questions import (
    EVERY_BYTE,
    MIB,
    SourceRefused,
    at,
    content,
    hashed,
    pieces,
    refusing,
    said,
    streamed,
)
from tests.contracts.sandboxes.stage import Stage


async def _refused(sandbox: Sandbox, path: str) -> str:
    """The sentence with which it cannot be written."""
    with pytest.raises(CommandFailed, match="could not be written") as caught:
        await sandbox.write_file(path, b"content")
    assert str(caught.value).endswith(".")
    return str(caught.value)


async def a_hundred_megabytes_go_in_and_come_out_the_same(stage: Stage) -> None:
    """Half of them as one chunk."""
    block = hashlib.sha256(b"block").digest() * 4096
    whole = b"".join(index.to_bytes(4, "big") + block for index in range(100 * MIB // len(block)))
    wanted = hashlib.sha256(whole).hexdigest()

    async def chunks() -> AsyncIterator[bytes]:
        yield whole[: 50 * MIB]
        async for piece in pieces(whole[50 * MIB :], 1_000_003):
            yield piece

    assert await stage.sandbox.stream_to_file(at("hundred"), chunks()) == len(whole)
    assert await hashed(stage.sandbox.read_file_iter(at("hundred"))) == wanted
    assert (await said(stage.sandbox, "sha256sum hundred; rm hundred")).split()[0].decode() == wanted


async def an_empty_file_is_a_file(stage: Stage) -> None:
    await stage.sandbox.write_file(at("empty-1"), b"")
    assert await stage.sandbox.stream_to_file(at("empty-2"), streamed(b"", b"")) == 0
    assert await said(stage.sandbox, "stat -c %s%F empty-?") == b"0regular empty file\n" * 2
    assert await content(stage.sandbox, at("empty-1")) == b""


async def tiny_and_empty_chunks_make_one_file(stage: Stage) -> None:
    """With every value that a byte can have."""
    whole = EVERY_BYTE * 30

    async def chunks() -> AsyncIterator[bytes]:
        async for piece in pieces(whole, 2):
            yield piece
            yield b""

    assert await stage.sandbox.stream_to_file(at("tiny"), chunks()) == len(whole)
    assert await content(stage.sandbox, at("tiny")) == whole


async def directories_are_made_on_the_way(stage: Stage) -> None:
    deep = at("deep/" + "/".join(f"level {number}" for number in range(60)) + "/file")
    await stage.sandbox.write_file(deep, b"deep")
    assert await content(stage.sandbox, deep) == b"deep"


async def a_relative_path_starts_where_commands_do(stage: Stage) -> None:
    await stage.sandbox.write_file("beside/relative", b"here")
    assert await said(stage.sandbox, "cat /tmp/data/beside/relative") == b"here"


async def a_file_appears_when_it_is_whole(stage: Stage) -> None:
    """Until then its old content stands there, and nothing when there was none."""
    half, go_on = asyncio.Event(), asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"new " * MIB
        half.set()
        await go_on.wait()
        yield b"end"

    await said(stage.sandbox, "mkdir whole; echo old > whole/old")
    writing = [asyncio.create_task(stage.sandbox.stream_to_file(at("whole/old"), chunks()))]
    await half.wait()
    assert await said(stage.sandbox, "cat whole/old; ls whole") == b"old\nold\n"
    go_on.set()
    await asyncio.gather(*writing)
    assert await said(stage.sandbox, "ls -A whole; tail -c 7 whole/old") == b"old\nnew end"


async def a_source_that_fails_leaves_no_file_and_keeps_the_old_one(stage: Stage) -> None:
    await said(stage.sandbox, "mkdir broken; echo old > broken/old")
    ways = (stage.sandbox.stream_to_file(at(f"broken/{name}"), refusing([b"half" * MIB])) for name in ("new", "old"))
    outcomes = await asyncio.gather(*ways, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [SourceRefused] * 2
    assert await said(stage.sandbox, "ls -A broken; cat broken/old") == b"old\nold\n"


async def a_directory_is_not_overwritten_by_a_file(stage: Stage) -> None:
    await said(stage.sandbox, "mkdir -p folder/kept")
    assert "directory" in await _refused(stage.sandbox, at("folder"))


async def nothing_is_written_below_a_file(stage: Stage) -> None:
    await said(stage.sandbox, "echo plain > plain")
    await _refused(stage.sandbox, at("plain/below"))


async def a_place_that_may_not_be_written_is_refused(stage: Stage) -> None:
    await asyncio.gather(*(_refused(stage.sandbox, path) for path in ("/usr/bin/sh", "/new/folder/file")))


async def a_path_that_is_none_is_refused(stage: Stage) -> None:
    """A name with a NUL, none at all, one byte too long, one that ends in a slash: no reason to suspect the sandbox."""
    paths = (at("nul\0name"), "", at("n" * 256), at("slash/"))
    sentences = await asyncio.gather(*(_refused(stage.sandbox, path) for path in paths))
    assert not any("supervisor" in sentence for sentence in sentences)


async def a_refused_file_does_not_hang_on_its_source(stage: Stage) -> None:
    """The refusal comes while most of the content is still to be sent."""
    with pytest.raises(CommandFailed, match="could not be written"):
        await stage.sandbox.stream_to_file("/usr/refused", pieces(b"x" * 20 * MIB, 65536))
