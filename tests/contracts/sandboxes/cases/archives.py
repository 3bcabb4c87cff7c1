"""What /tmp/data holds goes out of one sandbox and into the next as one stream, unpacked inside alone."""

import asyncio
import tarfile

import pytest

from hummingbird.core.errors import CommandFailed
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT, Sandbox
from tests.contracts.sandboxes.questions import at, said, streamed
from tests.contracts.sandboxes.stage import Stage

PACK = "tar -C {} -cf - ."
UNPACK = "tar -C /tmp/data -xpf -"
FILL = """
mkdir -p 'a folder/deep' empty && cd 'a folder' && echo one > '-one' && chmod 640 ./-one
printf '#!/bin/sh\\necho ran\\n' > run && chmod 755 run && ln -s ../gone deep/dangling && ln -s ../run deep/link
head -c 3000000 /dev/urandom > large && chmod 600 large && printf x > "$(printf 'new\\nline \\377')"
chmod 750 deep && touch -d '2020-02-02 02:02:02 UTC' ./-one
"""
DESCRIBE = """
cd {} && find . -mindepth 1 -printf '%p %y %m %l\\n' | LC_ALL=C sort
find . -type f -exec sha256sum {{}} + | LC_ALL=C sort; stat -c %Y 'a folder/-one'
"""


async def carried(giver: Sandbox, taker: Sandbox, folder: str = SANDBOX_ROOT) -> None:
    """An archive streams out of one and into the other at the same time. Names, links, modes, times and contents are
    the same afterwards."""
    async for _ in taker.stream_exec(UNPACK, giver.stream_exec(PACK.format(folder))):
        pass
    given, taken = await asyncio.gather(
        said(giver, DESCRIBE.format(folder)), said(taker, DESCRIBE.format(SANDBOX_ROOT))
    )
    assert given == taken
    assert b"a folder/deep/dangling l 777 ../gone\n" in taken
    assert b"a folder/-one f 640 \n" in taken
    assert taken.endswith(b"\n1580608922\n")


async def an_archive_carries_everything_to_the_next_sandbox(stage: Stage) -> None:
    await said(stage.sandbox, f"mkdir packed && cd packed && {FILL.strip()}")
    async with stage.fresh() as taker:
        await carried(stage.sandbox, taker, at("packed"))
        assert await said(taker, "'./a folder/deep/link'") == b"ran\n"


async def an_archive_that_is_cut_off_fails(stage: Stage) -> None:
    member = tarfile.TarInfo("cut-off")
    member.size = 1_000_000
    with pytest.raises(CommandFailed, match="exit code"):
        async for _ in stage.sandbox.stream_exec(UNPACK, streamed(member.tobuf(), bytes(1000))):
            pass


async def an_archive_whose_giver_fails_fails(stage: Stage) -> None:
    """The taker must not believe that what it got is all there was."""
    with pytest.raises(CommandFailed, match="exit code 9"):
        async for _ in stage.sandbox.stream_exec("cat", stage.sandbox.stream_exec("echo some; exit 9")):
            pass
