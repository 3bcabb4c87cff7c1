"""What goes on behind the prompt holds up no keys (C1, C3): in a process of its own, for it changes that process."""

import subprocess
import sys

SETTLED = """
import gc, sys, time
from hummingbird.chat.pauses import settled

session = [{"entry": [number]} for number in range(300_000)]

def longest():
    began = time.perf_counter()
    gc.collect()
    return time.perf_counter() - began

longest()
before = min(longest() for _ in range(3))
settled()
after = min(longest() for _ in range(3))
garbage = []
garbage.append(garbage)
del garbage
print(before / after, gc.get_freeze_count() > 600_000, gc.isenabled(), gc.collect(), sys.getswitchinterval() < 0.001)
"""


def test_a_long_session_costs_the_collector_nothing_and_garbage_is_collected_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True, timeout=60)
    ratio, *others = done.stdout.split()
    assert float(ratio) > 5
    assert others == ["True", "True", "1", "True"]
