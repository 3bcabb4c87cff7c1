"""What goes on behind the prompt holds up no keys: in a process of its own, for it changes that process."""

import subprocess
import sys

SETTLED = """
import gc, sys, weakref
from hummingbird.chat.garbage_collection import freeze_garbage_collector

session = [{"entry": [number]} for number in range(300_000)]
before = len(gc.get_objects())
freeze_garbage_collector()
after = len(gc.get_objects())
class Kept:
    pass

kept = Kept()
kept.itself = kept
freeze_garbage_collector()
gone = weakref.ref(kept)
del kept
freeze_garbage_collector()  # another session is opened
assert gone() is None

garbage = []
garbage.append(garbage)
del garbage
print(before > 600_000, after < 1_000, gc.isenabled(), gc.collect(), sys.getswitchinterval() < 0.001)
"""


def test_the_collector_looks_at_nothing_of_a_long_session_and_finds_garbage_and_earlier_sessions_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "True", "True", "1", "True"]
