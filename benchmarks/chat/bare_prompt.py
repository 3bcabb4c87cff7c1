"""The least that prompts: prompt_toolkit's own session. With `stream`, 200 pieces of text a second are printed above
it, the way its documentation shows.
"""

import asyncio
import sys
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout


async def _streamed() -> None:
    number = 0
    while True:
        number += 1
        sys.stdout.write(f"word{number} " + ("\n\n" if number % 40 == 39 else ""))
        await asyncio.sleep(0.005)


async def _prompted(*, streaming: bool) -> None:
    session: PromptSession[str] = PromptSession()
    with patch_stdout():
        beside = asyncio.ensure_future(_streamed()) if streaming else None
        with suppress(EOFError, KeyboardInterrupt):
            await session.prompt_async("bare> ")
        if beside is not None:
            beside.cancel()


if __name__ == "__main__":
    asyncio.run(_prompted(streaming="stream" in sys.argv))
