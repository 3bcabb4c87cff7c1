"""Hummingbird without a disk: how much of its turn is the durable journal."""

import asyncio

from benchmarks.overhead.meter import Meter
from benchmarks.overhead.ours import converse
from hummingbird.storage.journals import MemoryJournal

if __name__ == "__main__":
    clock = Meter()
    clock.finish(asyncio.run(converse(clock, MemoryJournal())))
