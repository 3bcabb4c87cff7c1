"""Input reaches a command, ends, and never hangs when nobody reads it."""

import asyncio
import hashlib

import pytest

from tests.contracts.sandboxes.questions import (
    EVERY_BYTE,
    MIB,
    Endless,
    SourceRefused,
    hashed,
    pieces,
    refusing,
    running,
    said,
    streamed,
)
from tests.contracts.sandboxes.stage import Stage


async def input_arrives_and_ends(stage: Stage) -> None:
    assert await said(stage.sandbox, "cat; echo end", b"line\n") == b"line\nend\n"


async def without_input_a_reader_sees_its_end_at_once(stage: Stage) -> None:
    ways = (said(stage.sandbox, "wc -c"), said(stage.sandbox, "wc -c", streamed()))
    assert set(await asyncio.gather(*ways)) == {b"0\n"}


async def every_byte_value_goes_in(stage: Stage) -> None:
    assert await said(stage.sandbox, "cat", EVERY_BYTE * 300) == EVERY_BYTE * 300


async def chunks_without_content_are_no_end(stage: Stage) -> None:
    assert await said(stage.sandbox, "cat", streamed(b"", b"a", b"", b"", b"b", b"")) == b"ab"


async def many_tiny_chunks_arrive_in_order(stage: Stage) -> None:
    whole = b"".join(b"%d\n" % number for number in range(4000))
    assert await said(stage.sandbox, "cat", pieces(whole, 3)) == whole


async def one_chunk_of_fifty_megabytes_arrives(stage: Stage) -> None:
    whole = EVERY_BYTE * (50 * MIB // 256)
    found = await said(stage.sandbox, "sha256sum", streamed(whole))
    assert found.split()[0].decode() == hashlib.sha256(whole).hexdigest()


async def a_command_that_reads_nothing_ends_all_the_same(stage: Stage) -> None:
    ways = (said(stage.sandbox, "true", b"x" * MIB), said(stage.sandbox, "true", pieces(b"x" * MIB, 4096)))
    assert set(await asyncio.gather(*ways)) == {b""}


async def a_command_that_closes_its_input_may_run_on(stage: Stage) -> None:
    assert await said(stage.sandbox, "exec <&-; sleep 0.2; echo on", pieces(b"x" * MIB, 4096)) == b"on\n"


async def a_command_that_reads_a_part_gets_that_part(stage: Stage) -> None:
    assert await said(stage.sandbox, "head -c 3; echo", b"abc" + b"x" * MIB) == b"abc\n"


async def an_endless_source_does_not_keep_a_command_from_ending(stage: Stage) -> None:
    source = Endless(b"y\n" * 1000)
    assert await said(stage.sandbox, "head -n 2", source()) == b"y\ny\n"
    assert source.left


async def a_source_that_has_nothing_does_not_keep_a_command_from_ending(stage: Stage) -> None:
    source = Endless(most=0)
    assert await said(stage.sandbox, "echo done", source()) == b"done\n"
    assert source.left


async def a_source_that_fails_ends_the_command_and_is_heard(stage: Stage) -> None:
    """The caller's own error comes back as it was raised; nobody mistakes half an input for all of it."""
    with pytest.raises(SourceRefused):
        await stage.sandbox.exec("cat >/dev/null; touch took; sleep 7401", refusing([b"half"]))
    assert await running(stage.sandbox, "7401") == []
    assert (await stage.sandbox.exec("test -e took")).exit_code == 1


async def a_streamed_commands_source_that_fails_is_heard(stage: Stage) -> None:
    with pytest.raises(SourceRefused):
        async for _ in stage.sandbox.stream_exec("cat; sleep 7402", refusing([b"half"])):
            pass
    assert await running(stage.sandbox, "7402") == []


async def input_and_output_flow_at_the_same_time(stage: Stage) -> None:
    """More than all pipes hold together goes through, though neither side could take it whole."""
    whole = EVERY_BYTE * (20 * MIB // 256)
    found = await hashed(stage.sandbox.stream_exec("cat", pieces(whole, 100_000)))
    assert found == hashlib.sha256(whole).hexdigest()
