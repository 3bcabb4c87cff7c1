"""The bare loop with the JSON encoder that Hummingbird uses: which part of the ratio is the encoder, which the loop."""

import asyncio

import msgspec

from benchmarks.overhead.bare import converse
from benchmarks.overhead.meter import Meter

if __name__ == "__main__":
    clock = Meter()
    clock.finish(asyncio.run(converse(clock, msgspec.json.encode)))
