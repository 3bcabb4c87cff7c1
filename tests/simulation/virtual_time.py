"""Replace the clocks and the randomness of the interpreter while a simulation runs, so that a seed always plays alike.

A simulated process sees true time plus the skew of its clock; monotonic clocks have no skew.
"""

import os
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

from hummingbird.storage import compare_and_swap, spending_store
from tests.simulation.event_loop import PROCESS

EPOCH = 1_772_445_600.0  # a morning in March 2026


@contextmanager
def virtual_time(monotonic: Callable[[], float], skews: Mapping[str, float], seed: int) -> Iterator[None]:
    """Let `time`, `random`, `uuid` and `secrets` follow the loop and the seed."""
    source = random.Random(f"bytes {seed}")
    kept = random.getstate()
    random.seed(seed)

    def wall() -> float:
        return EPOCH + monotonic() + skews.get(PROCESS.get(), 0.0)

    with (
        patch.object(time, "time", wall),
        patch.object(time, "monotonic", monotonic),
        patch.object(time, "perf_counter", monotonic),
        patch.object(compare_and_swap, "monotonic", monotonic),  # imported by name
        patch.object(spending_store, "monotonic", monotonic),
        patch.object(os, "urandom", source.randbytes),
        patch.object(random, "_urandom", source.randbytes),
        patch.object(uuid, "uuid4", lambda: uuid.UUID(bytes=source.randbytes(16), version=4)),
    ):
        try:
            yield
        finally:
            random.setstate(kept)
