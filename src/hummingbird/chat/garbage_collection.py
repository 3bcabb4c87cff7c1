"""Tunes the garbage collector and thread switching, so that typing stays smooth in a long session.

A session with thousands of entries has hundreds of thousands of objects, none of them garbage while it is open. A full
collection takes 100 to 200 ms, during which no key is echoed and no interrupt is handled. And while another thread
stores such a session, the thread that reads keys has to wait for the interpreter lock at every read, write and wait.
"""

import gc
import sys

# New objects before a collection, which then takes 3 ms. A turn in a long session makes 70,000.
_COLLECT_AFTER_OBJECTS = 20_000
# How long a thread may run while another one waits. Python's default of 5 ms adds up to 70 ms for one key.
_SWITCH_INTERVAL_S = 0.0005


def freeze_garbage_collector() -> None:
    """Exempt all present objects from collection; reference counting still frees them."""
    again = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect(2 if again else 1)  # frees the previous session; the first time there is only young garbage
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, 10, 20)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
