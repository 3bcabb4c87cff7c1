"""Somebody else's code, and what is not its own doing: told apart wherever a hook, a tool or an asker is called."""

import asyncio

from hummingbird.agent.interruptible import being_cancelled


def not_its_own(error: BaseException) -> bool:
    """What reaches somebody's code from outside and is not for us to swallow: an interrupt, or Ctrl-C."""
    return isinstance(error, KeyboardInterrupt) or (isinstance(error, asyncio.CancelledError) and being_cancelled())
